//! A route to a single host, for one web request.
//!
//! It uses the same proxy as commands, with a list of one host: the proxy resolves the name once,
//! requires every address to be public, and dials exactly those addresses. Start reading at
//! [`CallWorkspace::route_to_host`].
#![allow(
    clippy::disallowed_types,
    reason = "the sandbox connects to the network; a route ends with its owner"
)]

use crate::network::policy::WorkspaceNetworkSettings;
use crate::network::proxy::{
    self, HostAllowlist, HostDecision, HostRuling, NameResolver, Proxy, ProxyHostSettings,
};
use crate::{CallWorkspace, Error, Workspace};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, OnceLock};
use windlass_protocol::ToolAccess;

/// A route to one host. Dropping it closes the proxy and all its connections.
#[derive(Debug)]
pub struct HostRoute {
    _proxy: Proxy,
    proxy_url: String,
    refusal: Arc<OnceLock<String>>,
}

impl HostRoute {
    /// Returns the URL of the proxy, with its token. Do not log or show it.
    pub fn proxy_url(&self) -> &str {
        &self.proxy_url
    }

    /// Returns the reason why the proxy refused the host, if it did.
    pub fn refusal(&self) -> Option<String> {
        self.refusal.get().cloned()
    }
}

impl Workspace {
    /// Sets hosts that may be fetched although they are not public: the user's own servers.
    #[must_use]
    pub fn with_private_hosts(mut self, hosts: HostAllowlist) -> Workspace {
        self.network.private_hosts = hosts;
        self
    }

    /// Replaces name resolution, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_name_resolver(mut self, resolver: Arc<dyn NameResolver>) -> Workspace {
        self.network.resolver = Some(resolver);
        self
    }
}

impl CallWorkspace {
    /// Opens a route to a host, spelled as [`HostAllowlist::canonical_name`] does. The grant must name the
    /// host, or the rules must allow it without approval.
    pub fn route_to_host(&self, host: &str) -> Result<HostRoute, Error> {
        if !self.grant().covers_or_allows(&ToolAccess::Fetch { host: host.to_owned() }) {
            return Err(Error::NotGranted { path: host.to_owned() });
        }
        let not_started = |reason: String| Error::NotStarted { reason };
        let WorkspaceNetworkSettings { private_hosts, enforced_hosts, resolver, upstream } =
            self.workspace().network.clone();
        let requested = HostAllowlist::parse(&[host.to_owned()])
            .map_err(|error| not_started(error.to_string()))?;
        let hosts = match enforced_hosts {
            None => requested,
            Some(enforced_hosts) => requested.intersect(enforced_hosts),
        };
        let open_route = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let port = listener.local_addr()?.port();
            let token = proxy::new_token()?;
            let refusal = Arc::new(OnceLock::new());
            let first_refusal = Arc::clone(&refusal);
            let report = move |decision: HostDecision| match decision.ruling {
                HostRuling::Allowed => {}
                HostRuling::Refused => {
                    first_refusal.get_or_init(|| decision.reason);
                }
            };
            let targets = ProxyHostSettings { hosts, private_hosts, resolver, upstream };
            let proxy = Proxy::serve_targets(listener, targets, &token, report)?;
            let proxy_url = format!(
                "http://{}:{}@127.0.0.1:{port}",
                proxy::PROXY_USER,
                proxy::percent_encode(&token)
            );
            Ok(HostRoute { _proxy: proxy, proxy_url, refusal })
        };
        open_route().map_err(|error: std::io::Error| not_started(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
