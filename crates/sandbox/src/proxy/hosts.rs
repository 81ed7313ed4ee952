//! Which hosts may be reached, decided by their names alone.
//!
//! Pure: nothing is resolved here. A name is brought into one form before it is compared, and
//! what has no such form is refused rather than repaired, because whoever repairs it differently
//! later on would reach another host than the one that was checked. Names match label by label,
//! never by their last characters. What a name leads to is checked in `dial`.

use super::groups::group;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The longest name that the domain name system knows.
const LONGEST: usize = 253;
const LONGEST_LABEL: usize = 63;
/// The ports that an entry without one opens.
const WEB: [u16; 2] = [80, 443];

/// Why an entry cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It names no host.
    #[error(
        "{entry:?} is not a host: {reason}. Write it like example.com, *.example.com or example.com:8443"
    )]
    Malformed {
        /// As it was written.
        entry: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// One host in the only form that is compared, resolved and dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// Lower case, without the final dot.
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Reads one host as a client or a config wrote it; the error says what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Host, &'static str> {
        if let Some(rest) = text.strip_prefix('[') {
            let inner = rest.strip_suffix(']').ok_or("its bracket is not closed")?;
            return six(inner);
        }
        if text.contains(':') && !text.contains(['/', '@']) {
            return six(text);
        }
        if !text.is_ascii() {
            return Err("it is not ASCII; write it in its xn-- form");
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() {
            return Err("it is empty");
        }
        if name.len() > LONGEST {
            return Err("it is longer than 253 characters");
        }
        for label in name.split('.') {
            if label.is_empty() || label.len() > LONGEST_LABEL {
                return Err("each part between its dots must have 1 to 63 characters");
            }
            if !label.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
            }) {
                return Err("it has a character that no host name has");
            }
        }
        if !ends_in_number(&name) {
            return Ok(Host::Name(name));
        }
        // Resolvers take 127.1, 0177.0.0.1, 2130706433 and 0x7f000001 for addresses; this takes
        // one spelling of each.
        let four = name.parse::<Ipv4Addr>();
        four.map(|four| Host::Address(four.into()))
            .map_err(|_| "it is an address in an unusual spelling")
    }
}

fn six(text: &str) -> Result<Host, &'static str> {
    let six = text.parse::<Ipv6Addr>();
    six.map(|six| Host::Address(six.into())).map_err(|_| "it is not an IPv6 address")
}

/// Whether some resolver could take it for a number instead of a name.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let hex =
        last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    hex || last.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(four)) => four.fmt(f),
            Host::Address(IpAddr::V6(six)) => write!(f, "[{six}]"),
        }
    }
}

/// Takes a host and its port apart; brackets stay with the host.
pub(super) fn split_port(text: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        Some(_) | None => return Ok((text, None)),
    };
    let digits = !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    let number = port.parse::<u16>().ok().filter(|number| digits && *number != 0);
    number.map(|number| (host, Some(number))).ok_or("its port is not a number from 1 to 65535")
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// Every name; addresses are reached only when they are listed themselves.
    Any,
    Exactly(Host),
    /// Every name below this one, but not this one.
    Below(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    Web,
    One(u16),
    Every,
}

#[derive(Debug, Clone)]
struct Entry {
    /// As it was written.
    text: String,
    pattern: Pattern,
    ports: Ports,
}

impl Entry {
    fn parse(text: &str) -> Result<Entry, HostError> {
        let malformed = |reason| HostError::Malformed { entry: text.to_owned(), reason };
        let (host, port) = split_port(text).map_err(malformed)?;
        let ports = port.map_or(Ports::Web, Ports::One);
        let pattern = match host {
            "*" => Pattern::Any,
            host => match host.strip_prefix("*.") {
                None => Pattern::Exactly(Host::read(host).map_err(malformed)?),
                Some(rest) => match Host::read(rest).map_err(malformed)? {
                    Host::Address(_) => return Err(malformed("an address has nothing below it")),
                    Host::Name(name) if !name.contains('.') => {
                        return Err(malformed("it would open a whole top-level domain"));
                    }
                    Host::Name(name) => Pattern::Below(name),
                },
            },
        };
        Ok(Entry { text: text.to_owned(), pattern, ports })
    }

    fn matches(&self, host: &Host, port: u16) -> bool {
        let open = match self.ports {
            Ports::Web => WEB.contains(&port),
            Ports::One(one) => one == port,
            Ports::Every => true,
        };
        open && match (&self.pattern, host) {
            (Pattern::Any, Host::Name(_)) => true,
            (Pattern::Exactly(listed), host) => listed == host,
            (Pattern::Below(parent), Host::Name(name)) => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (Pattern::Any | Pattern::Below(_), Host::Address(_)) => false,
        }
    }
}

/// The hosts that may be reached. An empty list is none at all.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    listed: Vec<Entry>,
    /// Only what is on this list as well.
    within: Option<Arc<Hosts>>,
}

impl Hosts {
    /// Reads a list: names (`example.com`), all names below one (`*.example.com`), each with a
    /// port or for 80 and 443, addresses, groups (`registries`, `git-hosts`), and `*` for every
    /// public host.
    pub fn parse(list: &[String]) -> Result<Hosts, HostError> {
        let mut entries = Vec::new();
        for text in list {
            match group(text) {
                None => entries.push(Entry::parse(text)?),
                Some(members) => {
                    for member in members {
                        entries.push(Entry::parse(member)?);
                    }
                }
            }
        }
        Ok(Hosts { listed: entries, within: None })
    }

    /// Nothing.
    pub fn none() -> Hosts {
        Hosts { listed: Vec::new(), within: None }
    }

    /// The only spelling of a host, with its port unless that is one of the web's: what rules are
    /// matched against, and what a list of this one host is read from.
    pub fn spell(host: &str, port: u16) -> Result<String, HostError> {
        let read = Host::read(host)
            .map_err(|reason| HostError::Malformed { entry: host.to_owned(), reason })?;
        Ok(if WEB.contains(&port) { read.to_string() } else { format!("{read}:{port}") })
    }

    /// Every public host at every port: a person said yes to the network for one command.
    pub fn any() -> Hosts {
        let any = Entry { text: "*".to_owned(), pattern: Pattern::Any, ports: Ports::Every };
        Hosts { listed: vec![any], within: None }
    }

    /// True if nothing may be reached.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() || self.within.as_ref().is_some_and(|hosts| hosts.is_empty())
    }

    /// What either may.
    #[must_use]
    pub(crate) fn and(mut self, more: Hosts) -> Hosts {
        self.listed.extend(more.listed);
        self
    }

    /// What both may.
    #[must_use]
    pub(crate) fn within(mut self, others: Hosts) -> Hosts {
        self.within = Some(Arc::new(match self.within.take() {
            Some(before) => others.within((*before).clone()),
            None => others,
        }));
        self
    }

    /// Whether this host may be asked for. What its name leads to is another question.
    #[cfg(test)]
    pub(crate) fn allows(&self, host: &str, port: u16) -> bool {
        Host::read(host).is_ok_and(|host| self.rule(&host, port).is_some())
    }

    /// The entry that allows it, as it was written.
    pub(super) fn rule(&self, host: &Host, port: u16) -> Option<&str> {
        let entry = self.listed.iter().find(|entry| entry.matches(host, port))?;
        let held = self.within.as_ref().is_some_and(|hosts| hosts.rule(host, port).is_none());
        (!held).then_some(entry.text.as_str())
    }
}

#[cfg(test)]
mod tests;
