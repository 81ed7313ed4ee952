//! Parses URLs and determines their host from the text alone.
//!
//! This module performs no I/O. The permission request and the fetch use the same parse, and an
//! ambiguous URL is rejected rather than repaired: `http://127.1` and `http://0x7f.1` name no host
//! here. The address that a name resolves to is checked when the connection is made.

use url::{Host, Url};
use windlass_sandbox::HostAllowlist;
use windlass_toolkit::CallFailure;

const MAX_URL_BYTES: usize = 2048;

/// Parses a URL, and returns its host in the form that permission rules use.
pub fn parse_url(text: &str) -> Result<(Url, String), CallFailure> {
    let text = text.trim();
    let invalid = |reason: &str| CallFailure::new(format!("the URL cannot be fetched: {reason}"));
    if text.len() > MAX_URL_BYTES {
        return Err(invalid(&format!("it is longer than {MAX_URL_BYTES} characters")));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(invalid("it contains invalid characters; write spaces as %20"));
    }
    let lower = text.to_ascii_lowercase();
    let rest = ["https://", "http://"].iter().find_map(|start| lower.strip_prefix(start));
    let Some(rest) = rest else {
        return Err(invalid("it must start with https:// or http://"));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(invalid("it contains a user name or password; remove it"));
    }
    let mut url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
    let Some(port) = url.port_or_known_default().filter(|port| *port != 0) else {
        return Err(invalid("its port must be a number from 1 to 65535"));
    };
    let raw_host = host_without_port(authority);
    let host = url.host_str().unwrap_or_default().to_owned();
    let canonical =
        HostAllowlist::canonical_name(&host, port).map_err(|error| invalid(&error.to_string()))?;
    let is_canonical = match url.host() {
        Some(Host::Domain(_)) if !raw_host.is_ascii() => true,
        Some(Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_)) => {
            HostAllowlist::canonical_name(raw_host, port).is_ok_and(|other| other == canonical)
        }
        None => false,
    };
    if !is_canonical {
        return Err(invalid(&format!(
            "the host {raw_host:?} has an unusual spelling; write {host}"
        )));
    }
    // A trailing dot means nothing, but some servers treat it as another name.
    if let Some(without_dot) = host.strip_suffix('.') {
        url.set_host(Some(without_dot)).map_err(|error| invalid(&error.to_string()))?;
    }
    url.set_fragment(None);
    Ok((url, canonical))
}

/// Returns a host without its port, with the brackets of IPv6.
fn host_without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, _)) if host.ends_with(']') || !host.contains(':') => host,
        Some(_) | None => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_are_normalized() {
        for (text, url, host) in [
            ("https://Docs.RS/a?b#c", "https://docs.rs/a?b", "docs.rs"),
            ("http://docs.rs.:80", "http://docs.rs/", "docs.rs"),
            ("https://docs.rs:443/", "https://docs.rs/", "docs.rs"),
            ("http://docs.rs:8080/x", "http://docs.rs:8080/x", "docs.rs:8080"),
            ("http://192.0.2.1/", "http://192.0.2.1/", "192.0.2.1"),
            ("http://[2001:DB8::1]:81", "http://[2001:db8::1]:81/", "[2001:db8::1]:81"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ] {
            let (parsed_url, parsed_host) = parse_url(text).unwrap();
            assert_eq!((parsed_url.as_str(), parsed_host.as_str()), (url, host), "{text}");
        }
    }

    #[test]
    fn ambiguous_urls_are_rejected() {
        for (text, why) in [
            ("ftp://a.example", "https://"),
            ("docs.rs/x", "https://"),
            ("file:///etc/passwd", "https://"),
            ("http://user:pw@a.example", "password"),
            ("http://a.example@b.example", "password"),
            ("http://127.1/", "unusual"),
            ("http://0x7f000001/", "unusual"),
            ("http://2130706433/", "unusual"),
            ("http://0177.0.0.1/", "unusual"),
            ("http://１２７.0.0.1/", "unusual"),
            ("http://%31%32%37.0.0.1/", "unusual"),
            ("http://a.example..", "invalid host"),
            ("http://a.example\\@b.example", "characters"),
            ("http://a.example/a b", "characters"),
            ("http://a.example/\u{0}", "characters"),
            ("http://a.example:0", "port"),
            ("http://a.example:99999", "port"),
            ("http://", "empty host"),
        ] {
            let error = parse_url(text).unwrap_err().text;
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(parse_url(&format!("http://a.example/{}", "a".repeat(2048))).is_err());
    }

    proptest! {
        #[test]
        fn a_parsed_url_parses_to_itself(text in "https?://[a-zA-Z0-9.:@/?#%\\[\\]é-]{1,40}") {
            if let Ok((url, host)) = parse_url(&text) {
                prop_assert_eq!(parse_url(url.as_str()), Ok((url.clone(), host.clone())));
                let port = url.port_or_known_default().unwrap();
                prop_assert_eq!(HostAllowlist::canonical_name(url.host_str().unwrap(), port).unwrap(), host);
            }
        }
    }
}
