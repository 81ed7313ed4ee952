//! How a command gets to the network, if at all.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the sandbox leads commands to the network; what serves one ends with it"
)]

use crate::Error;
use crate::cage::{Backend, Network};
use crate::command::Reach;
use crate::jobs::{Job, hold};
use crate::proxy::{self, Decided, Hosts, Proxy, Ruling};
use crate::trail::Trail;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};

/// The proxy's port in a network that nobody else is in.
const PORT: u16 = 3128;

const NO_NAMES: &str = "this command had no network: the network by name needs bubblewrap, which \
                        is not here. Work with what is on this machine";
const HELD: &str = "a yes opens no more than the hosts that the policy of this machine lists";

/// Whether somebody said yes to the network for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    None,
}

/// A way to the network.
pub(crate) struct Way {
    network: Network,
    open: Option<Open>,
    note: Option<&'static str>,
}

/// One through a proxy.
struct Open {
    port: u16,
    hosts: Hosts,
    token: String,
    /// Where the proxy listens, unless it does so in the command's own network.
    listener: Option<TcpListener>,
}

impl Way {
    /// The way that a command has in a cage.
    pub(crate) fn open(backend: &Backend, reach: &Reach, consent: Consent) -> Result<Way, Error> {
        let (hosts, note) = match (reach, consent) {
            (Reach::Listed(hosts), Consent::Given) => (hosts.clone().and(Hosts::any()), None),
            (Reach::Held(hosts), Consent::Given) => (hosts.clone(), Some(HELD)),
            (Reach::Listed(hosts) | Reach::Held(hosts), Consent::None) => (hosts.clone(), None),
        };
        let failed = |error: std::io::Error| Error::NotStarted { why: error.to_string() };
        let (port, listener) = match backend {
            Backend::Off => return Ok(Way { network: Network::Open, open: None, note: None }),
            _ if hosts.is_empty() => return Ok(Way { network: Network::None, open: None, note }),
            // It limits ports, not addresses: who may reach the proxy's port may reach that port
            // everywhere.
            Backend::Landlock => {
                let note = Some(NO_NAMES);
                return Ok(Way { network: Network::None, open: None, note });
            }
            Backend::Bubblewrap { .. } => (PORT, None),
            Backend::Seatbelt => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
                (listener.local_addr().map_err(failed)?.port(), Some(listener))
            }
        };
        let token = proxy::new_token().map_err(failed)?;
        let open = Some(Open { port, hosts, token, listener });
        Ok(Way { network: Network::Proxy { port }, open, note })
    }

    pub(crate) fn network(&self) -> Network {
        self.network
    }

    /// What a model should know of it.
    pub(crate) fn note(&self) -> Option<&'static str> {
        self.note
    }

    /// What leads programs there.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let open = self.open.as_ref();
        open.map(|open| Proxy::environment(open.port, &open.token)).unwrap_or_default()
    }

    /// What must not be repeated.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let open = self.open.as_ref();
        open.map(|open| proxy::shown(&open.token).into()).unwrap_or_default()
    }

    /// Serves the command that was started, as long as something of it runs.
    pub(crate) fn serve(self, job: &Job) -> Result<Arc<Mutex<Trail>>, Error> {
        let trail = Arc::new(Mutex::new(Trail::default()));
        let Some(open) = self.open else { return Ok(trail) };
        let Some(listener) = job.listener().map(TcpListener::from).or(open.listener) else {
            return Ok(trail);
        };
        let kept = Arc::clone(&trail);
        let report = move |decided: Decided| {
            let refused = match decided.ruling {
                Ruling::Allowed => None,
                Ruling::Refused => Some(decided.reason),
            };
            hold(&kept).add(format!("{}:{}", decided.host, decided.port), refused);
        };
        let proxy = Proxy::serve(listener, open.hosts, &open.token, report)
            .map_err(|error| Error::NotStarted { why: error.to_string() })?;
        let job = job.clone();
        tokio::spawn(async move {
            job.left().await;
            drop(proxy);
        });
        Ok(trail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bubblewrap() -> Backend {
        Backend::Bubblewrap { program: "/usr/bin/bwrap".into() }
    }

    fn listed(hosts: &[&str]) -> Hosts {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        Hosts::parse(&hosts).unwrap()
    }

    #[test]
    fn landlock_has_no_network_and_says_so() {
        for (reach, consent, told) in [
            (Reach::Listed(listed(&["example.com"])), Consent::None, true),
            (Reach::Listed(Hosts::none()), Consent::Given, true),
            (Reach::Held(listed(&["example.com"])), Consent::Given, true),
            (Reach::Listed(Hosts::none()), Consent::None, false),
        ] {
            let way = Way::open(&Backend::Landlock, &reach, consent).unwrap();
            assert_eq!(way.network(), Network::None, "{reach:?}");
            assert!(way.variables().is_empty());
            let note = way.note().is_some_and(|note| note.contains("needs bubblewrap"));
            assert_eq!(note, told, "{reach:?}");
        }
    }

    #[test]
    fn a_yes_adds_to_the_list_and_not_to_one_that_is_held() {
        let hosts = || listed(&["8.8.8.8:853", "example.com"]);
        let open = |reach: Reach, consent| {
            Way::open(&bubblewrap(), &reach, consent).unwrap().open.map(|open| open.hosts)
        };
        let yes = open(Reach::Listed(hosts()), Consent::Given).unwrap();
        // An address is reached only if it is listed, also by whoever may reach every name.
        assert!(yes.allows("8.8.8.8", 853) && yes.allows("other.example", 22));
        let held = open(Reach::Held(hosts()), Consent::Given).unwrap();
        assert!(held.allows("example.com", 443) && !held.allows("other.example", 443));
        assert!(open(Reach::Held(Hosts::none()), Consent::Given).is_none());
        let way = Way::open(&bubblewrap(), &Reach::Held(Hosts::none()), Consent::Given).unwrap();
        assert!(way.network() == Network::None && way.note().is_some());
        let no = open(Reach::Listed(hosts()), Consent::None).unwrap();
        assert!(!no.allows("other.example", 443));
    }
}
