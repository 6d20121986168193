//! A network of the members of a cluster: each lives in a network namespace of its own, so that it can be cut off from the others while
//! its clients still reach it. Only root can make one.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The first two bytes of every address.
const NET: &str = "10.213";
/// The first letters of all names that it gives.
const MARK: &str = "crn";

/// Where a member lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its network namespace.
    pub namespace: String,
    /// Its address there.
    pub address: String,
}

impl Place {
    /// The words that come before a program that is to live there.
    pub(super) fn entered(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.namespace].map(str::to_owned).into()
    }
}

/// The traffic that a member which is cut off does not get any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Nothing passes between it and the other members; clients reach it.
    Members,
    /// It hears nothing of the other members, and they hear it; clients reach it.
    Deaf,
    /// Nothing passes between it and anybody.
    Everybody,
}

/// A bridge and the places on it. Gone when dropped; what a killed process left is cleared away by the next one.
#[derive(Debug)]
pub struct Network {
    bridge: String,
    gateway: String,
    places: Vec<Place>,
}

impl Network {
    /// One with so many places; why there is none here.
    ///
    /// # Errors
    /// Says what root, `ip` or the kernel is missing.
    pub fn new(places: usize) -> Result<Self, String> {
        clear_leftovers();
        let first = std::process::id() % 250;
        let mut last = String::new();
        let free = (0..250).map(|n| (first + n) % 250).find(|number| {
            // Its name is its number, so nobody else has these addresses.
            let made = ip(&["link", "add", &format!("{MARK}{number}"), "type", "bridge"]);
            made.map_err(|error| last = error).is_ok()
        });
        let number = free.ok_or_else(|| format!("members cannot have a network of their own: {last}"))?;
        let (bridge, gateway) = (format!("{MARK}{number}"), format!("{NET}.{number}.1"));
        let mut this = Self { bridge: bridge.clone(), gateway, places: Vec::new() };
        ip(&["link", "set", &bridge, "alias", &std::process::id().to_string()])?;
        ip(&["addr", "add", &format!("{}/24", this.gateway), "dev", &bridge])?;
        ip(&["link", "set", &bridge, "up"])?;
        for place in 0..places {
            this.add(number, place)?;
        }
        Ok(this)
    }

    fn add(&mut self, number: u32, place: usize) -> Result<(), String> {
        let (namespace, wire) = (format!("{}-{place}", self.bridge), format!("{}v{place}", self.bridge));
        let address = format!("{NET}.{number}.{}", place + 2);
        ip(&["netns", "add", &namespace])?;
        self.places.push(Place { namespace: namespace.clone(), address: address.clone() });
        ip(&["link", "add", &wire, "type", "veth", "peer", "name", "eth0", "netns", &namespace])?;
        ip(&["link", "set", &wire, "master", &self.bridge, "up"])?;
        ip(&["-n", &namespace, "addr", "add", &format!("{address}/24"), "dev", "eth0"])?;
        ip(&["-n", &namespace, "link", "set", "eth0", "up"])?;
        ip(&["-n", &namespace, "link", "set", "lo", "up"])
    }

    /// The place of a member.
    pub fn place(&self, number: usize) -> &Place {
        &self.places[number]
    }

    /// Cuts a member off.
    ///
    /// # Errors
    /// Says what the kernel refused.
    pub fn cut(&self, number: usize, cut: Cut) -> Result<(), String> {
        let but_clients: &[&str] = if cut == Cut::Everybody { &[] } else { &["!", "-s", &self.gateway] };
        self.filter(number, &[&["-A", "INPUT", "-i", "eth0"], but_clients, &["-j", "DROP"]].concat())?;
        if cut == Cut::Deaf {
            return Ok(());
        }
        let but_clients: &[&str] = if cut == Cut::Everybody { &[] } else { &["!", "-d", &self.gateway] };
        self.filter(number, &[&["-A", "OUTPUT", "-o", "eth0"], but_clients, &["-j", "DROP"]].concat())
    }

    /// Everything passes again.
    ///
    /// # Errors
    /// Says what the kernel refused.
    pub fn heal(&self, number: usize) -> Result<(), String> {
        self.filter(number, &["-F"])
    }

    /// How many packets were stopped since the member was cut off.
    pub fn stopped(&self, number: usize) -> u64 {
        let listed = run("ip", &["netns", "exec", &self.places[number].namespace, "iptables", "-nvxL"]);
        listed.map_or(0, |text| stopped_in(&text))
    }

    fn filter(&self, number: usize, words: &[&str]) -> Result<(), String> {
        let namespace = &self.places[number].namespace;
        run("ip", &[&["netns", "exec", namespace, "iptables", "-w"], words].concat()).map(|_| ())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        clear(&self.bridge);
    }
}

/// The packets of all rules that drop some.
fn stopped_in(listed: &str) -> u64 {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let packets = words.next()?.parse::<u64>().ok()?;
        line.contains(" DROP ").then_some(packets)
    };
    listed.lines().filter_map(of_line).sum()
}

fn clear(bridge: &str) {
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.strip_prefix(bridge).is_some_and(|rest| rest.starts_with('-')) {
            let _gone = ip(&["netns", "del", &name]);
        }
    }
    let _gone = ip(&["link", "del", bridge]);
}

/// Bridges tell whose they are.
fn clear_leftovers() {
    for entry in fs::read_dir("/sys/class/net").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = fs::read_to_string(entry.path().join("ifalias")).unwrap_or_default();
        let is_left_over =
            owner.trim().parse::<u32>().is_ok_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
        if name.starts_with(MARK) && entry.path().join("bridge").exists() && is_left_over {
            clear(&name);
        }
    }
}

fn ip(words: &[&str]) -> Result<(), String> {
    run("ip", words).map(|_| ())
}

fn run(program: &str, words: &[&str]) -> Result<String, String> {
    let told = |error: &dyn std::fmt::Display| format!("{program} {}: {error}", words.join(" "));
    let output = Command::new(program).args(words).output().map_err(|error| told(&error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(told(&String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::stopped_in;

    #[test]
    fn packets_that_were_stopped_are_counted() {
        let listed = "Chain INPUT (policy ACCEPT 5 packets, 300 bytes)\n\
                      \x20   pkts      bytes target     prot opt in     out     source               destination\n\
                      \x20      7      420 DROP       all  --  eth0   *      !10.213.4.1           0.0.0.0/0\n\
                      \n\
                      Chain OUTPUT (policy ACCEPT 9 packets, 1 bytes)\n\
                      \x20     30      420 DROP       all  --  *      eth0    0.0.0.0/0           !10.213.4.1\n";
        assert_eq!(stopped_in(listed), 37);
        assert_eq!(stopped_in("Chain INPUT (policy ACCEPT 5 packets, 300 bytes)"), 0);
    }
}
