//! Which addresses a name may lead to.
//!
//! A name that was granted is a place on the internet; where it resolves to is up to whoever owns
//! it, and may be this machine, its network, or the service that hands out a cloud machine's
//! credentials. So an address that is not reachable by everybody is refused unless it was granted
//! itself, as an address. After IANA's registries of special-purpose addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ranges of IPv4 that are not for everybody, with the length of their prefix.
const SPECIAL_IPV4: &[([u8; 4], u32, &str)] = &[
    ([0, 0, 0, 0], 8, "this network"),
    ([10, 0, 0, 0], 8, "a private network"),
    ([100, 64, 0, 0], 10, "a provider's own network"),
    ([127, 0, 0, 0], 8, "this machine"),
    // Azure's machines reach their metadata there.
    ([168, 63, 129, 16], 32, "a cloud's metadata"),
    ([169, 254, 0, 0], 16, "the local link, with cloud metadata in it"),
    ([172, 16, 0, 0], 12, "a private network"),
    ([192, 0, 0, 0], 24, "protocol assignments"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 88, 99, 0], 24, "a 6to4 relay"),
    ([192, 168, 0, 0], 16, "a private network"),
    ([198, 18, 0, 0], 15, "benchmarks"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, "reserved or broadcast"),
];

/// The ranges within `2000::/3`, which alone is for everybody, that are not.
const SPECIAL_IPV6: &[([u16; 8], u32, &str)] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "protocol assignments, with Teredo in it"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4, with any IPv4 address in it"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
];

/// What an address is for, if it is not for everybody.
pub fn special_purpose(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_purpose_v4(address),
        IpAddr::V6(address) => special_purpose_v6(address),
    }
}

fn special_purpose_v4(address: Ipv4Addr) -> Option<&'static str> {
    let within = |net: [u8; 4], length: u32| {
        (address.to_bits() ^ u32::from_be_bytes(net)) >> (32 - length) == 0
    };
    SPECIAL_IPV4.iter().find(|(net, length, _)| within(*net, *length)).map(|(_, _, what)| *what)
}

fn special_purpose_v6(address: Ipv6Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let within =
        |net: [u16; 8], length: u32| (bits ^ Ipv6Addr::from(net).to_bits()) >> (128 - length) == 0;
    if !within([0x2000, 0, 0, 0, 0, 0, 0, 0], 3) {
        // Loopback, local links and networks, multicast, and the ways to write an IPv4 address:
        // mapped, compatible, NAT64.
        return Some("no part of the public internet");
    }
    SPECIAL_IPV6.iter().find(|(net, length, _)| within(*net, *length)).map(|(_, _, what)| *what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn r122_addresses_that_are_not_for_everybody_are_told_apart() {
        let special_ones = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.19.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "5f00::1",
        ];
        for text in special_ones {
            assert!(special_purpose(text.parse().expect(text)).is_some(), "{text}");
        }
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "168.63.129.15",
            "192.0.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00::1",
        ];
        for text in public {
            assert_eq!(special_purpose(text.parse().expect(text)), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_std_knows_to_be_special_is_special(v4: u32, v6: u128) {
            let (v4, v6) = (Ipv4Addr::from_bits(v4), Ipv6Addr::from_bits(v6));
            if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_broadcast() || v4.is_multicast() || v4.is_unspecified() {
                prop_assert!(special_purpose(v4.into()).is_some());
            }
            if v6.is_loopback() || v6.is_multicast() || v6.is_unique_local() || v6.is_unicast_link_local() || v6.to_ipv4().is_some() {
                prop_assert!(special_purpose(v6.into()).is_some());
            }
        }
    }
}
