//! The system keyring, used where it is available and always with a timeout. A locked keyring asks
//! the user before it answers.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses stored API keys"
)]

use crate::ProjectError;

/// The system keyring, or the reason why it is unavailable.
#[derive(Debug)]
pub(super) struct SystemKeyring {
    unavailable_reason: Option<&'static str>,
}

/// The reason why a keyring operation failed.
#[derive(Debug)]
pub(super) struct KeyringError(String);

impl KeyringError {
    /// Converts it into a `ProjectError` for the user.
    pub(super) fn into_error(self, provider: &str) -> ProjectError {
        ProjectError::Keyring { provider: provider.to_owned(), reason: self.0 }
    }
}

impl SystemKeyring {
    /// Detects a keyring without any request to it.
    pub(super) fn detect() -> SystemKeyring {
        SystemKeyring { unavailable_reason: unavailable_reason() }
    }

    /// Returns an unavailable keyring, for tests.
    #[cfg(test)]
    pub(super) fn unavailable() -> SystemKeyring {
        SystemKeyring { unavailable_reason: Some("this is a test") }
    }

    fn check_available(&self) -> Result<(), KeyringError> {
        match self.unavailable_reason {
            Some(reason) => Err(KeyringError(reason.into())),
            None => Ok(()),
        }
    }
}

/// Returns the reason why no keyring is used, such as `WINDLASS_KEYRING=off`; `None` if one is.
fn unavailable_reason() -> Option<&'static str> {
    if !cfg!(feature = "keyring") {
        return Some("this build of Windlass does not include the feature `keyring`");
    }
    if std::env::var_os("WINDLASS_KEYRING").is_some_and(|value| value == "off") {
        return Some("WINDLASS_KEYRING is `off`");
    }
    if cfg!(all(unix, not(target_os = "macos"))) && !has_session_bus() {
        return Some("this session has no D-Bus session bus");
    }
    None
}

fn has_session_bus() -> bool {
    let non_empty_var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let runtime_dir = non_empty_var("XDG_RUNTIME_DIR").map(std::path::PathBuf::from);
    non_empty_var("DBUS_SESSION_BUS_ADDRESS").is_some()
        || runtime_dir.is_some_and(|folder| folder.join("bus").exists())
}

#[cfg(feature = "keyring")]
mod real {
    use super::{KeyringError, SystemKeyring};
    use keyring::{Entry, Error};
    use secrecy::{ExposeSecret, SecretString};
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    /// The timeout of an operation without user interaction.
    const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

    /// The timeout if the user may have to unlock the keyring.
    const UNLOCK_TIMEOUT: Duration = Duration::from_secs(60);

    /// The service name of our keys in the keyring.
    const SERVICE_NAME: &str = "windlass";

    impl SystemKeyring {
        pub(in super::super) fn get(
            &self,
            provider: &str,
        ) -> Result<Option<SecretString>, KeyringError> {
            self.call_with_timeout(provider, ANSWER_TIMEOUT, |entry| match entry.get_password() {
                Ok(key) => Ok(Some(SecretString::from(key))),
                Err(Error::NoEntry) => Ok(None),
                Err(error) => Err(error),
            })
        }

        pub(in super::super) fn set(
            &self,
            provider: &str,
            key: &SecretString,
        ) -> Result<(), KeyringError> {
            let key = key.clone();
            self.call_with_timeout(provider, UNLOCK_TIMEOUT, move |entry| {
                entry.set_password(key.expose_secret())
            })
        }

        pub(in super::super) fn remove(&self, provider: &str) -> Result<(), KeyringError> {
            self.call_with_timeout(provider, UNLOCK_TIMEOUT, |entry| {
                match entry.delete_credential() {
                    Ok(()) | Err(Error::NoEntry) => Ok(()),
                    Err(error) => Err(error),
                }
            })
        }

        /// Runs an operation in its own thread, which is abandoned after the timeout.
        fn call_with_timeout<T: Send + 'static>(
            &self,
            provider: &str,
            timeout: Duration,
            operation: impl FnOnce(Entry) -> Result<T, Error> + Send + 'static,
        ) -> Result<T, KeyringError> {
            self.check_available()?;
            let provider = provider.to_owned();
            let (sender, receiver) = channel();
            std::thread::spawn(move || {
                let _ = sender.send(Entry::new(SERVICE_NAME, &provider).and_then(operation));
            });
            match receiver.recv_timeout(timeout) {
                Ok(result) => result.map_err(|error| KeyringError(error_text(&error))),
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = timeout.as_secs();
                    Err(KeyringError(format!(
                        "it did not respond within {seconds} seconds; is it locked?"
                    )))
                }
                Err(RecvTimeoutError::Disconnected) => {
                    Err(KeyringError("the request failed".into()))
                }
            }
        }
    }

    /// Describes an error without any content of the keyring.
    fn error_text(error: &Error) -> String {
        match error {
            Error::NoDefaultStore => "it is not available".into(),
            Error::NoStorageAccess(_) => "it is locked".into(),
            Error::BadEncoding(_) | Error::BadDataFormat(..) => {
                "its entry is not a valid key".into()
            }
            other => other.to_string(),
        }
    }
}

#[cfg(not(feature = "keyring"))]
impl SystemKeyring {
    pub(super) fn get(&self, _: &str) -> Result<Option<secrecy::SecretString>, KeyringError> {
        self.check_available().map(|()| None)
    }

    pub(super) fn set(&self, _: &str, _: &secrecy::SecretString) -> Result<(), KeyringError> {
        self.check_available()
    }

    pub(super) fn remove(&self, _: &str) -> Result<(), KeyringError> {
        self.check_available()
    }
}
