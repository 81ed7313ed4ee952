//! The hosts that commands and web requests may reach, by the configuration.

use crate::network::proxy::{HostAllowlist, NameResolver, UpstreamProxy};
use std::sync::Arc;

/// The hosts that commands may reach.
#[derive(Clone, Debug)]
pub enum NetworkPolicy {
    /// These hosts; an approval (`NetworkConsent::Granted`) can add more.
    Listed(HostAllowlist),
    /// These hosts and never more: the policy of this machine overrides approvals.
    Enforced(HostAllowlist),
}

/// Network settings of a workspace, in addition to the grant.
#[derive(Clone, Default)]
pub(crate) struct WorkspaceNetworkSettings {
    /// Hosts that may resolve to any address, including this machine.
    pub(super) private_hosts: HostAllowlist,
    /// The only reachable hosts, if the policy of this machine lists them.
    pub(super) enforced_hosts: Option<HostAllowlist>,
    /// Replaces the system's name resolution if set.
    pub(super) resolver: Option<Arc<dyn NameResolver>>,
    /// The proxy through which connections leave.
    pub(crate) upstream: Option<UpstreamProxy>,
}

impl std::fmt::Debug for WorkspaceNetworkSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkspaceNetwork")
            .field("private_hosts", &self.private_hosts)
            .finish_non_exhaustive()
    }
}

impl WorkspaceNetworkSettings {
    /// Adopts the hosts of a `NetworkPolicy::Enforced` as the upper bound.
    pub(crate) fn set_policy(&mut self, policy: &NetworkPolicy) {
        self.enforced_hosts = match policy {
            NetworkPolicy::Listed(_) => None,
            NetworkPolicy::Enforced(hosts) => Some(hosts.clone()),
        };
    }
}
