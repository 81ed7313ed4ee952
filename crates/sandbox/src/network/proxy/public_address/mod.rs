//! Classifies IP addresses as public or not.
//!
//! Addresses of this machine, its network or no owner are not public, in IPv4 and IPv6, including
//! IPv4 addresses embedded in IPv6 ones. An address in doubt is not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 ranges without public hosts: first address and prefix length.
const NON_PUBLIC_RANGES: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),        // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // carrier-grade NAT
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback
    (Ipv4Addr::new(168, 63, 129, 16), 32), // a cloud's own service to its machines
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, and the clouds' metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarking
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved, and broadcast
];

/// Private networks: first address and prefix length.
const PRIVATE_RANGES: [(Ipv4Addr, u32); 4] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
];

/// The range from which programs like Clash take addresses for names.
const FAKE_RANGE: (Ipv4Addr, u32) = (Ipv4Addr::new(198, 18, 0, 0), 15);

/// Metadata services of clouds outside the link-local range.
const METADATA_ADDRESSES: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// Returns true if the address is reachable on the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns true if a public name can have this address: it is public, or one that a local proxy
/// program invented for the name (a "fake IP"), which it translates when it gets the connection.
pub fn is_public_or_fake(address: IpAddr) -> bool {
    let (first, bits) = FAKE_RANGE;
    is_public(address) || is_in_range(address, first.into(), bits)
}

/// Returns true for addresses of private networks, which the user can open. Addresses of this
/// machine and of the metadata services of clouds are not among them.
pub(super) fn is_private_network(address: IpAddr) -> bool {
    let is_private = match address {
        IpAddr::V4(address) => is_in_any(address, &PRIVATE_RANGES),
        IpAddr::V6(address) => address.is_unique_local(),
    };
    is_private && !is_metadata_service(address)
}

/// Returns true for the addresses at which clouds hand out the credentials of a machine.
pub(super) fn is_metadata_service(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => METADATA_ADDRESSES.contains(&address) || address.is_link_local(),
        IpAddr::V6(address) => {
            let segments = address.segments();
            // The services of AWS and Google at unique-local addresses.
            segments == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
                || segments == [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
                || address.is_unicast_link_local()
                || address.to_ipv4_mapped().is_some_and(|inner| is_metadata_service(inner.into()))
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !is_in_any(address, &NON_PUBLIC_RANGES)
}

/// Returns true if two addresses have the same first bits.
pub(super) fn is_in_range(address: IpAddr, first: IpAddr, bits: u32) -> bool {
    let equal_bits = match (address, first) {
        (IpAddr::V4(address), IpAddr::V4(first)) => {
            (address.to_bits() ^ first.to_bits()).leading_zeros()
        }
        (IpAddr::V6(address), IpAddr::V6(first)) => {
            (address.to_bits() ^ first.to_bits()).leading_zeros()
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    equal_bits >= bits
}

fn is_in_any(address: Ipv4Addr, ranges: &[(Ipv4Addr, u32)]) -> bool {
    ranges.iter().any(|(first, bits)| is_in_range(address.into(), (*first).into(), *bits))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let last = Ipv4Addr::from_bits((u32::from(g) << 16) | u32::from(h));
    match (a, b) {
        // NAT64: IPv6-only networks reach IPv4 hosts through these addresses.
        (0x64, 0xff9b) => [c, d, e, f] == [0; 4] && is_public_v4(last),
        (0, 0) => [c, d, e, f] == [0, 0, 0, 0xffff] && is_public_v4(last),
        // 6to4.
        (0x2002, _) => is_public_v4(Ipv4Addr::from_bits((u32::from(b) << 16) | u32::from(c))),
        // Protocol assignments, among them Teredo, benchmarking and ORCHID.
        (0x2001, 0..=0x1ff) => false,
        // Documentation.
        (0x2001, 0xdb8) | (0x3fff, 0..=0xfff) => false,
        // All other allocated addresses are in this range. The rest is loopback, link-local,
        // unique-local, multicast or unallocated.
        (0x2000..=0x3fff, _) => true,
        (_, _) => false,
    }
}

#[cfg(test)]
mod tests;
