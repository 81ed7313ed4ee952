//! Sets up the `NetworkAccess` of a command: none, through the proxy, or unrestricted.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the sandbox connects commands to the network; the proxy of a command ends with it"
)]

use crate::Error;
use crate::confine::{NetworkAccess, SandboxBackend};
use crate::network::host_access_log::HostAccessLog;
use crate::network::policy::NetworkPolicy;
use crate::network::proxy::{
    self, HostAllowlist, HostDecision, HostRuling, Proxy, ProxyHostSettings, UpstreamProxy,
};
use crate::supervisor::client::SupervisedProcess;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use windlass_protocol::mutex_lock::lock;

/// Ports of proxies in the network namespace of a session. They are above the ports that the kernel
/// gives to outgoing connections, and differ between commands that run at the same time.
const PROXY_PORTS: std::ops::Range<u16> = 61_000..65_000;

/// Counts the proxies, to give each its own port.
static PROXY_COUNT: AtomicU16 = AtomicU16::new(0);

fn next_proxy_port() -> u16 {
    let count = PROXY_COUNT.fetch_add(1, Ordering::Relaxed);
    PROXY_PORTS.start + count % (PROXY_PORTS.end - PROXY_PORTS.start)
}

const NO_NETWORK_NOTE: &str = "this command had no network: access to listed hosts requires \
                               bubblewrap, which is not available. Work offline";
const ENFORCED_HOSTS_NOTE: &str =
    "approval allows only the hosts that the policy of this machine lists";

/// The user's approval of network access for one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkConsent {
    Granted,
    /// Package registries only.
    Registries,
    None,
}

/// The `NetworkAccess` of one command, with its proxy if it uses one.
pub(crate) struct CommandNetwork {
    access: NetworkAccess,
    proxy: Option<ProxySetup>,
    note: Option<&'static str>,
}

/// Settings of the proxy that serves one command.
struct ProxySetup {
    port: u16,
    hosts: HostAllowlist,
    upstream: Option<UpstreamProxy>,
    token: String,
    /// Listener of the proxy, unless it listens in the command's own network namespace.
    listener: Option<TcpListener>,
}

impl CommandNetwork {
    /// Determines the network access of a command from its `Backend`, the `NetworkPolicy` and the
    /// user's approval.
    pub(crate) fn prepare(
        backend: &SandboxBackend,
        policy: &NetworkPolicy,
        consent: NetworkConsent,
        upstream: Option<UpstreamProxy>,
    ) -> Result<CommandNetwork, Error> {
        let (hosts, note) = match (policy, consent) {
            (NetworkPolicy::Listed(hosts), NetworkConsent::Granted) => {
                (hosts.clone().union(HostAllowlist::any()), None)
            }
            (NetworkPolicy::Enforced(hosts), NetworkConsent::Granted) => {
                (hosts.clone(), Some(ENFORCED_HOSTS_NOTE))
            }
            (NetworkPolicy::Listed(hosts), NetworkConsent::Registries) => {
                (hosts.clone().union(HostAllowlist::registries()), None)
            }
            (NetworkPolicy::Enforced(hosts), NetworkConsent::Registries) => (hosts.clone(), None),
            (
                NetworkPolicy::Listed(hosts) | NetworkPolicy::Enforced(hosts),
                NetworkConsent::None,
            ) => (hosts.clone(), None),
        };
        let not_started = |error: std::io::Error| Error::NotStarted { reason: error.to_string() };
        let (port, listener) = match backend {
            SandboxBackend::Off => {
                return Ok(CommandNetwork {
                    access: NetworkAccess::Unrestricted,
                    proxy: None,
                    note: None,
                });
            }
            _ if hosts.is_empty() => {
                return Ok(CommandNetwork { access: NetworkAccess::None, proxy: None, note });
            }
            // Landlock restricts ports, not addresses: a command that may reach the proxy's port
            // may reach that port on every host.
            SandboxBackend::Landlock => {
                let note = Some(NO_NETWORK_NOTE);
                return Ok(CommandNetwork { access: NetworkAccess::None, proxy: None, note });
            }
            SandboxBackend::Bubblewrap { .. } => (next_proxy_port(), None),
            SandboxBackend::Seatbelt => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(not_started)?;
                (listener.local_addr().map_err(not_started)?.port(), Some(listener))
            }
        };
        let token = proxy::new_token().map_err(not_started)?;
        let setup = Some(ProxySetup { port, hosts, upstream, token, listener });
        Ok(CommandNetwork { access: NetworkAccess::Proxy { port }, proxy: setup, note })
    }

    pub(crate) fn network_access(&self) -> NetworkAccess {
        self.access
    }

    /// Returns a note about the network access for the model.
    pub(crate) fn note(&self) -> Option<&'static str> {
        self.note
    }

    /// Returns the environment variables that direct programs to the proxy, such as `HTTP_PROXY`.
    pub(crate) fn proxy_variables(&self) -> Vec<(String, String)> {
        let setup = self.proxy.as_ref();
        setup.map(|setup| Proxy::environment(setup.port, &setup.token)).unwrap_or_default()
    }

    /// Returns the forms of the proxy token, which output must not contain.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let setup = self.proxy.as_ref();
        setup.map(|setup| proxy::visible_forms(&setup.token).into()).unwrap_or_default()
    }

    /// Starts the [`Proxy`] for a job and keeps it until no process of the job runs.
    pub(crate) fn serve_proxy(
        self,
        process: &SupervisedProcess,
    ) -> Result<Arc<Mutex<HostAccessLog>>, Error> {
        let host_log = Arc::new(Mutex::new(HostAccessLog::default()));
        let Some(setup) = self.proxy else { return Ok(host_log) };
        let Some(listener) = process.take_listener().map(TcpListener::from).or(setup.listener)
        else {
            return Ok(host_log);
        };
        let log = Arc::clone(&host_log);
        let report = move |decision: HostDecision| {
            let refusal = match decision.ruling {
                HostRuling::Allowed => None,
                HostRuling::Refused => Some(decision.reason),
            };
            lock(&log).record(format!("{}:{}", decision.host, decision.port), refusal);
        };
        let targets = ProxyHostSettings {
            hosts: setup.hosts,
            upstream: setup.upstream,
            ..ProxyHostSettings::default()
        };
        let proxy = Proxy::serve_targets(listener, targets, &setup.token, report)
            .map_err(|error| Error::NotStarted { reason: error.to_string() })?;
        let process = process.clone();
        tokio::spawn(async move {
            process.wait_until_gone().await;
            drop(proxy);
        });
        Ok(host_log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bubblewrap() -> SandboxBackend {
        SandboxBackend::Bubblewrap { program: "/usr/bin/bwrap".into() }
    }

    fn listed(hosts: &[&str]) -> HostAllowlist {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        HostAllowlist::parse(&hosts).unwrap()
    }

    #[test]
    fn landlock_has_no_network_and_a_note_says_so() {
        for (policy, consent, has_note) in [
            (NetworkPolicy::Listed(listed(&["example.com"])), NetworkConsent::None, true),
            (NetworkPolicy::Listed(HostAllowlist::none()), NetworkConsent::Granted, true),
            (NetworkPolicy::Enforced(listed(&["example.com"])), NetworkConsent::Granted, true),
            (NetworkPolicy::Listed(HostAllowlist::none()), NetworkConsent::None, false),
        ] {
            let network =
                CommandNetwork::prepare(&SandboxBackend::Landlock, &policy, consent, None).unwrap();
            assert_eq!(network.network_access(), NetworkAccess::None, "{policy:?}");
            assert!(network.proxy_variables().is_empty());
            let note = network.note().is_some_and(|note| note.contains("requires bubblewrap"));
            assert_eq!(note, has_note, "{policy:?}");
        }
    }

    #[test]
    fn consent_extends_a_list_but_not_an_enforced_one() {
        let hosts = || listed(&["8.8.8.8:853", "example.com"]);
        let allowed_hosts = |policy: NetworkPolicy, consent| {
            CommandNetwork::prepare(&bubblewrap(), &policy, consent, None)
                .unwrap()
                .proxy
                .map(|proxy| proxy.hosts)
        };
        let granted =
            allowed_hosts(NetworkPolicy::Listed(hosts()), NetworkConsent::Granted).unwrap();
        // An address must be listed even if every name is allowed.
        assert!(granted.allows("8.8.8.8", 853) && granted.allows("other.example", 22));
        let enforced =
            allowed_hosts(NetworkPolicy::Enforced(hosts()), NetworkConsent::Granted).unwrap();
        assert!(enforced.allows("example.com", 443) && !enforced.allows("other.example", 443));
        assert!(
            allowed_hosts(NetworkPolicy::Enforced(HostAllowlist::none()), NetworkConsent::Granted)
                .is_none()
        );
        let network = CommandNetwork::prepare(
            &bubblewrap(),
            &NetworkPolicy::Enforced(HostAllowlist::none()),
            NetworkConsent::Granted,
            None,
        )
        .unwrap();
        assert!(network.network_access() == NetworkAccess::None && network.note().is_some());
        let without_consent =
            allowed_hosts(NetworkPolicy::Listed(hosts()), NetworkConsent::None).unwrap();
        assert!(!without_consent.allows("other.example", 443));
    }
}
