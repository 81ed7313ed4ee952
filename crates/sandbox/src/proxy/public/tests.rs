//! Addresses at the edges of every range that is not public, in every wrapping.

use super::is_public;
use proptest::prelude::{any, prop_assert, proptest};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn public(text: &str) -> bool {
    is_public(text.parse().unwrap())
}

const APART: &[&str] = &[
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

const BESIDE: &[&str] = &[
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
fn ranges_of_four_end_where_they_end() {
    for text in APART {
        assert!(!public(text), "{text}");
    }
    for text in BESIDE {
        assert!(public(text), "{text}");
    }
}

#[test]
fn six_is_public_only_where_hosts_live() {
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
        assert!(!public(text), "{text}");
    }
    for text in
        ["2606:4700:4700::1111", "2001:200::1", "2001:4860:4860::8888", "2a00::1", "3ffe::1"]
    {
        assert!(public(text), "{text}");
    }
}

fn wrapped(four: Ipv4Addr) -> [Ipv6Addr; 3] {
    let [a, b, c, d] = four.octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    [
        four.to_ipv6_mapped(),
        Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
    ]
}

#[test]
fn a_wrapping_does_not_make_an_address_public() {
    for text in APART {
        for six in wrapped(text.parse().unwrap()) {
            assert!(!is_public(six.into()), "{text} as {six}");
        }
    }
}

proptest! {
    #[test]
    fn a_wrapped_address_is_public_only_if_it_is_so_without(bits in any::<u32>()) {
        let four = Ipv4Addr::from_bits(bits);
        for six in wrapped(four) {
            prop_assert!(!is_public(six.into()) || is_public(four.into()));
        }
        let compatible = Ipv6Addr::from_bits(u128::from(bits));
        prop_assert!(!is_public(compatible.into()));
    }

    #[test]
    fn what_the_standard_library_knows_as_special_is_not_public(bits in any::<u32>(), more in any::<u128>()) {
        let four = Ipv4Addr::from_bits(bits);
        let special = four.is_private() || four.is_loopback() || four.is_link_local()
            || four.is_multicast() || four.is_broadcast() || four.is_documentation() || four.is_unspecified();
        prop_assert!(!(special && is_public(four.into())));
        let six = Ipv6Addr::from_bits(more);
        let special = six.is_loopback() || six.is_multicast() || six.is_unique_local() || six.is_unicast_link_local();
        prop_assert!(!(special && is_public(IpAddr::V6(six))));
    }
}
