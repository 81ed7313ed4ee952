//! The web for one request: a way to one host, and nowhere else.
//!
//! It is the proxy that commands have, with a list of one host: the name is looked up once, what it
//! leads to has to be public, and exactly that is dialled. Start reading at [`World::passage`].
#![allow(
    clippy::disallowed_types,
    reason = "the sandbox leads to the network; a passage ends with its owner"
)]

use crate::command::Reach;
use crate::proxy::{self, Decided, Hosts, Leading, Names, Proxy, Ruling};
use crate::{Error, Workspace, World};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, OnceLock};
use windlass_protocol::Access;

/// What is known of the network besides what a grant says.
#[derive(Clone, Default)]
pub(crate) struct Network {
    /// Hosts that may be anywhere, also on this machine.
    inside: Hosts,
    /// The only hosts there are, where the policy of this machine lists them.
    held: Option<Hosts>,
    /// What names lead to, if not to what the system says.
    names: Option<Arc<dyn Names>>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("inside", &self.inside).finish_non_exhaustive()
    }
}

impl Network {
    /// Keeps to a list that is the last word.
    pub(crate) fn hold(&mut self, reach: &Reach) {
        self.held = match reach {
            Reach::Listed(_) => None,
            Reach::Held(hosts) => Some(hosts.clone()),
        };
    }
}

/// A way to one host. It ends, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct Passage {
    _proxy: Proxy,
    address: String,
    refused: Arc<OnceLock<String>>,
}

impl Passage {
    /// The proxy that leads there, with what it wants to hear. Repeat it to nobody.
    pub fn proxy(&self) -> &str {
        &self.address
    }

    /// Why it did not lead there, if it did not.
    pub fn refused(&self) -> Option<String> {
        self.refused.get().cloned()
    }
}

impl Workspace {
    /// Names hosts that may be fetched from although they are not public: servers of the person's
    /// own.
    #[must_use]
    pub fn with_inside(mut self, hosts: Hosts) -> Workspace {
        self.network.inside = hosts;
        self
    }

    /// For tests: what names lead to.
    #[doc(hidden)]
    #[must_use]
    pub fn with_names(mut self, names: Arc<dyn Names>) -> Workspace {
        self.network.names = Some(names);
        self
    }
}

impl World {
    /// The way to a host, as [`Hosts::spell`] spells it, that the grant names, or that the rules
    /// open without anybody being asked.
    pub fn passage(&self, host: &str) -> Result<Passage, Error> {
        if !self.grant().spans(&Access::Fetch { host: host.to_owned() }) {
            return Err(Error::NotGranted { path: host.to_owned() });
        }
        let failed = |why: String| Error::NotStarted { why };
        let Network { inside, held, names } = self.workspace().network.clone();
        let one = Hosts::parse(&[host.to_owned()]).map_err(|error| failed(error.to_string()))?;
        let hosts = match held {
            None => one,
            Some(held) => one.within(held),
        };
        let listen = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let (port, token) = (listener.local_addr()?.port(), proxy::new_token()?);
            let refused = Arc::new(OnceLock::new());
            let kept = Arc::clone(&refused);
            let report = move |decided: Decided| match decided.ruling {
                Ruling::Allowed => {}
                Ruling::Refused => {
                    kept.get_or_init(|| decided.reason);
                }
            };
            let leading = Leading { hosts, inside, names };
            let proxy = Proxy::into(listener, leading, &token, report)?;
            let address =
                format!("http://{}:{}@127.0.0.1:{port}", proxy::USER, proxy::escape(&token));
            Ok(Passage { _proxy: proxy, address, refused })
        };
        listen().map_err(|error: std::io::Error| failed(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
