//! The way to the server that takes writes: new connections, encrypted as the address asks, and the end of those in doubt.
//!
//! An address may name several servers. A node uses one of them at a time, the one that took writes last. When that one is gone or
//! takes no writes any more, all connections to it are closed, and the others are asked in turn.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use carillon_domain::lease::ChosenTiming;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error};
use tokio::time::{Instant, timeout};

use crate::mysql::client::address::{Address, Host};
use crate::mysql::client::chosen::Chosen;
use crate::mysql::client::error;
use crate::mysql::client::writer::{self, NoWriter};
use crate::mysql::topology::{
    Answers, BeatOfServer, Engine, Follow, Seen, Topology, follow, fresh_nodes, mixed_writers,
};
use crate::{ServerReport, TimingReport};

/// How long a KILL may take before it is given up: the server's own timeouts end the connection then.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Where the servers are and how long they may take.
#[derive(Debug)]
pub(in crate::mysql) struct Server {
    hosts: Vec<Peer>,
    /// The one that took writes last.
    good: AtomicUsize,
    /// Grows when a server is left: connections of an earlier generation are not used again.
    generation: AtomicU64,
    /// The operator's word about them.
    topology: Topology,
    chosen: Chosen,
    timing: OnceLock<TimingReport>,
    pub statement_timeout: Duration,
}

/// One of the servers.
#[derive(Debug)]
struct Peer {
    host: Host,
    /// It offered no TLS when it was asked last.
    is_plain: AtomicBool,
}

/// An open connection and when it was opened.
pub(in crate::mysql) struct DriverConnection {
    pub conn: Conn,
    pub opened: Instant,
    generation: u64,
    place: usize,
    /// The name that the server has for itself.
    pub identity: String,
}

/// A connection to the server that takes writes, and what that server says about itself.
struct Dialed {
    conn: Conn,
    answers: Answers,
    place: usize,
    generation: u64,
}

impl Server {
    pub fn at(address: &Address, topology: Topology, statement_timeout: Duration) -> Self {
        let hosts = address.hosts.iter().cloned().map(|host| Peer { host, is_plain: AtomicBool::new(false) }).collect();
        let (good, generation) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self {
            hosts,
            good,
            generation,
            topology,
            chosen: Chosen::default(),
            timing: OnceLock::new(),
            statement_timeout,
        }
    }

    /// Which server is used and why, for people.
    pub fn report(&self) -> Option<ServerReport> {
        self.chosen.report()
    }

    /// The session timing of this node, which holds as long as it runs.
    pub fn keep_timing(&self, timing: TimingReport) {
        // A store is opened once.
        _ = self.timing.set(timing);
    }

    /// The session timing, once it is chosen.
    pub fn timing(&self) -> Option<ChosenTiming> {
        self.timing.get().map(|report| report.chosen)
    }

    /// The same, for people.
    pub fn timing_report(&self) -> Option<TimingReport> {
        self.timing.get().cloned()
    }

    /// The servers and the timings of all sessions, as they were read last.
    pub fn see_sessions(&self, beats: &[BeatOfServer<'_>]) {
        let mixed = if self.topology.allows_several_writers() { None } else { mixed_writers(beats) };
        self.chosen.see(mixed.or_else(|| self.timing()?.disagreement(&fresh_nodes(beats))));
    }

    /// Whether a connection leads to the server that is used now.
    pub fn is_current(&self, driver: &DriverConnection) -> bool {
        driver.generation == self.generation.load(Ordering::Acquire)
            && driver.place == self.good.load(Ordering::Acquire)
    }

    /// The server of this connection takes no writes any more.
    pub fn leave(&self, driver: &DriverConnection) {
        let next = driver.generation + 1;
        if self.generation.compare_exchange(driver.generation, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let place = self.hosts.get(driver.place).map(|peer| peer.host.place.as_str());
            tracing::warn!(server = place, "the server takes no writes any more; all connections to it are closed");
        }
    }

    /// A connection to the server that takes writes. The one that was used last is asked first.
    async fn dial(&self) -> mysql_async::Result<Dialed> {
        let first = self.good.load(Ordering::Acquire);
        let share = self.statement_timeout / u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
        let mut refusals = Vec::new();
        let mut last = None;
        for step in 0..self.hosts.len() {
            let place = (first + step) % self.hosts.len();
            let Some(peer) = self.hosts.get(place) else { continue };
            let mut waits = Waits { server: self, place, given_up: true };
            let late = || std::io::Error::new(std::io::ErrorKind::TimedOut, "it did not answer in time").into();
            let dialing = peer.dial_writer(self.topology, self.chosen.engine());
            let dialed = timeout(share, dialing).await.unwrap_or_else(|_| Err(late()));
            waits.given_up = false;
            drop(waits);
            match dialed {
                Ok((conn, answers)) => {
                    let generation = self.use_from_now_on(place, &answers, &refusals);
                    return Ok(Dialed { conn, answers, place, generation });
                }
                Err(Error::Server(refused)) if error::REFUSES_USER.contains(&refused.code) => {
                    return Err(Error::Server(refused));
                }
                Err(other) => {
                    refusals.push(format!("{}: {other}", peer.host.place));
                    last = Some(other);
                }
            }
        }
        match last {
            Some(error) if refusals.len() == 1 => Err(error),
            _ => Err(Error::Other(NoWriter(format!("no server takes writes now; {}", refusals.join("; "))).into())),
        }
    }

    /// All connections of a node lead to one server. One name may lead to another server than before. Answers the generation.
    fn use_from_now_on(&self, place: usize, answers: &Answers, refusals: &[String]) -> u64 {
        let name = self.hosts.get(place).map_or("", |peer| peer.host.place.as_str());
        let moved = self.chosen.is_now(name, answers, refusals);
        if self.good.swap(place, Ordering::AcqRel) != place || moved {
            return self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        }
        self.generation.load(Ordering::Acquire)
    }

    /// A node that starts takes the server of the nodes that write already. `Err` tells why it cannot.
    pub async fn follow(&self, own: &str, others: &[String]) -> Result<(), String> {
        if self.topology.allows_several_writers() || others.is_empty() || others.iter().any(|other| other == own) {
            return Ok(());
        }
        let share = self.statement_timeout / u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
        let mut found = Vec::new();
        for peer in &self.hosts {
            let dialed = timeout(share, peer.dial_writer(self.topology, self.chosen.engine())).await;
            found.push(dialed.ok().and_then(Result::ok).map(|(_, answers)| answers));
        }
        let seen = |answers: &Option<Answers>| {
            answers.as_ref().map_or(Seen::Away, |answers| Seen::Writer(answers.state.identity()))
        };
        match follow(own, others, &found.iter().map(seen).collect::<Vec<_>>()) {
            Follow::Stay => Ok(()),
            Follow::Refuse(why) => Err(why),
            Follow::Move(place) => {
                if let Some(Some(answers)) = found.get(place) {
                    self.use_from_now_on(place, answers, &["the other nodes write through it".to_owned()]);
                }
                Ok(())
            }
        }
    }

    /// A new connection with its session settings.
    pub async fn connect(&self, settings: &[String]) -> Result<DriverConnection, mysql_async::Error> {
        self.connect_and_ask(settings).await.map(|(driver, _)| driver)
    }

    /// The same, with what the server says about itself.
    pub async fn connect_and_ask(
        &self,
        settings: &[String],
    ) -> Result<(DriverConnection, Answers), mysql_async::Error> {
        let opened = Instant::now();
        let connecting = async {
            let Dialed { mut conn, answers, place, generation } = self.dial().await?;
            // One that takes writes and never catches up with the others is as good as silent.
            let mut waits = Waits { server: self, place, given_up: true };
            for setting in settings {
                conn.query_drop(setting).await.map_err(|error| error::refused_setting(setting, error))?;
            }
            waits.given_up = false;
            drop(waits);
            let identity = answers.state.identity();
            Ok((DriverConnection { conn, opened, generation, place, identity }, answers))
        };
        let late = || std::io::Error::new(std::io::ErrorKind::TimedOut, "it did not answer in time");
        timeout(self.statement_timeout, connecting).await.unwrap_or_else(|_| Err(late().into()))
    }

    /// Ends a connection from another one. Best effort: one that has gone already is as good. Behind a balancer the other one may lead to
    /// another server, and a server that was restarted since gives the same numbers to others. Neither must suffer for it.
    pub async fn kill(&self, driver: DriverConnection) {
        let id = driver.conn.id();
        let Some(peer) = self.hosts.get(driver.place) else { return };
        let killing = async {
            let mut conn = peer.dial().await?;
            let state = writer::ask(&mut conn).await?.state;
            let is_the_same = state.identity() == driver.identity;
            let uptime = state.number("uptime").map(Duration::from_secs);
            if is_the_same && uptime.is_some_and(|uptime| driver.opened.elapsed() <= uptime) {
                conn.query_drop(format!("KILL CONNECTION {id}")).await?;
            }
            conn.disconnect().await
        };
        match timeout(KILL_TIMEOUT, killing).await {
            Ok(Ok(())) => tracing::info!(connection = id, "a connection in doubt was ended"),
            Ok(Err(error)) => tracing::debug!(connection = id, %error, "a connection in doubt could not be ended"),
            Err(_) => tracing::warn!(connection = id, "a connection in doubt could not be ended in time"),
        }
    }
}

/// A caller that gives up waiting for a server lets the next one begin at another server: this one may be silent for ever.
struct Waits<'a> {
    server: &'a Server,
    place: usize,
    given_up: bool,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let next = (self.place + 1) % self.server.hosts.len();
        if self.given_up && next != self.place {
            _ = self.server.good.compare_exchange(self.place, next, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

impl Peer {
    /// A connection, encrypted as the address asks.
    async fn dial(&self) -> mysql_async::Result<Conn> {
        let Host { opts, plain, .. } = &self.host;
        if let Some(plain) = plain.as_ref().filter(|_| self.is_plain.load(Ordering::Relaxed)) {
            let conn = Conn::new(plain.clone()).await;
            // It may have got a certificate since.
            self.is_plain.store(conn.is_ok(), Ordering::Relaxed);
            return conn;
        }
        match (Conn::new(opts.clone()).await, plain) {
            (Err(Error::Driver(DriverError::NoClientSslFlagFromServer)), Some(plain)) => {
                self.is_plain.store(true, Ordering::Relaxed);
                Conn::new(plain.clone()).await
            }
            (conn, _) => conn,
        }
    }

    /// The same, refused where the server takes no writes or is none of those that are meant.
    async fn dial_writer(&self, topology: Topology, before: Option<Engine>) -> mysql_async::Result<(Conn, Answers)> {
        let mut conn = self.dial().await?;
        let answers = writer::ask(&mut conn).await?;
        let why = topology.why_not(answers.engine(), before).or_else(|| answers.why_no_writer());
        match why {
            None => Ok((conn, answers)),
            Some(why) => {
                conn.disconnect().await?;
                Err(Error::Other(NoWriter(why).into()))
            }
        }
    }
}
