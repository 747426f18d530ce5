//! The addresses that a host name may resolve to.
//!
//! A permission for a name means a host on the internet. The owner of the name controls its
//! addresses, and could point it to this machine, to its network, or to the service that gives
//! credentials to cloud machines. So an address that is not public is refused, unless the
//! permission names the address itself. The ranges are from IANA's registries of special-purpose
//! addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The IPv4 ranges that are not public: network, prefix length, and purpose.
const SPECIAL_IPV4: &[([u8; 4], u32, &str)] = &[
    ([0, 0, 0, 0], 8, "this network"),
    ([10, 0, 0, 0], 8, "a private network"),
    ([100, 64, 0, 0], 10, "a network of a provider"),
    ([127, 0, 0, 0], 8, "this machine"),
    // Machines on Azure reach their metadata service here.
    ([168, 63, 129, 16], 32, "a cloud metadata service"),
    ([169, 254, 0, 0], 16, "the local link, which includes cloud metadata"),
    ([172, 16, 0, 0], 12, "a private network"),
    ([192, 0, 0, 0], 24, "reserved for protocols"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 88, 99, 0], 24, "a 6to4 relay"),
    ([192, 168, 0, 0], 16, "a private network"),
    ([198, 18, 0, 0], 15, "benchmarks"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, "reserved or broadcast"),
];

/// The ranges within `2000::/3` that are not public. No address outside of `2000::/3` is public.
const SPECIAL_IPV6: &[([u16; 8], u32, &str)] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "reserved for protocols, including Teredo"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4, which can contain any IPv4 address"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
];

/// Returns the purpose of an address, or `None` if the address is public.
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
        // Loopback, link-local and local networks, multicast, and the encodings of IPv4 addresses:
        // mapped, compatible, NAT64.
        return Some("not a public internet address");
    }
    SPECIAL_IPV6.iter().find(|(net, length, _)| within(*net, *length)).map(|(_, _, what)| *what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn r122_special_purpose_addresses_are_recognized() {
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
        fn every_address_that_std_calls_special_is_special(v4: u32, v6: u128) {
            let (v4, v6) = (Ipv4Addr::from_bits(v4), Ipv6Addr::from_bits(v6));
            let is_special = v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_broadcast()
                || v4.is_multicast()
                || v4.is_unspecified();
            if is_special {
                prop_assert!(special_purpose(v4.into()).is_some());
            }
            let is_special = v6.is_loopback()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.to_ipv4().is_some();
            if is_special {
                prop_assert!(special_purpose(v6.into()).is_some());
            }
        }
    }
}
