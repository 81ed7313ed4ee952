//! Restrictions on server addresses. A server from a project's config must be public: a config that
//! comes with a repository never leads into the user's private network.

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};
use windlass_sandbox::{is_public, is_public_or_fake};
use windlass_toolkit::CallFailure;

/// The addresses that a server may have; `check_url` and `PublicOnlyResolver` enforce it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressPolicy {
    /// Any address, for servers that the user configured.
    Anywhere,
    /// Public addresses over https only.
    PublicOnly,
}

/// Parses a server URL and checks it against an `AddressPolicy`.
pub(super) fn check_url(address_policy: AddressPolicy, text: &str) -> Result<Url, CallFailure> {
    let invalid = |reason: &str| CallFailure::new(format!("`{text}` {reason}; change the config"));
    let url = Url::parse(text).map_err(|_| invalid("is not a valid server URL"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(invalid("is not a valid server URL: it must start with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(CallFailure::new(
            "the server URL contains a password; put it into `headers` instead",
        ));
    }
    if address_policy == AddressPolicy::PublicOnly {
        if url.scheme() != "https" {
            return Err(invalid("belongs to a project's server, which must use https"));
        }
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.parse::<IpAddr>().is_ok_and(|ip| !is_public(ip)) {
            return Err(invalid("belongs to a project's server, which must be public"));
        }
    }
    Ok(url)
}

/// A DNS resolver that rejects a name unless all of its addresses are public.
pub(super) struct PublicOnlyResolver;

impl Resolve for PublicOnlyResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let addresses: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if let Some(private) = addresses.iter().find(|address| !is_public_or_fake(address.ip()))
            {
                let message = format!(
                    "{name} resolves to {}, but a project's server must be public",
                    private.ip()
                );
                return Err(message.into());
            }
            let addresses: Addrs = Box::new(addresses.into_iter());
            Ok(addresses)
        })
    }
}
