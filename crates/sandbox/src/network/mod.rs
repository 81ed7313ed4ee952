//! Network access for commands and web requests, through a proxy that filters by host.

#[cfg(target_os = "linux")]
pub(crate) mod command_network;
#[cfg(target_os = "linux")]
pub(crate) mod host_access_log;
pub(crate) mod host_route;
pub(crate) mod policy;
pub(crate) mod proxy;
