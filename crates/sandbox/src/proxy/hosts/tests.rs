//! Names that match, names that only look as if, and lists that open nothing.

use super::super::groups;
use super::{Host, Hosts, split_port};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_assume, proptest};

fn hosts(list: &[&str]) -> Hosts {
    let list: Vec<String> = list.iter().map(|each| (*each).to_owned()).collect();
    Hosts::parse(&list).unwrap()
}

fn error(entry: &str) -> String {
    Hosts::parse(&[entry.to_owned()]).unwrap_err().to_string()
}

#[test]
fn an_empty_list_opens_nothing() {
    for empty in [hosts(&[]), Hosts::none()] {
        for host in ["example.com", "localhost", "8.8.8.8", "[::1]", "", "."] {
            for port in [0, 53, 80, 443] {
                assert!(!empty.allows(host, port), "{host}:{port}");
            }
        }
    }
}

#[test]
fn a_name_matches_in_any_case_and_with_its_final_dot() {
    let list = hosts(&["Example.COM", "*.Wide.example.", "xn--bcher-kva.example"]);
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
    assert!(!list.allows("wide.example", 443), "the apex is not below itself");
}

#[test]
fn a_name_that_only_looks_alike_does_not_match() {
    let list = hosts(&["allowed.com", "*.allowed.com"]);
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
fn every_spelling_of_an_address_is_refused_by_names() {
    let list = hosts(&["*", "example.com"]);
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
        assert!(!Hosts::any().allows(host, 443), "{host:?}");
    }
}

#[test]
fn an_address_is_reached_when_it_is_listed_itself() {
    let list = hosts(&["8.8.8.8", "[2606:4700:4700::1111]:853", "2001:4860:4860::8888"]);
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
fn a_port_opens_itself_only() {
    let list = hosts(&["example.com:8443", "*.deep.example:22"]);
    assert!(list.allows("example.com", 8443) && list.allows("a.deep.example", 22));
    for port in [80, 443, 22, 8444, 0] {
        assert!(!list.allows("example.com", port), "{port}");
    }
    for entry in
        ["a.b:0", "a.b:65536", "a.b:", "a.b:+80", "a.b:080000", "a.b:8o", "a.b: 80", "[::1]:x"]
    {
        assert!(Hosts::parse(&[entry.to_owned()]).is_err(), "{entry}");
    }
    assert_eq!(split_port("::1"), Ok(("::1", None)));
    assert_eq!(split_port("[::1]:8"), Ok(("[::1]", Some(8))));
}

#[test]
fn entries_that_name_no_host_say_why() {
    assert!(error("https://example.com/").contains("Write it like example.com"));
    assert!(error("*.com").contains("top-level domain"));
    assert!(error("*.1.2.3.4").contains("nothing below"));
    assert!(error("bücher.example").contains("xn--"));
    for entry in
        ["", "*.", "**", "*.*.com", "a.*.com", "exa*.com", "*example.com", "127.1", "a b", "-*"]
    {
        let _ = error(entry);
    }
}

#[test]
fn a_star_is_every_name_at_the_ports_of_the_web() {
    let star = ["*".to_owned()];
    let list = Hosts::parse(&star).unwrap();
    assert!(list.allows("example.com", 443) && !list.allows("example.com", 22));
    assert!(Hosts::any().allows("example.com", 22));
}

#[test]
fn groups_are_names_of_known_hosts_and_off_until_named() {
    for name in groups::names() {
        let members = groups::group(name).unwrap();
        assert!(members.is_sorted(), "{name}");
        let list = Hosts::parse(&[name.to_owned()]).unwrap();
        for member in members {
            assert!(list.allows(member, 443), "{member}");
            assert!(!list.allows(&format!("evil.{member}"), 443) && !list.allows(member, 22));
            assert!(!Hosts::none().allows(member, 443));
        }
        assert!(!list.allows(name, 443), "the group is not a host");
    }
}

/// Never a number in any spelling; `0xa` is one.
fn label() -> impl Strategy<Value = String> {
    "[a-z0-9_-]{0,6}[g-w]"
}

fn name() -> impl Strategy<Value = String> {
    proptest::collection::vec(label(), 1..5).prop_map(|labels| labels.join("."))
}

proptest! {
    #[test]
    fn a_host_is_allowed_exactly_if_its_labels_match(listed in name(), host in name(), deeper in name()) {
        let exact = hosts(&[&listed]);
        prop_assert_eq!(exact.allows(&host, 443), host == listed);
        prop_assert!(exact.allows(&listed, 443));
        if !listed.contains('.') {
            return Ok(());
        }
        let below = hosts(&[&format!("*.{listed}")]);
        let (mut parts, mut wanted): (Vec<&str>, Vec<&str>) = (host.split('.').collect(), listed.split('.').collect());
        parts.reverse();
        wanted.reverse();
        prop_assert_eq!(below.allows(&host, 443), parts.len() > wanted.len() && parts.starts_with(&wanted));
        let child = format!("{deeper}.{listed}");
        prop_assert!(below.allows(&child, 443) && !exact.allows(&child, 443) && !below.allows(&listed, 443));
    }

    #[test]
    fn nothing_added_makes_another_host_allowed(listed in name(), junk in ".{1,12}", host in name()) {
        prop_assume!(host != listed);
        let list = hosts(&[&listed]);
        for made in [format!("{junk}{listed}"), format!("{listed}{junk}"), format!("{host}{junk}{listed}"), format!("{listed}{junk}{host}")] {
            let same = made.eq_ignore_ascii_case(&listed) || made.eq_ignore_ascii_case(&format!("{listed}."));
            prop_assert!(same || !list.allows(&made, 443), "{made:?}");
        }
    }

    #[test]
    fn reading_is_total_and_what_it_gives_reads_back_as_itself(text in any::<String>()) {
        if let Ok(host) = Host::read(&text) {
            let again = Host::read(&host.to_string());
            prop_assert_eq!(again, Ok(host.clone()));
            if let Host::Name(name) = host {
                prop_assert!(name.len() <= 253 && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b)));
            }
        }
        let _ = Hosts::parse(&[text]);
    }

    #[test]
    fn a_byte_that_no_name_has_refuses_the_name(before in name(), after in name(), byte in 0_u8..=127) {
        let plain = byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let text = format!("{before}{}{after}", byte as char);
        prop_assert_eq!(Host::read(&text).is_ok(), plain, "{:?}", text);
    }
}

#[test]
fn lengths_end_where_the_name_system_ends() {
    let label = "a".repeat(63);
    assert!(Host::read(&label).is_ok());
    assert!(Host::read(&"a".repeat(64)).is_err());
    let longest = [label.as_str(), &label, &label, &"a".repeat(61)].join(".");
    assert_eq!(longest.len(), 253);
    assert!(Host::read(&longest).is_ok() && Host::read(&format!("{longest}.")).is_ok());
    assert!(Host::read(&format!("a{longest}")).is_err());
}

#[test]
fn what_is_held_is_reached_only_if_both_list_it() {
    let both =
        hosts(&["*.example.com", "a.org", "b.org:22"]).within(hosts(&["x.example.com", "*"]));
    assert!(both.allows("x.example.com", 443) && both.allows("a.org", 80));
    assert!(!both.allows("b.org", 22), "a star is for the web");
    assert!(!both.allows("c.org", 443));
    let narrow = hosts(&["*"]).within(hosts(&["a.org"]));
    assert!(narrow.allows("a.org", 443) && !narrow.allows("b.org", 443));
    let three = narrow.clone().within(hosts(&["b.org"]));
    assert!(!three.allows("a.org", 443) && !three.allows("b.org", 443));
    assert!(hosts(&["*"]).within(Hosts::none()).is_empty());
    assert!(!narrow.is_empty());
}
