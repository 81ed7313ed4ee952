//! Which addresses a server may have. A project's server has to be a public one: a config that came with
//! somebody's repository never leads into the network of whoever reads it.

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};
use windlass_sandbox::is_public;
use windlass_toolkit::Failure;

/// Where a server may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Wherever the person says.
    Anywhere,
    /// At a public address, by https.
    Public,
}

/// An address that can be asked.
pub(super) fn address(reach: Reach, text: &str) -> Result<Url, Failure> {
    let wrong = |why: &str| Failure::new(format!("`{text}` {why}; change the config"));
    let url = Url::parse(text).map_err(|_| wrong("is no address of a server"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("is no address of a server: it begins with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Failure::new(
            "the address of a server holds a password; put it into `headers` instead",
        ));
    }
    if reach == Reach::Public {
        if url.scheme() != "https" {
            return Err(wrong("is a project's server, which has to be reached by https"));
        }
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.parse::<IpAddr>().is_ok_and(|ip| !is_public(ip)) {
            return Err(wrong("is a project's server, which has to be public"));
        }
    }
    Ok(url)
}

/// Finds the addresses of names, all of which have to be public.
pub(super) struct Public;

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if let Some(inside) = found.iter().find(|address| !is_public(address.ip())) {
                let why = format!(
                    "{name} leads to {}, and a project's server has to be public",
                    inside.ip()
                );
                return Err(why.into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}
