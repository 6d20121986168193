//! Which addresses a message may be sent to.
//!
//! Routes are written by people who may not read the machine's own secrets. A cloud's metadata service hands such
//! secrets to everybody who asks from the machine, so its addresses are refused whatever the configuration says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To the internet.
    Public,
    /// To the own machine or a private network; `private_addresses` decides.
    Private,
    /// To where no receiver can be: the reason, as the end of "it is ...".
    Never(&'static str),
}

/// Which addresses the operator allows beside public ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether private and loopback addresses may be called.
    pub private_addresses: bool,
    /// Whether `http://` may cross the internet. It may always be used to private addresses.
    pub plain_http: bool,
}

impl Policy {
    /// Whether all of `addresses` may be called; the error is a sentence's end that says which one may not and why.
    ///
    /// One bad address refuses them all: a name that leads to a public and to a forbidden one is an attack.
    pub fn check(&self, encrypted: bool, addresses: &[IpAddr]) -> Result<(), String> {
        for address in addresses {
            match reach(*address) {
                Reach::Never(what) => {
                    return Err(format!("leads to {address}, which is {what}; messages are never sent there"));
                }
                Reach::Private if !self.private_addresses => {
                    return Err(format!(
                        "leads to {address}, a private address; alerts.private_addresses = true allows those"
                    ));
                }
                Reach::Public if !encrypted && !self.plain_http => {
                    return Err(format!(
                        "leads to {address} on the internet, and http:// would show the message to everybody on the way; \
                         use https://, or set alerts.plain_http = true"
                    ));
                }
                Reach::Private | Reach::Public => {}
            }
        }
        Ok(())
    }
}

const METADATA: Reach = Reach::Never("a cloud's metadata service");
const RESERVED: Reach = Reach::Never("a reserved address");
const LINK_LOCAL: Reach = Reach::Never("a link-local address, where metadata services are");
const MULTICAST: Reach = Reach::Never("a multicast address");
const UNSPECIFIED: Reach = Reach::Never("the unspecified address");
const TRANSLATED: Reach = Reach::Never("an address of a translator that hides another one");

/// Where `address` leads, by IANA's registries of special addresses. IPv6 addresses that carry an IPv4 one count as
/// that one.
pub fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        // Alibaba's and Azure's metadata have addresses that look like any other.
        [100, 100, 100, 200] | [168, 63, 129, 16] => METADATA,
        [169, 254, 169, 254] => METADATA,
        [0, 0, 0, 0] => UNSPECIFIED,
        [0, ..] => RESERVED,
        [169, 254, ..] => LINK_LOCAL,
        [127, ..] | [10, ..] | [192, 168, ..] => Reach::Private,
        [172, 16..=31, ..] | [100, 64..=127, ..] | [198, 18..=19, ..] => Reach::Private,
        [192, 0, 0, _] | [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => RESERVED,
        [224..=239, ..] => MULTICAST,
        [240..=255, ..] => RESERVED,
        _ => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let last = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        reach_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => UNSPECIFIED,
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Private,
        // IPv4-mapped, and NAT64 with its well-known prefix.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => last(high, low),
        // 6to4.
        [0x2002, high, low, ..] => last(high, low),
        // IPv4-compatible, SIIT, NAT64 with a local prefix, Teredo.
        [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 1, ..] | [0x2001, 0, ..] => TRANSLATED,
        // Amazon's and Google's metadata.
        [0xfd00, 0xec2, ..] | [0xfd20, 0xce, ..] => METADATA,
        [0xfe80..=0xfebf, ..] => LINK_LOCAL,
        [0xff00..=0xffff, ..] => MULTICAST,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Reach::Private,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => RESERVED,
        [0x2000..=0x3fff, ..] => Reach::Public,
        _ => RESERVED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPEN: Policy = Policy { private_addresses: true, plain_http: true };

    #[test]
    fn metadata_and_what_no_receiver_has_is_refused_whatever_the_configuration_says() {
        for text in [
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "0.0.0.0",
            "0.1.2.3",
            "192.0.0.192",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::ffff:169.254.169.254",
            "::ffff:0.0.0.0",
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "2001:0:53aa:64c::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1",
            "fe80::a9fe:a9fe",
            "ff02::1",
            "100::1",
            "2001:db8::1",
            "4000::1",
        ] {
            let refused = OPEN.check(true, &[text.parse().unwrap()]);
            assert!(refused.as_ref().is_err_and(|words| words.contains("never")), "{text}: {refused:?}");
        }
    }

    #[test]
    fn private_addresses_are_the_operators_choice_in_every_spelling() {
        for text in [
            "127.0.0.1",
            "127.9.9.9",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "::1",
            "fd12:3456::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:a00:1::1",
        ] {
            let address = text.parse().unwrap();
            assert_eq!(OPEN.check(true, &[address]), Ok(()), "{text}");
            assert_eq!(Policy { plain_http: false, ..OPEN }.check(false, &[address]), Ok(()), "{text}");
            let refused = Policy { private_addresses: false, ..OPEN }.check(true, &[address]);
            assert!(refused.as_ref().is_err_and(|words| words.contains("alerts.private_addresses")), "{text}");
        }
    }

    #[test]
    fn public_addresses_are_open_and_plain_http_needs_a_word() {
        let strict = Policy { private_addresses: false, plain_http: false };
        for text in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"] {
            let address = text.parse().unwrap();
            assert_eq!(strict.check(true, &[address]), Ok(()), "{text}");
            assert!(strict.check(false, &[address]).is_err_and(|words| words.contains("alerts.plain_http")), "{text}");
            assert_eq!(OPEN.check(false, &[address]), Ok(()), "{text}");
        }
    }

    #[test]
    fn one_forbidden_address_refuses_the_name() {
        let addresses = ["1.1.1.1".parse().unwrap(), "169.254.169.254".parse().unwrap()];
        assert!(OPEN.check(true, &addresses).is_err());
    }

    proptest! {
        #[test]
        fn an_ipv4_address_means_the_same_inside_an_ipv6_one(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            let plain = reach(address.into());
            prop_assert_eq!(reach(address.to_ipv6_mapped().into()), plain);
            let translated = Ipv6Addr::from_bits((0x64_ff9b_u128 << 96) | u128::from(bits));
            prop_assert_eq!(reach(translated.into()), plain);
        }
    }
}
