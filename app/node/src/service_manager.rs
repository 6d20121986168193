//! The service manager that started this node, if one did: systemd, or another that speaks the protocol of sd_notify(3).
//!
//! It learns when the node is up, when it ends, why it does not schedule, and that its loop goes round. A frozen loop sends
//! nothing, and the manager starts the node anew. No timer is needed for that: the loop goes round at least once a heartbeat.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A ping this many times in the time that the watchdog grants. Half would do; a loop that is late once must not cost the node its life.
const PINGS_IN_TIME: u64 = 3;

/// The way to the service manager; without one nothing is sent.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How long the watchdog is content with one ping, in milliseconds.
    ping_every_ms: Option<u64>,
    pinged_ms: u64,
}

impl ServiceManager {
    /// The one that the environment names.
    ///
    /// # Errors
    /// A sentence, if the environment names a socket and that cannot be used.
    pub fn from_environment() -> Result<Self, String> {
        let usec = env::var("WATCHDOG_USEC").ok().and_then(|usec| usec.parse().ok());
        // The variable of a process above this one is not meant for it.
        let meant = env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
        Self::at(env::var_os("NOTIFY_SOCKET"), usec.filter(|_| meant))
    }

    /// The one that listens at `address`, a path or `@` and an abstract name, and expects a ping within `watchdog_usec` microseconds.
    fn at(address: Option<OsString>, watchdog_usec: Option<u64>) -> Result<Self, String> {
        let Some(address) = address.filter(|address| !address.is_empty()) else { return Ok(Self::default()) };
        let socket = open(&address).map_err(|error| {
            format!("the service manager's socket {} cannot be used: {error}; unset NOTIFY_SOCKET", address.display())
        })?;
        let ping_every_ms = watchdog_usec.map(|usec| usec / 1_000 / PINGS_IN_TIME);
        Ok(Self { socket: Some(socket), ping_every_ms, pinged_ms: 0 })
    }

    /// The node serves.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// The node ends as soon as its runs have.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=draining");
    }

    /// A sentence for `systemctl status`.
    pub fn status(&self, sentence: &str) {
        self.send(&format!("STATUS={}", sentence.replace('\n', " ")));
    }

    /// The loop goes round, at `now_ms` on the boot clock. Costs a comparison, unless a ping is due.
    pub fn alive(&mut self, now_ms: u64) {
        let Some(every) = self.ping_every_ms else { return };
        if self.pinged_ms == 0 || now_ms.saturating_sub(self.pinged_ms) >= every {
            self.send("WATCHDOG=1");
            self.pinged_ms = now_ms;
        }
    }

    /// Never waits: a manager that hangs must not hang the node. One that does not take a message cannot be helped.
    fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }
}

fn open(address: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let bytes = address.as_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that a manager has heard, without waiting for more.
    fn heard(manager: &UnixDatagram) -> Vec<String> {
        manager.set_nonblocking(true).unwrap();
        let mut buffer = [0; 256];
        std::iter::from_fn(|| manager.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec()))
            .map(|message| String::from_utf8(message).unwrap())
            .collect()
    }

    #[test]
    fn a_manager_hears_of_the_start_the_state_and_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let manager = ServiceManager::at(Some(path.into()), None).unwrap();
        manager.ready();
        manager.status("the database\nis away");
        manager.stopping();
        assert_eq!(heard(&listener), ["READY=1", "STATUS=the database is away", "STOPPING=1\nSTATUS=draining"]);
    }

    #[test]
    fn a_ping_is_sent_three_times_in_the_time_that_the_watchdog_grants() {
        let name = format!("carillon-test-{}", std::process::id());
        let listener = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let mut manager = ServiceManager::at(Some(format!("@{name}").into()), Some(30_000_000)).unwrap();
        for now_ms in (5_000..35_000).step_by(1_000) {
            manager.alive(now_ms);
        }
        assert_eq!(heard(&listener), ["WATCHDOG=1"; 3]);
        let mut unwatched = ServiceManager::at(Some(format!("@{name}").into()), None).unwrap();
        unwatched.alive(5_000);
        assert!(heard(&listener).is_empty());
    }

    #[test]
    fn a_full_socket_does_not_hold_the_node_up() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let manager = ServiceManager::at(Some(path.into()), None).unwrap();
        for _ in 0..10_000 {
            manager.ready();
        }
        let heard = heard(&listener).len();
        assert!((1..10_000).contains(&heard), "{heard} messages went through");
    }

    #[test]
    fn without_a_manager_nothing_happens() {
        for address in [None, Some(OsString::new())] {
            let mut manager = ServiceManager::at(address, Some(1_000_000)).unwrap();
            manager.ready();
            manager.alive(1);
        }
        let refused = ServiceManager::at(Some("x".repeat(200).into()), None).unwrap_err();
        assert!(refused.contains("unset NOTIFY_SOCKET"), "{refused}");
    }
}
