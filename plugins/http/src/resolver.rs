//! Names to addresses, none of which is called before all have been looked at.
//!
//! The client gets the addresses that were checked, and resolves nothing again. A name that answers with another address the next
//! time (DNS rebinding) gains nothing. Each hop of a redirect comes through here.

use std::net::{SocketAddr, ToSocketAddrs};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::address::special;
use crate::sentence::Sentence;
use crate::target::Target;

/// How many addresses of a name are tried, as the client has room for no more.
const MAX_TRIED: usize = 16;

#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) allow_private: bool,
}

impl Resolver for Checked {
    /// Blocks for as long as the system's resolver likes; whoever waits for the call does not wait for this.
    fn resolve(&self, uri: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = || {
            let target = Target::parse(&uri.to_string())?;
            let name = target.to_string();
            let found =
                name.to_socket_addrs().map_err(|error| format!("the name {name} cannot be resolved: {error}"))?;
            admit(&name, found.collect(), self.allow_private)
        };
        let mut addresses = self.empty();
        for address in found().map_err(Sentence::into_error)?.into_iter().take(MAX_TRIED) {
            addresses.push(address);
        }
        Ok(addresses)
    }
}

/// All the addresses of `name`, or why it must not be called: one bad address is enough.
fn admit(name: &str, found: Vec<SocketAddr>, allow_private: bool) -> Result<Vec<SocketAddr>, String> {
    if found.is_empty() {
        return Err(format!("the name {name} has no address"));
    }
    let mut bad = found.iter().filter_map(|address| Some((address.ip(), special(address.ip())?)));
    match bad.next() {
        Some((address, what)) if !allow_private => {
            Err(format!("{name} is not called: {address} is {what} (\"allow_private\": true permits that)"))
        }
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_private_address_among_many_is_enough() {
        let good = || vec!["1.1.1.1:80".parse().unwrap(), "[2606:4700::1]:80".parse().unwrap()];
        assert_eq!(admit("a:80", good(), false), Ok(good()));
        let mut mixed = good();
        mixed.push("10.0.0.1:80".parse().unwrap());
        let sentence = "a:80 is not called: 10.0.0.1 is a private address (\"allow_private\": true permits that)";
        assert_eq!(admit("a:80", mixed.clone(), false), Err(sentence.to_owned()));
        assert_eq!(admit("a:80", mixed.clone(), true), Ok(mixed));
        assert_eq!(admit("a:80", vec![], true), Err("the name a:80 has no address".to_owned()));
    }
}
