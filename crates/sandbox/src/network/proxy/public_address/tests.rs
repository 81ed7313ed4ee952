//! Tests of addresses at the bounds of every range that is not public, also embedded in IPv6.

use super::{is_metadata_service, is_private_network, is_public, is_public_or_fake};
use proptest::prelude::{any, prop_assert, proptest};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn is_public_text(text: &str) -> bool {
    is_public(text.parse().unwrap())
}

const NOT_PUBLIC: &[&str] = &[
    "0.0.0.0",
    "0.255.255.255",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.127.255.255",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.255",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.0",
    "192.168.255.255",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.255",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
];

const PUBLIC_NEIGHBORS: &[&str] = &[
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.0.3.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "203.0.114.0",
    "223.255.255.255",
    "8.8.8.8",
];

#[test]
fn ipv4_ranges_have_the_right_bounds() {
    for text in NOT_PUBLIC {
        assert!(!is_public_text(text), "{text}");
    }
    for text in PUBLIC_NEIGHBORS {
        assert!(is_public_text(text), "{text}");
    }
}

#[test]
fn ipv6_is_public_only_in_global_unicast_ranges() {
    for text in [
        "::",
        "::1",
        "::2",
        "::7f00:1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "100::1",
        "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:1ff:ffff::1",
        "2001:db8::1",
        "3fff::1",
        "3fff:fff::1",
        "4000::1",
        "5f00::1",
        "64:ff9b:1::808:808",
        "64:ff9b:0:1::808:808",
        "::ffff:0:808:808",
        "1fff:ffff::1",
    ] {
        assert!(!is_public_text(text), "{text}");
    }
    for text in
        ["2606:4700:4700::1111", "2001:200::1", "2001:4860:4860::8888", "2a00::1", "3ffe::1"]
    {
        assert!(is_public_text(text), "{text}");
    }
}

/// Returns the IPv6 addresses that embed an IPv4 address: mapped, NAT64 and 6to4.
fn embed_in_ipv6(ipv4: Ipv4Addr) -> [Ipv6Addr; 3] {
    let [a, b, c, d] = ipv4.octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    [
        ipv4.to_ipv6_mapped(),
        Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
    ]
}

#[test]
fn embedding_in_ipv6_does_not_make_an_address_public() {
    for text in NOT_PUBLIC {
        for ipv6 in embed_in_ipv6(text.parse().unwrap()) {
            assert!(!is_public(ipv6.into()), "{text} as {ipv6}");
        }
    }
}

proptest! {
    #[test]
    fn an_embedded_address_is_public_only_if_it_is_public_itself(bits in any::<u32>()) {
        let ipv4 = Ipv4Addr::from_bits(bits);
        for ipv6 in embed_in_ipv6(ipv4) {
            prop_assert!(!is_public(ipv6.into()) || is_public(ipv4.into()));
        }
        let compatible = Ipv6Addr::from_bits(u128::from(bits));
        prop_assert!(!is_public(compatible.into()));
    }

    #[test]
    fn addresses_that_std_considers_special_are_not_public(
        bits in any::<u32>(),
        more in any::<u128>(),
    ) {
        let ipv4 = Ipv4Addr::from_bits(bits);
        let special = ipv4.is_private() || ipv4.is_loopback() || ipv4.is_link_local()
            || ipv4.is_multicast() || ipv4.is_broadcast() || ipv4.is_documentation()
            || ipv4.is_unspecified();
        prop_assert!(!(special && is_public(ipv4.into())));
        let ipv6 = Ipv6Addr::from_bits(more);
        let special = ipv6.is_loopback() || ipv6.is_multicast() || ipv6.is_unique_local()
            || ipv6.is_unicast_link_local();
        prop_assert!(!(special && is_public(IpAddr::V6(ipv6))));
    }
}

#[test]
fn private_networks_contain_neither_this_machine_nor_metadata_services() {
    let parse = |text: &str| -> IpAddr { text.parse().unwrap() };
    for text in ["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "fc00::1"] {
        assert!(is_private_network(parse(text)) && !is_public_or_fake(parse(text)), "{text}");
        assert!(!is_metadata_service(parse(text)), "{text}");
    }
    for text in ["127.0.0.1", "0.0.0.0", "8.8.8.8", "224.0.0.1", "::1", "::", "2606:4700::1111"] {
        assert!(!is_private_network(parse(text)), "{text}");
    }
    let metadata = [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fe80::a9fe:a9fe",
        "::ffff:169.254.169.254",
    ];
    for text in metadata {
        assert!(is_metadata_service(parse(text)) && !is_private_network(parse(text)), "{text}");
    }
    assert!(is_public_or_fake(parse("198.18.0.5")) && !is_public(parse("198.18.0.5")));
    assert!(!is_private_network(parse("198.18.0.5")));
}
