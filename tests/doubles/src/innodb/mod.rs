//! A model of InnoDB: transactions that run side by side, row locks with queues, statements that wait, COMMITs that come late,
//! connections that break, a server that freezes.
//!
//! [`InnoDb`] is the server. Each [`Client`] is the store of one process: the production protocol ([`carillon_store::cluster`]) over this
//! model in place of MySQL. Nothing here has a thread or a clock. The driver moves the time ([`InnoDb::advance_to`]), plans the faults
//! ([`FaultPlan`]) and polls the calls, so a seed replays to the letter. With [`Calm`] nothing takes time and any executor will do.
//!
//! `tests/tests/on_server/locking/` compares it with real servers, step by step. It leaves out gap locks (whose deadlocks
//! [`StatementFate::RolledBack`] stands for), snapshots, the number of connections that a process may have, and MySQL's habit of
//! granting a lock to the waiter on whom most others wait.

mod alerts;
mod database;
mod fault_plan;
mod locks;
mod model_connection;
mod own;
mod reading;
mod script_connection;
mod server;
mod view;
mod writing;

use std::sync::{Arc, Mutex};

pub use self::database::InnoDbDatabase;
pub use self::fault_plan::{Calm, CommitFate, FaultPlan, StatementFate};
pub use self::model_connection::ModelConnection;
pub use self::own::{Change, Commit};
pub use self::script_connection::{Refused, ScriptConnection};
pub use self::server::{Counters, Limits};
use self::server::{Server, Shared, lock};
use super::data::Data;
use crate::Backup;
use carillon_store::Clock;
use carillon_store::cluster::ClusterStore;

/// How many firings a process holds at the most.
const HELD: usize = 10_000;

/// A server.
#[derive(Clone)]
pub struct InnoDb {
    server: Shared,
    partitions: u16,
}

impl InnoDb {
    /// An empty one that reads the time of day from `clock`.
    pub fn new(clock: Arc<dyn Clock>, partitions: u16, limits: Limits, fault_plan: impl FaultPlan + 'static) -> Self {
        let server = Server::new(Data::new(clock, partitions), limits, Box::new(fault_plan));
        Self { server: Arc::new(Mutex::new(server)), partitions: partitions.max(1) }
    }

    /// The calls of one process. Faults are planned by its number.
    pub fn client(&self, number: u64) -> Client {
        self.client_on(number, None)
    }

    /// The calls of a process that reads the time from `clock`, as a test may want it that moves the clock by hand.
    pub fn client_on(&self, number: u64, clock: Option<Arc<dyn Clock>>) -> Client {
        let database = InnoDbDatabase { server: self.server.clone(), number };
        ClusterStore::new(database, clock, self.partitions, HELD)
    }

    /// A bare connection, for statements one by one.
    pub fn connection(&self) -> ScriptConnection {
        ScriptConnection::new(self.server.clone())
    }

    /// When something happens next, in microseconds since the beginning.
    pub fn next_at_us(&self) -> Option<u64> {
        lock(&self.server).next_at()
    }

    /// Lets everything happen that is due until then.
    pub fn advance_to(&self, now_us: u64) {
        lock(&self.server).advance_to(now_us);
    }

    /// Does nothing until then, and answers nobody.
    pub fn freeze_until(&self, until_us: u64) {
        lock(&self.server).frozen_until_us = until_us;
    }

    /// From now on what is committed is told.
    pub fn watch(&self) {
        lock(&self.server).commits = Some(Vec::new());
    }

    /// The commits since the last call, in order; none unless it is [watched](Self::watch).
    pub fn take_commits(&self) -> Vec<Commit> {
        lock(&self.server).commits.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How often rare things happened.
    pub fn counters(&self) -> Counters {
        lock(&self.server).counters
    }

    /// How often each lock row was written.
    pub fn epochs(&self) -> Vec<u64> {
        lock(&self.server).epochs.clone()
    }

    /// As [`crate::MemoryDatabase::back_up`].
    pub fn back_up(&self) -> Backup {
        Backup::of(&lock(&self.server).data)
    }

    /// As [`crate::MemoryDatabase::restore`].
    pub fn restore(&self, backup: &Backup) {
        backup.overwrite(&mut lock(&self.server).data);
    }

    /// As [`crate::MemoryDatabase::record_conflicts`].
    pub fn record_conflicts(&self) -> usize {
        lock(&self.server).data.record_conflicts
    }

    /// The rows that somebody holds or that wait, as a person would find them in the tables.
    pub fn phases(&self) -> Vec<carillon_domain::firing::Phase> {
        let server = lock(&self.server);
        let jobs = server.data.states.values().map(|state| state.phase);
        jobs.chain(server.data.concurrent.values().map(|row| row.phase)).collect()
    }

    /// Every job's row.
    pub fn states(&self) -> Vec<Arc<carillon_domain::firing::JobState>> {
        lock(&self.server).data.states.values().cloned().collect()
    }
}

/// The store of one process: the protocol that ships, over the model.
pub type Client = ClusterStore<InnoDbDatabase>;
