//! Which addresses are the internet's: the others are refused unless the job says `allow_private`.
//!
//! A person who may save a job could otherwise have the server call addresses that only the server can reach. Those are its
//! own services, its neighbours, the metadata service of a cloud. The lists are IANA's registries of special-purpose addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of a special address, with its article; `None` for an ordinary one of the internet.
pub(crate) fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("an unspecified address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("a private address"),
        [100, 64..=127, ..] => Some("an address behind a carrier's NAT"),
        [127, ..] => Some("a loopback address"),
        [169, 254, ..] => Some("a link-local address"),
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Some("a reserved address")
        }
        [224..=239, ..] => Some("a multicast address"),
        [240..=255, ..] => Some("a reserved address"),
        _ => None,
    }
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(inner) = embedded(address) {
        return special_v4(inner);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        [0xfc00..=0xfdff, ..] => Some("a unique local address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xfec0..=0xfeff, ..] => Some("a site-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        // Teredo and other protocols' own, and what is set aside for documents.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Some("a reserved address"),
        // Only this eighth has been given to the internet; local NAT64 (64:ff9b:1::/48) is outside of it too.
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

/// The IPv4 address that is reached through an IPv6 one: mapped, NAT64 or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => from(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => from(high, low),
        [0x2002, high, low, ..] => from(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_internet_is_told_from_the_rest() {
        for (addresses, expected) in [
            ("1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0", None),
            ("169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0", None),
            ("192.0.1.0 198.17.255.255 198.20.0.0 223.255.255.255", None),
            ("0.0.0.0 0.1.2.3", Some("an unspecified address")),
            (
                "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255",
                Some("a private address"),
            ),
            ("100.64.0.0 100.127.255.255", Some("an address behind a carrier's NAT")),
            ("127.0.0.1 127.255.255.255", Some("a loopback address")),
            ("169.254.0.0 169.254.169.254 169.254.255.255", Some("a link-local address")),
            ("192.0.0.1 192.0.2.1 192.88.99.1 198.18.0.0 198.19.255.255 198.51.100.1", Some("a reserved address")),
            ("203.0.113.1 240.0.0.0 255.255.255.255", Some("a reserved address")),
            ("224.0.0.1 239.255.255.255", Some("a multicast address")),
            ("2606:4700:4700::1111 2001:200:: 2a00:1450::1 3ffe::1", None),
            (":: ", Some("an unspecified address")),
            ("::1", Some("a loopback address")),
            ("fc00:: fd12:3456::1 fdff:ffff::", Some("a unique local address")),
            ("fe80::1 febf::1", Some("a link-local address")),
            ("fec0::1 feff::1", Some("a site-local address")),
            ("ff00:: ff02::1 ffff::1", Some("a multicast address")),
            ("2001::1 2001:1ff:: 2001:db8::1 3fff::1 100::1 4000::1 ::2 ::127.0.0.1", Some("a reserved address")),
            ("64:ff9b:1::1 64:ff9b:1::a00:1", Some("a reserved address")),
            ("::ffff:127.0.0.1 64:ff9b::127.0.0.1 2002:7f00:1::", Some("a loopback address")),
            ("::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1", Some("a link-local address")),
            ("::ffff:10.1.2.3 64:ff9b::10.1.2.3 2002:a01:203::", Some("a private address")),
            ("::ffff:100.64.0.1", Some("an address behind a carrier's NAT")),
            ("::ffff:0.0.0.0", Some("an unspecified address")),
            ("::ffff:224.0.0.1", Some("a multicast address")),
            ("::ffff:1.1.1.1 64:ff9b::1.1.1.1 2002:101:101::1", None),
        ] {
            for address in addresses.split_whitespace() {
                assert_eq!(special(address.parse().unwrap()), expected, "{address}");
            }
        }
    }
}
