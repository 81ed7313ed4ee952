//! Whether an address belongs to the public internet.
//!
//! Whatever is this machine, its network or nobody's is not, in either family, also when an IPv4
//! address is wrapped into an IPv6 one. When in doubt an address is not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ranges of IPv4 that no public host has: the first address, and how many bits of it count.
const APART: [(Ipv4Addr, u32); 16] = [
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

/// Whether anyone on the internet could mean this address.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four_is_public(four),
        IpAddr::V6(six) => six_is_public(six),
    }
}

fn four_is_public(address: Ipv4Addr) -> bool {
    !APART.iter().any(|(first, bits)| {
        let apart = u32::MAX << (u32::BITS - bits);
        address.to_bits() & apart == first.to_bits()
    })
}

fn six_is_public(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let last = Ipv4Addr::from_bits((u32::from(g) << 16) | u32::from(h));
    match (a, b) {
        // Networks with IPv6 alone reach the rest of the world through these: NAT64.
        (0x64, 0xff9b) => [c, d, e, f] == [0; 4] && four_is_public(last),
        (0, 0) => [c, d, e, f] == [0, 0, 0, 0xffff] && four_is_public(last),
        // 6to4.
        (0x2002, _) => four_is_public(Ipv4Addr::from_bits((u32::from(b) << 16) | u32::from(c))),
        // Protocol assignments, among them Teredo, benchmarking and ORCHID.
        (0x2001, 0..=0x1ff) => false,
        // Documentation.
        (0x2001, 0xdb8) | (0x3fff, 0..=0xfff) => false,
        // All else that was ever given to anyone is in here; the rest is loopback, link-local,
        // unique-local, multicast or nobody's.
        (0x2000..=0x3fff, _) => true,
        (_, _) => false,
    }
}

#[cfg(test)]
mod tests;
