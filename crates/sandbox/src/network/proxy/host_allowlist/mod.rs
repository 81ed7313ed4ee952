//! Host lists, matched by name alone.
//!
//! Pure: this module resolves nothing. It normalizes a name before comparing it and refuses a name
//! that has no normal form instead of repairing it, because a later reader that repairs it
//! differently would reach another host than the one that was checked. Names match label by label,
//! never by a plain string suffix. `dial` checks the addresses of a name.

use super::host_groups::find_group;
use super::public_address::is_in_range;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Longest name that DNS allows.
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;
/// Ports that an entry without a port allows.
pub(super) const WEB_PORTS: [u16; 2] = [80, 443];

/// The error for an invalid entry of a [`HostAllowlist`] list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostAllowlistError {
    /// The entry is not a host.
    #[error(
        "invalid host {entry:?}: {reason}. Write it like example.com, *.example.com or \
         example.com:8443"
    )]
    Malformed { entry: String, reason: &'static str },
}

/// A host in the normalized form that is compared, resolved and dialed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// Lowercase, without the final dot.
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Parses a host from a client or the configuration; the error names the problem.
    pub(super) fn parse(text: &str) -> Result<Host, &'static str> {
        if let Some(rest) = text.strip_prefix('[') {
            let inner = rest.strip_suffix(']').ok_or("its closing bracket is missing")?;
            return parse_ipv6(inner);
        }
        if text.contains(':') && !text.contains(['/', '@']) {
            return parse_ipv6(text);
        }
        if !text.is_ascii() {
            return Err("it is not ASCII; write it in its xn-- form");
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() {
            return Err("it is empty");
        }
        if name.len() > MAX_NAME_BYTES {
            return Err("it is longer than 253 characters");
        }
        for label in name.split('.') {
            if label.is_empty() || label.len() > MAX_LABEL_BYTES {
                return Err("each part between dots must have 1 to 63 characters");
            }
            if !label.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
            }) {
                return Err("it contains a character that is invalid in a host name");
            }
        }
        if !ends_in_number(&name) {
            return Ok(Host::Name(name));
        }
        // Resolvers accept `127.1`, `0177.0.0.1`, `2130706433` and `0x7f000001` as addresses; only
        // one spelling is accepted here.
        let address = name.parse::<Ipv4Addr>();
        address
            .map(|address| Host::Address(address.into()))
            .map_err(|_| "it is an IP address in a nonstandard notation")
    }
}

fn parse_ipv6(text: &str) -> Result<Host, &'static str> {
    let address = text.parse::<Ipv6Addr>();
    address
        .map(|address| Host::Address(address.into()))
        .map_err(|_| "it is not a valid IPv6 address")
}

/// Returns true if a resolver could read the name as a numeric address.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_hex =
        last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    is_hex || last.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => address.fmt(f),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Splits text into host and port; brackets stay with the host.
pub(super) fn split_port(text: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        Some(_) | None => return Ok((text, None)),
    };
    let is_numeric =
        !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    let number = port.parse::<u16>().ok().filter(|number| is_numeric && *number != 0);
    number.map(|number| (host, Some(number))).ok_or("its port must be a number from 1 to 65535")
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    /// Every name. An address must be listed itself.
    Any,
    Exact(Host),
    /// Every address with the first bits of this one.
    Range(IpAddr, u32),
    /// Every name below this one, but not this one.
    Subdomains(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PortPattern {
    Web,
    One(u16),
    Any,
}

#[derive(Debug, Clone)]
struct HostAllowlistEntry {
    /// The entry as written.
    text: String,
    pattern: HostPattern,
    ports: PortPattern,
    /// The host may have addresses that are not public: the user named it in a file of their own.
    allows_private: bool,
}

impl HostAllowlistEntry {
    fn parse(text: &str) -> Result<HostAllowlistEntry, HostAllowlistError> {
        let malformed = |reason| HostAllowlistError::Malformed { entry: text.to_owned(), reason };
        let (host, port) = split_port(text).map_err(malformed)?;
        let ports = port.map_or(PortPattern::Web, PortPattern::One);
        let pattern = match host {
            "*" => HostPattern::Any,
            host if host.contains('/') => parse_range(host).map_err(malformed)?,
            host => match host.strip_prefix("*.") {
                None => HostPattern::Exact(Host::parse(host).map_err(malformed)?),
                Some(rest) => match Host::parse(rest).map_err(malformed)? {
                    Host::Address(_) => return Err(malformed("an IP address has no subdomains")),
                    Host::Name(name) if !name.contains('.') => {
                        return Err(malformed("it would allow a whole top-level domain"));
                    }
                    Host::Name(name) => HostPattern::Subdomains(name),
                },
            },
        };
        Ok(HostAllowlistEntry { text: text.to_owned(), pattern, ports, allows_private: false })
    }

    /// Returns true if the user may open private addresses with this entry. An entry for many names
    /// means public hosts.
    fn may_open_private(&self) -> bool {
        match self.pattern {
            HostPattern::Exact(_) | HostPattern::Range(..) => true,
            HostPattern::Any | HostPattern::Subdomains(_) => false,
        }
    }

    fn matches(&self, host: &Host, port: u16) -> bool {
        let port_matches = match self.ports {
            PortPattern::Web => WEB_PORTS.contains(&port),
            PortPattern::One(allowed) => allowed == port,
            PortPattern::Any => true,
        };
        port_matches
            && match (&self.pattern, host) {
                (HostPattern::Any, Host::Name(_)) => true,
                (HostPattern::Exact(listed), host) => listed == host,
                (HostPattern::Range(first, bits), Host::Address(address)) => {
                    is_in_range(*address, *first, *bits)
                }
                (HostPattern::Subdomains(parent), Host::Name(name)) => {
                    name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.ends_with('.'))
                }
                (HostPattern::Any | HostPattern::Subdomains(_), Host::Address(_))
                | (HostPattern::Range(..), Host::Name(_)) => false,
            }
    }
}

/// A list of hosts that may be reached. An empty list allows none.
#[derive(Debug, Clone, Default)]
pub struct HostAllowlist {
    entries: Vec<HostAllowlistEntry>,
    /// Second list that must also allow the host.
    restricted_to: Option<Arc<HostAllowlist>>,
}

impl HostAllowlist {
    /// Parses a list of names (`example.com`), subdomains (`*.example.com`), addresses, ranges of
    /// addresses (`10.0.0.0/8`), groups (`registries`, `git-hosts`), and `*` for every public host.
    /// An entry without a port allows ports 80 and 443.
    pub fn parse(list: &[String]) -> Result<HostAllowlist, HostAllowlistError> {
        let mut entries = Vec::new();
        for text in list {
            match find_group(text) {
                None => entries.push(HostAllowlistEntry::parse(text)?),
                Some(members) => {
                    for member in members {
                        entries.push(HostAllowlistEntry::parse(member)?);
                    }
                }
            }
        }
        Ok(HostAllowlist { entries, restricted_to: None })
    }

    /// Parses a list from a file of the user or the administrator. Unlike other lists, it can open
    /// private hosts, by their name, address or range of addresses. Groups contain public hosts
    /// only.
    pub fn parse_with_private(list: &[String]) -> Result<HostAllowlist, HostAllowlistError> {
        let mut hosts = HostAllowlist::parse(list)?;
        for entry in &mut hosts.entries {
            entry.allows_private = entry.may_open_private() && list.contains(&entry.text);
        }
        Ok(hosts)
    }

    /// Returns an empty list.
    pub fn none() -> HostAllowlist {
        HostAllowlist { entries: Vec::new(), restricted_to: None }
    }

    /// Returns the canonical spelling of a host, with its port unless that is 80 or 443. Rules
    /// match against it, and [`HostAllowlist::parse`] reads it as a list of this one host.
    pub fn canonical_name(host: &str, port: u16) -> Result<String, HostAllowlistError> {
        let host = Host::parse(host)
            .map_err(|reason| HostAllowlistError::Malformed { entry: host.to_owned(), reason })?;
        Ok(if WEB_PORTS.contains(&port) { host.to_string() } else { format!("{host}:{port}") })
    }

    /// Returns a list of every public host at every port, for one command whose network access the
    /// user approved.
    pub fn any() -> HostAllowlist {
        let any = HostAllowlistEntry {
            text: "*".to_owned(),
            pattern: HostPattern::Any,
            ports: PortPattern::Any,
            allows_private: false,
        };
        HostAllowlist { entries: vec![any], restricted_to: None }
    }

    /// Returns the list of package registries.
    #[cfg(target_os = "linux")]
    pub(crate) fn registries() -> HostAllowlist {
        HostAllowlist::parse(&["registries".to_owned()]).unwrap_or_default()
    }

    /// Returns true if the list allows no host.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() || self.restricted_to.as_ref().is_some_and(|hosts| hosts.is_empty())
    }

    /// Returns the hosts that either list allows.
    #[must_use]
    pub fn union(mut self, other: HostAllowlist) -> HostAllowlist {
        self.entries.extend(other.entries);
        self
    }

    /// Returns the hosts that both lists allow.
    #[must_use]
    pub(crate) fn intersect(mut self, other: HostAllowlist) -> HostAllowlist {
        self.restricted_to = Some(Arc::new(match self.restricted_to.take() {
            Some(previous) => other.intersect((*previous).clone()),
            None => other,
        }));
        self
    }

    /// Returns true if the list allows the host. Does not check the addresses of its name.
    #[cfg(test)]
    pub(crate) fn allows(&self, host: &str, port: u16) -> bool {
        Host::parse(host).is_ok_and(|host| self.matching_entry(&host, port).is_some())
    }

    /// Returns the entry that allows the host, as written.
    pub(super) fn matching_entry(&self, host: &Host, port: u16) -> Option<&str> {
        let entry = self.entries.iter().find(|entry| entry.matches(host, port))?;
        let is_excluded = self
            .restricted_to
            .as_ref()
            .is_some_and(|hosts| hosts.matching_entry(host, port).is_none());
        (!is_excluded).then_some(entry.text.as_str())
    }

    /// Returns true if the user named this host, which may be private.
    pub(super) fn allows_private(&self, host: &Host, port: u16) -> bool {
        self.entries.iter().any(|entry| entry.allows_private && entry.matches(host, port))
    }
}

/// Parses a range of addresses, such as `10.0.0.0/8`.
fn parse_range(text: &str) -> Result<HostPattern, &'static str> {
    let (address, bits) = text.split_once('/').unwrap_or((text, ""));
    let Host::Address(address) = Host::parse(address)? else {
        return Err("only an address can have a length after a slash");
    };
    let (min, max) = if address.is_ipv4() { (8, 32) } else { (16, 128) };
    let bits = bits.parse().ok().filter(|bits| (min..=max).contains(bits));
    let bits = bits.ok_or("the length after the slash must be 8 to 32, or 16 to 128 for IPv6")?;
    Ok(HostPattern::Range(address, bits))
}

#[cfg(test)]
mod tests;
