//! Tests of host lists: names that match, similar names that do not, and invalid entries.

use super::super::host_groups;
use super::{Host, HostAllowlist, split_port};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_assume, proptest};

fn parse_hosts(list: &[&str]) -> HostAllowlist {
    let list: Vec<String> = list.iter().map(|each| (*each).to_owned()).collect();
    HostAllowlist::parse(&list).unwrap()
}

fn parse_error(entry: &str) -> String {
    HostAllowlist::parse(&[entry.to_owned()]).unwrap_err().to_string()
}

#[test]
fn an_empty_list_allows_nothing() {
    for empty in [parse_hosts(&[]), HostAllowlist::none()] {
        for host in ["example.com", "localhost", "8.8.8.8", "[::1]", "", "."] {
            for port in [0, 53, 80, 443] {
                assert!(!empty.allows(host, port), "{host}:{port}");
            }
        }
    }
}

#[test]
fn a_name_matches_in_any_case_and_with_its_final_dot() {
    let list = parse_hosts(&["Example.COM", "*.Wide.example.", "xn--bcher-kva.example"]);
    for host in [
        "example.com",
        "EXAMPLE.com.",
        "a.wide.example",
        "a.b.WIDE.example.",
        "xn--bcher-kva.example",
    ] {
        assert!(list.allows(host, 443) && list.allows(host, 80), "{host}");
        assert!(!list.allows(host, 22) && !list.allows(host, 8443), "{host}");
    }
    assert!(!list.allows("wide.example", 443), "the apex is not its own subdomain");
}

#[test]
fn a_similar_name_does_not_match() {
    let list = parse_hosts(&["allowed.com", "*.allowed.com"]);
    for host in [
        "allowed.com.evil.io",
        "evilallowed.com",
        "allowed.comevil",
        "user:allowed.com@evil.io",
        "allowed.com@evil.io",
        "evil.io#.allowed.com",
        "evil.io/.allowed.com",
        "evil.io?.allowed.com",
        "evil.io\\.allowed.com",
        "evil.io%00.allowed.com",
        "evil.io\0.allowed.com",
        "evil.io .allowed.com",
        "evil.io\n.allowed.com",
        "evil.io\r\n.allowed.com",
        "evil.io\t.allowed.com",
        "evil.io\u{7f}.allowed.com",
        "evil.io:80.allowed.com",
        "[evil.io].allowed.com",
        "evil.io,allowed.com",
        "evil.io;.allowed.com",
        " allowed.com",
        "allowed.com ",
        "allowed.com..",
        ".allowed.com",
        "a..allowed.com",
        "..",
        "allowed.com:443",
        "http://allowed.com",
        "*.allowed.com",
        "*",
        "ällowed.com",
        "аllowed.com",
        "allowed\u{3002}com",
        "allowed\u{ad}.com",
        "evil\u{ff0e}allowed.com",
        "ａllowed.com",
        "com",
        "",
        "evil.io'.allowed.com",
        "evil.io\".allowed.com",
        "evil.io&.allowed.com",
        "evil.io+.allowed.com",
    ] {
        assert!(!list.allows(host, 443), "{host:?}");
    }
}

#[test]
fn an_address_does_not_match_a_name_in_any_spelling() {
    let list = parse_hosts(&["*", "example.com"]);
    for host in [
        "127.0.0.1",
        "127.1",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0",
        "0x",
        "127.0.0.1.",
        "127.0.0.0x1",
        "1.2.3.4.5",
        "256.256.256.256",
        "example.com.1",
        "8.8.8.8",
        "[::1]",
        "::1",
        "[::ffff:127.0.0.1]",
        "::ffff:8.8.8.8",
        "[fe80::1%eth0]",
        "fe80::1%25eth0",
        "[2606:4700:4700::1111]",
        "[::1",
        "::1]",
        "[127.0.0.1]",
        "[example.com]",
        "[]",
        "[[::1]]",
    ] {
        assert!(!list.allows(host, 443), "{host:?}");
        assert!(!HostAllowlist::any().allows(host, 443), "{host:?}");
    }
}

#[test]
fn a_listed_address_is_allowed() {
    let list = parse_hosts(&["8.8.8.8", "[2606:4700:4700::1111]:853", "2001:4860:4860::8888"]);
    assert!(
        list.allows("8.8.8.8", 443)
            && !list.allows("8.8.8.9", 443)
            && !list.allows("8.8.2056", 443)
    );
    assert!(list.allows("[2606:4700:4700:0::1111]", 853));
    assert!(!list.allows("[2606:4700:4700::1111]", 443));
    assert!(list.allows("2001:4860:4860::8888", 443));
    assert!(!list.allows("[::ffff:8.8.8.8]", 443), "another spelling of a listed address");
}

#[test]
fn a_listed_port_allows_only_itself() {
    let list = parse_hosts(&["example.com:8443", "*.deep.example:22"]);
    assert!(list.allows("example.com", 8443) && list.allows("a.deep.example", 22));
    for port in [80, 443, 22, 8444, 0] {
        assert!(!list.allows("example.com", port), "{port}");
    }
    for entry in
        ["a.b:0", "a.b:65536", "a.b:", "a.b:+80", "a.b:080000", "a.b:8o", "a.b: 80", "[::1]:x"]
    {
        assert!(HostAllowlist::parse(&[entry.to_owned()]).is_err(), "{entry}");
    }
    assert_eq!(split_port("::1"), Ok(("::1", None)));
    assert_eq!(split_port("[::1]:8"), Ok(("[::1]", Some(8))));
}

#[test]
fn an_invalid_entry_says_why() {
    assert!(parse_error("https://example.com/").contains("Write it like example.com"));
    assert!(parse_error("*.com").contains("top-level domain"));
    assert!(parse_error("*.1.2.3.4").contains("no subdomains"));
    assert!(parse_error("bücher.example").contains("xn--"));
    for entry in
        ["", "*.", "**", "*.*.com", "a.*.com", "exa*.com", "*example.com", "127.1", "a b", "-*"]
    {
        let _ = parse_error(entry);
    }
}

#[test]
fn a_star_allows_every_name_on_web_ports() {
    let star = ["*".to_owned()];
    let list = HostAllowlist::parse(&star).unwrap();
    assert!(list.allows("example.com", 443) && !list.allows("example.com", 22));
    assert!(HostAllowlist::any().allows("example.com", 22));
}

#[test]
fn groups_contain_known_hosts_and_are_off_until_listed() {
    for name in host_groups::group_names() {
        let members = host_groups::find_group(name).unwrap();
        assert!(members.is_sorted(), "{name}");
        let list = HostAllowlist::parse(&[name.to_owned()]).unwrap();
        for member in members {
            assert!(list.allows(member, 443), "{member}");
            assert!(!list.allows(&format!("evil.{member}"), 443) && !list.allows(member, 22));
            assert!(!HostAllowlist::none().allows(member, 443));
        }
        assert!(!list.allows(name, 443), "the group is not a host");
    }
}

/// Generates a label that is not a number in any spelling, such as `0xa`.
fn any_label() -> impl Strategy<Value = String> {
    "[a-z0-9_-]{0,6}[g-w]"
}

fn any_name() -> impl Strategy<Value = String> {
    proptest::collection::vec(any_label(), 1..5).prop_map(|labels| labels.join("."))
}

proptest! {
    #[test]
    fn a_host_is_allowed_exactly_if_its_labels_match(
        listed in any_name(),
        host in any_name(),
        deeper in any_name(),
    ) {
        let exact = parse_hosts(&[&listed]);
        prop_assert_eq!(exact.allows(&host, 443), host == listed);
        prop_assert!(exact.allows(&listed, 443));
        if !listed.contains('.') {
            return Ok(());
        }
        let below = parse_hosts(&[&format!("*.{listed}")]);
        let mut parts: Vec<&str> = host.split('.').collect();
        let mut wanted: Vec<&str> = listed.split('.').collect();
        parts.reverse();
        wanted.reverse();
        let is_below = parts.len() > wanted.len() && parts.starts_with(&wanted);
        prop_assert_eq!(below.allows(&host, 443), is_below);
        let child = format!("{deeper}.{listed}");
        prop_assert!(below.allows(&child, 443));
        prop_assert!(!exact.allows(&child, 443) && !below.allows(&listed, 443));
    }

    #[test]
    fn added_text_never_allows_another_host(
        listed in any_name(),
        junk in ".{1,12}",
        host in any_name(),
    ) {
        prop_assume!(host != listed);
        let list = parse_hosts(&[&listed]);
        for text in [
            format!("{junk}{listed}"),
            format!("{listed}{junk}"),
            format!("{host}{junk}{listed}"),
            format!("{listed}{junk}{host}"),
        ] {
            let same = text.eq_ignore_ascii_case(&listed)
                || text.eq_ignore_ascii_case(&format!("{listed}."));
            prop_assert!(same || !list.allows(&text, 443), "{text:?}");
        }
    }

    #[test]
    fn any_text_parses_or_fails_and_hosts_round_trip(text in any::<String>()) {
        if let Ok(host) = Host::parse(&text) {
            let again = Host::parse(&host.to_string());
            prop_assert_eq!(again, Ok(host.clone()));
            if let Host::Name(name) = host {
                prop_assert!(name.len() <= 253);
                prop_assert!(name.bytes().all(|b| b.is_ascii_lowercase()
                    || b.is_ascii_digit()
                    || b"-_.".contains(&b)));
            }
        }
        let _ = HostAllowlist::parse(&[text]);
    }

    #[test]
    fn an_invalid_byte_makes_a_name_invalid(
        before in any_name(),
        after in any_name(),
        byte in 0_u8..=127,
    ) {
        let plain = byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let text = format!("{before}{}{after}", byte as char);
        prop_assert_eq!(Host::parse(&text).is_ok(), plain, "{:?}", text);
    }
}

#[test]
fn name_lengths_are_limited_as_in_dns() {
    let label = "a".repeat(63);
    assert!(Host::parse(&label).is_ok());
    assert!(Host::parse(&"a".repeat(64)).is_err());
    let longest = [label.as_str(), &label, &label, &"a".repeat(61)].join(".");
    assert_eq!(longest.len(), 253);
    assert!(Host::parse(&longest).is_ok() && Host::parse(&format!("{longest}.")).is_ok());
    assert!(Host::parse(&format!("a{longest}")).is_err());
}

#[test]
fn an_intersection_allows_only_hosts_on_both_lists() {
    let both = parse_hosts(&["*.example.com", "a.org", "b.org:22"])
        .intersect(parse_hosts(&["x.example.com", "*"]));
    assert!(both.allows("x.example.com", 443) && both.allows("a.org", 80));
    assert!(!both.allows("b.org", 22), "a star allows only web ports");
    assert!(!both.allows("c.org", 443));
    let narrow = parse_hosts(&["*"]).intersect(parse_hosts(&["a.org"]));
    assert!(narrow.allows("a.org", 443) && !narrow.allows("b.org", 443));
    let three = narrow.clone().intersect(parse_hosts(&["b.org"]));
    assert!(!three.allows("a.org", 443) && !three.allows("b.org", 443));
    assert!(parse_hosts(&["*"]).intersect(HostAllowlist::none()).is_empty());
    assert!(!narrow.is_empty());
}

#[test]
fn ranges_match_addresses_with_the_same_first_bits() {
    let list = parse_hosts(&["10.0.0.0/8:443", "192.168.7.0/24", "fd12::/16", "9.9.9.9/32"]);
    for (host, port, expected) in [
        ("10.0.0.1", 443, true),
        ("10.255.255.255", 443, true),
        ("10.0.0.1", 80, false),
        ("11.0.0.1", 443, false),
        ("192.168.7.9", 80, true),
        ("192.168.8.9", 80, false),
        ("[fd12::9]", 443, true),
        ("[fd13::9]", 443, false),
        ("9.9.9.9", 443, true),
        ("9.9.9.8", 443, false),
        ("[::ffff:10.0.0.1]", 443, false),
        ("ten.example", 443, false),
    ] {
        assert_eq!(list.allows(host, port), expected, "{host}:{port}");
    }
    for entry in
        ["10.0.0.0/7", "0.0.0.0/0", "10.0.0.0/33", "::/8", "a.example/8", "10.0.0.0/", "1/8"]
    {
        assert!(parse_error(entry).starts_with("invalid host"), "{entry}");
    }
}

#[test]
fn only_an_entry_for_one_network_opens_private_addresses() {
    let list = |list: &[&str]| {
        let list: Vec<String> = list.iter().map(|each| (*each).to_owned()).collect();
        HostAllowlist::parse_with_private(&list).unwrap()
    };
    let hosts = list(&["git.corp.example", "10.0.0.0/8", "*.wide.example", "*", "127.0.0.1:4873"]);
    let is_private = |host: &str, port| hosts.allows_private(&Host::parse(host).unwrap(), port);
    assert!(is_private("git.corp.example", 443) && is_private("10.1.2.3", 80));
    assert!(is_private("127.0.0.1", 4873) && !is_private("127.0.0.1", 80));
    assert!(!is_private("a.wide.example", 443) && !is_private("other.example", 443));
    let plain = parse_hosts(&["git.corp.example", "10.0.0.0/8"]);
    assert!(!plain.allows_private(&Host::parse("git.corp.example").unwrap(), 443));
}
