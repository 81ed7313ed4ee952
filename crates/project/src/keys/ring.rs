//! The system's keyring: asked where there is one, and never waited for without end. It may be
//! locked, and then it asks the person before it answers.
#![allow(clippy::disallowed_methods, reason = "project is the door to the person's keys")]

use crate::Error;

/// The keyring, or why there is none.
#[derive(Debug)]
pub(super) struct Ring {
    absent: Option<&'static str>,
}

/// Why the keyring did not do what it was asked.
#[derive(Debug)]
pub(super) struct Refusal(String);

impl Refusal {
    /// As a person is told about it.
    pub(super) fn about(self, provider: &str) -> Error {
        Error::Keyring { provider: provider.to_owned(), reason: self.0 }
    }
}

impl Ring {
    /// Looks for one, without asking it anything.
    pub(super) fn find() -> Ring {
        Ring { absent: why_absent() }
    }

    /// None.
    #[cfg(test)]
    pub(super) fn none() -> Ring {
        Ring { absent: Some("this is a test") }
    }

    fn present(&self) -> Result<(), Refusal> {
        match self.absent {
            Some(reason) => Err(Refusal(reason.into())),
            None => Ok(()),
        }
    }
}

/// Why no keyring is asked, if none is.
fn why_absent() -> Option<&'static str> {
    if !cfg!(feature = "keyring") {
        return Some("this windlass was built without the feature `keyring`");
    }
    if std::env::var_os("WINDLASS_KEYRING").is_some_and(|value| value == "off") {
        return Some("WINDLASS_KEYRING is `off`");
    }
    if cfg!(all(unix, not(target_os = "macos"))) && !has_session_bus() {
        return Some("this session has no bus to reach it by");
    }
    None
}

fn has_session_bus() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let runtime = set("XDG_RUNTIME_DIR").map(std::path::PathBuf::from);
    set("DBUS_SESSION_BUS_ADDRESS").is_some()
        || runtime.is_some_and(|folder| folder.join("bus").exists())
}

#[cfg(feature = "keyring")]
mod real {
    use super::{Refusal, Ring};
    use keyring::{Entry, Error};
    use secrecy::{ExposeSecret, SecretString};
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    /// How long a keyring may take to answer by itself.
    const BY_ITSELF: Duration = Duration::from_secs(3);

    /// How long it may take when the person may have to unlock it.
    const WITH_PERSON: Duration = Duration::from_secs(60);

    /// Under which name our keys are kept.
    const SERVICE: &str = "windlass";

    impl Ring {
        pub(in super::super) fn get(
            &self,
            provider: &str,
        ) -> Result<Option<SecretString>, Refusal> {
            self.ask(provider, BY_ITSELF, |entry| match entry.get_password() {
                Ok(key) => Ok(Some(SecretString::from(key))),
                Err(Error::NoEntry) => Ok(None),
                Err(error) => Err(error),
            })
        }

        pub(in super::super) fn set(
            &self,
            provider: &str,
            key: &SecretString,
        ) -> Result<(), Refusal> {
            let key = key.clone();
            self.ask(provider, WITH_PERSON, move |entry| entry.set_password(key.expose_secret()))
        }

        pub(in super::super) fn remove(&self, provider: &str) -> Result<(), Refusal> {
            self.ask(provider, WITH_PERSON, |entry| match entry.delete_credential() {
                Ok(()) | Err(Error::NoEntry) => Ok(()),
                Err(error) => Err(error),
            })
        }

        /// Asks in a thread of its own, which is left behind if it does not come back in time.
        fn ask<T: Send + 'static>(
            &self,
            provider: &str,
            patience: Duration,
            question: impl FnOnce(Entry) -> Result<T, Error> + Send + 'static,
        ) -> Result<T, Refusal> {
            self.present()?;
            let provider = provider.to_owned();
            let (answer, answered) = channel();
            std::thread::spawn(move || {
                let _ = answer.send(Entry::new(SERVICE, &provider).and_then(question));
            });
            match answered.recv_timeout(patience) {
                Ok(answer) => answer.map_err(|error| Refusal(words(&error))),
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = patience.as_secs();
                    Err(Refusal(format!("it did not answer in {seconds} seconds; is it locked?")))
                }
                Err(RecvTimeoutError::Disconnected) => Err(Refusal("it failed".into())),
            }
        }
    }

    /// What went wrong, without anything the keyring holds.
    fn words(error: &Error) -> String {
        match error {
            Error::NoDefaultStore => "it cannot be reached".into(),
            Error::NoStorageAccess(_) => "it is locked".into(),
            Error::BadEncoding(_) | Error::BadDataFormat(..) => "what it holds is no key".into(),
            other => other.to_string(),
        }
    }
}

#[cfg(not(feature = "keyring"))]
impl Ring {
    pub(super) fn get(&self, _: &str) -> Result<Option<secrecy::SecretString>, Refusal> {
        self.present().map(|()| None)
    }

    pub(super) fn set(&self, _: &str, _: &secrecy::SecretString) -> Result<(), Refusal> {
        self.present()
    }

    pub(super) fn remove(&self, _: &str) -> Result<(), Refusal> {
        self.present()
    }
}
