//! Addresses in the words of a command: this machine, and metadata services of clouds.

use crate::shell::ShellWord;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns true if the word is an address of this machine, such as `localhost` or `127.0.0.1`.
pub(super) fn is_loopback(text: &str) -> bool {
    let authority = authority(text);
    let host = authority.rsplit('@').next().unwrap_or(&authority);
    if let Some((address, _)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return address.parse().is_ok_and(is_loopback_v6);
    }
    let loopback_prefixes = ["127.", "localhost", "0.0.0.0", "0x7f", "2130706433"];
    loopback_prefixes.iter().any(|prefix| host.starts_with(prefix))
        || host.parse().is_ok_and(is_loopback_v6)
}

/// Returns the part of an address with the host and the port, in lower case.
fn authority(text: &str) -> String {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest).to_ascii_lowercase()
}

/// Returns true if the word certainly means this machine, and no name or port of another one.
fn is_exact_loopback(text: &str) -> bool {
    let authority = authority(text);
    let is_port = |port: &str| port.chars().all(|c| c.is_ascii_digit());
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if is_port(port) && !host.ends_with(':') => (host, port),
        Some(_) | None => (authority.as_str(), ""),
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    is_port(port)
        && (host == "localhost"
            || host.ends_with(".localhost")
            || host.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
            || address.unwrap_or(host).parse().is_ok_and(is_loopback_v6))
}

/// Options that send a request to another host than the one in its address.
const REDIRECTING_OPTIONS: [&str; 9] =
    ["--resolve", "--connect-to", "--proxy", "--preproxy", "--socks", "--doh", "--dns", "-x", "-e"];

/// Returns true if all addresses among the words are exactly this machine, and no option changes
/// where a request goes.
pub(super) fn reaches_only_loopback(words: &[ShellWord]) -> bool {
    let is_address = |text: &str| text.contains("://") || is_loopback(text);
    words.iter().all(|word| {
        let text = word.text();
        let is_redirected = REDIRECTING_OPTIONS.iter().any(|option| text.starts_with(option));
        // Without a network it is of no concern what an unknown part of an address means.
        let is_local = match word {
            ShellWord::Plain(_) => is_exact_loopback(text),
            ShellWord::Pattern(_) | ShellWord::Opaque(_) => is_loopback(text),
        };
        !is_redirected && (!is_address(text) || is_local)
    })
}

/// Returns true for an IPv6 address of this machine, such as `::1` or `::ffff:127.0.0.1`.
fn is_loopback_v6(address: Ipv6Addr) -> bool {
    let v4 = address.to_ipv4_mapped();
    address.is_loopback()
        || address.is_unspecified()
        || v4.is_some_and(|v4| v4.is_loopback() || v4.is_unspecified())
}

/// Returns true if the word names a metadata service, from which cloud machines obtain their keys,
/// such as `169.254.169.254`.
pub(super) fn is_cloud_metadata(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let hosts = [
        "169.254.169.254",
        "169.254.170.2",
        "metadata.google.internal",
        "fd00:ec2::254",
        "100.100.100.200",
        "//2852039166",
        "0xa9fea9fe",
    ];
    hosts.iter().any(|host| text.contains(host))
}
