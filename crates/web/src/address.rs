//! Which host an address leads to, decided by its text alone.
//!
//! Pure. What a person is asked about and what is fetched come from the same reading, and what could
//! be read in two ways is refused rather than repaired: `http://127.1` and `http://0x7f.1` name no
//! host here. What a name leads to is checked where it is dialled.

use url::{Host, Url};
use windlass_sandbox::Hosts;
use windlass_toolkit::Failure;

/// The longest address.
const LONGEST: usize = 2048;

/// Reads an address, and spells its host as rules know it.
pub fn address(text: &str) -> Result<(Url, String), Failure> {
    let text = text.trim();
    let no = |why: &str| Failure::new(format!("the address cannot be fetched: {why}"));
    if text.len() > LONGEST {
        return Err(no(&format!("it has more than {LONGEST} characters")));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(no("it has characters that addresses do not have; write spaces as %20"));
    }
    let lower = text.to_ascii_lowercase();
    let rest = ["https://", "http://"].iter().find_map(|start| lower.strip_prefix(start));
    let Some(rest) = rest else {
        return Err(no("it must begin with https:// or http://"));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(no("it holds a name or password; leave it out"));
    }
    let mut url = Url::parse(text).map_err(|error| no(&error.to_string()))?;
    let Some(port) = url.port_or_known_default().filter(|port| *port != 0) else {
        return Err(no("its port is not a number from 1 to 65535"));
    };
    let written = host_of(authority);
    let read = url.host_str().unwrap_or_default().to_owned();
    let spelled = Hosts::spell(&read, port).map_err(|error| no(&error.to_string()))?;
    let same = match url.host() {
        Some(Host::Domain(_)) if !written.is_ascii() => true,
        Some(Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_)) => {
            Hosts::spell(written, port).is_ok_and(|other| other == spelled)
        }
        None => false,
    };
    if !same {
        return Err(no(&format!("{written:?} is a host in an unusual spelling; write {read}")));
    }
    // A final dot means nothing, and some servers take it for another name.
    if let Some(plain) = read.strip_suffix('.') {
        url.set_host(Some(plain)).map_err(|error| no(&error.to_string()))?;
    }
    url.set_fragment(None);
    Ok((url, spelled))
}

/// A host without its port; brackets stay.
fn host_of(authority: &str) -> &str {
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
    fn hosts_are_spelled_in_one_way() {
        for (text, url, host) in [
            ("https://Docs.RS/a?b#c", "https://docs.rs/a?b", "docs.rs"),
            ("http://docs.rs.:80", "http://docs.rs/", "docs.rs"),
            ("https://docs.rs:443/", "https://docs.rs/", "docs.rs"),
            ("http://docs.rs:8080/x", "http://docs.rs:8080/x", "docs.rs:8080"),
            ("http://192.0.2.1/", "http://192.0.2.1/", "192.0.2.1"),
            ("http://[2001:DB8::1]:81", "http://[2001:db8::1]:81/", "[2001:db8::1]:81"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ] {
            let (found, spelled) = address(text).unwrap();
            assert_eq!((found.as_str(), spelled.as_str()), (url, host), "{text}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
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
            ("http://a.example..", "not a host"),
            ("http://a.example\\@b.example", "characters"),
            ("http://a.example/a b", "characters"),
            ("http://a.example/\u{0}", "characters"),
            ("http://a.example:0", "port"),
            ("http://a.example:99999", "port"),
            ("http://", "empty host"),
        ] {
            let error = address(text).unwrap_err().text;
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(address(&format!("http://a.example/{}", "a".repeat(2048))).is_err());
    }

    proptest! {
        #[test]
        fn what_is_read_is_read_the_same_again(text in "https?://[a-zA-Z0-9.:@/?#%\\[\\]é-]{1,40}") {
            if let Ok((url, host)) = address(&text) {
                prop_assert_eq!(address(url.as_str()), Ok((url.clone(), host.clone())));
                let port = url.port_or_known_default().unwrap();
                prop_assert_eq!(Hosts::spell(url.host_str().unwrap(), port).unwrap(), host);
            }
        }
    }
}
