//! The server: committed rows, transactions that run side by side, and what it does later by itself.
//!
//! It has no thread and no clock of its own: whoever drives it says how late it is, and everything that waits (for an answer
//! on its way, for a lock) is a future that is woken from here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use super::fault_plan::FaultPlan;
use super::locks::{Grant, Locks, Row, TrxId};
use super::own::{Commit, Own};
use super::view;
use crate::data::Data;

/// How long the server and its clients wait.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// As MySQL's `innodb_lock_wait_timeout`.
    pub lock_wait: Duration,
    /// After how long without a statement the server throws a transaction out, as MariaDB's `idle_transaction_timeout`.
    pub holder: Duration,
}

impl Default for Limits {
    /// As a store with the usual options asks for.
    fn default() -> Self {
        Self { lock_wait: Duration::from_secs(4), holder: Duration::from_secs(6) }
    }
}

/// How a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Open,
    /// It waited too long for a lock; what it had stays.
    TimedOut,
    /// It was rolled back for a deadlock.
    Deadlocked,
    Committed,
    /// It was thrown out, killed, or rolled back otherwise.
    Gone,
}

struct Trx {
    by: &'static str,
    own: Own,
    standing: Standing,
    /// When its last statement ended.
    active_us: u64,
    /// The number of its latest wait for a lock.
    wait: u64,
    /// Whether somebody at the other end of the connection still listens.
    heard: bool,
    waker: Option<Waker>,
}

enum Due {
    Wake(Waker),
    /// Rolls back the statement of a transaction that still waits for that wait's lock.
    EndWait(TrxId, u64),
    Commit(TrxId),
    RollBack(TrxId),
    ThrowOut(TrxId),
}

/// How often the server did what it does rarely.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Waits for a lock.
    pub waits: u64,
    /// Waits that took too long (1205).
    pub timeouts: u64,
    /// Cycles (1213).
    pub deadlocks: u64,
    /// Transactions thrown out because their client was silent.
    pub thrown_out: u64,
    /// COMMITs carried out after their client had stopped waiting.
    pub strays: u64,
    /// Rows started by a statement that commits by itself and found all of its rows.
    pub single_starts: u64,
    /// Such statements that found a part of them.
    pub partial_starts: u64,
}

pub(super) struct Server {
    pub data: Data,
    pub fault_plan: Box<dyn FaultPlan>,
    pub counters: Counters,
    /// Each committed write of a lock row.
    pub epochs: Vec<u64>,
    pub frozen_until_us: u64,
    pub now_us: u64,
    pub commits: Option<Vec<Commit>>,
    limits: Limits,
    locks: Locks,
    transactions: BTreeMap<TrxId, Trx>,
    agenda: BTreeMap<(u64, u64), Due>,
    numbered: u64,
}

pub(super) type Shared = Arc<Mutex<Server>>;

pub(super) fn lock(server: &Shared) -> MutexGuard<'_, Server> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Server {
    pub fn new(data: Data, limits: Limits, fault_plan: Box<dyn FaultPlan>) -> Self {
        let epochs = vec![0; usize::from(data.partitions) + 1];
        Self {
            data,
            fault_plan,
            counters: Counters::default(),
            epochs,
            frozen_until_us: 0,
            now_us: 0,
            commits: None,
            limits,
            locks: Locks::default(),
            transactions: BTreeMap::new(),
            agenda: BTreeMap::new(),
            numbered: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }

    fn later(&mut self, at_us: u64, due: Due) {
        let number = self.number();
        self.agenda.insert((at_us, number), due);
    }

    pub fn wake_at(&mut self, at_us: u64, waker: Waker) {
        self.later(at_us, Due::Wake(waker));
    }

    pub fn next_at(&self) -> Option<u64> {
        self.agenda.keys().next().map(|(at, _)| *at)
    }

    /// Does what is due. A server that is frozen does nothing of its own; its clients' clocks go on.
    pub fn advance_to(&mut self, now_us: u64) {
        self.now_us = self.now_us.max(now_us);
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.now_us) {
            let due = entry.remove();
            if !matches!(due, Due::Wake(_)) && self.now_us < self.frozen_until_us {
                self.later(self.frozen_until_us, due);
                continue;
            }
            match due {
                Due::Wake(waker) => waker.wake(),
                Due::EndWait(trx, since) => self.end_wait(trx, since),
                Due::Commit(trx) => self.commit_late(trx),
                Due::RollBack(trx) => self.roll_back(trx, Standing::Gone),
                Due::ThrowOut(trx) => self.throw_out(trx),
            }
        }
    }

    pub fn begin(&mut self, by: &'static str) -> TrxId {
        let trx = TrxId(self.number());
        let active_us = self.now_us;
        let one =
            Trx { by, own: Own::default(), standing: Standing::Open, active_us, wait: 0, heard: true, waker: None };
        self.transactions.insert(trx, one);
        self.later(active_us + us(self.limits.holder), Due::ThrowOut(trx));
        trx
    }

    pub fn standing(&self, trx: TrxId) -> Standing {
        self.transactions.get(&trx).map_or(Standing::Gone, |trx| trx.standing)
    }

    /// A statement of it is carried out.
    pub fn touch(&mut self, trx: TrxId) -> Standing {
        let now_us = self.now_us;
        match self.transactions.get_mut(&trx) {
            None => Standing::Gone,
            Some(trx) => {
                trx.active_us = now_us;
                trx.standing
            }
        }
    }

    pub fn own(&mut self, trx: TrxId) -> Option<&mut Own> {
        self.transactions.get_mut(&trx).map(|trx| &mut trx.own)
    }

    /// Runs a read on what is committed, with what the transaction has written itself laid over it.
    pub fn read<T>(&mut self, trx: TrxId, read: impl FnOnce(&mut Data) -> T) -> T {
        match self.transactions.get(&trx).map(|trx| &trx.own) {
            Some(own) if own.has_rows() => view::read(&mut self.data, own, read),
            Some(own) if !own.sessions.is_empty() => {
                let committed = self.data.sessions.clone();
                Own { sessions: own.sessions.clone(), ..Own::default() }.apply(&mut self.data);
                let answer = read(&mut self.data);
                self.data.sessions = committed;
                answer
            }
            _ => read(&mut self.data),
        }
    }

    /// Asks for a lock; who is told to wait is woken when that has come to an end. A cycle is broken at once.
    pub fn ask(&mut self, trx: TrxId, row: &Row, waker: &Waker) -> Grant {
        if self.locks.ask(trx, row) == Grant::Granted {
            return Grant::Granted;
        }
        self.counters.waits += 1;
        while let Some(victim) = self.victim(trx) {
            self.counters.deadlocks += 1;
            self.roll_back(victim, Standing::Deadlocked);
        }
        let wait = self.number();
        if let Some(one) = self.transactions.get_mut(&trx) {
            (one.wait, one.waker) = (wait, Some(waker.clone()));
        }
        if !self.locks.waits(trx) {
            return Grant::Granted;
        }
        self.later(self.now_us + us(self.limits.lock_wait), Due::EndWait(trx, wait));
        Grant::Waits
    }

    fn victim(&self, trx: TrxId) -> Option<TrxId> {
        self.locks.victim(trx, |of| self.transactions.get(&of).map_or(0, |of| of.own.weight()))
    }

    pub fn waits(&self, trx: TrxId) -> bool {
        self.locks.waits(trx)
    }

    fn wake(&mut self, trx: TrxId) {
        if let Some(waker) = self.transactions.get_mut(&trx).and_then(|trx| trx.waker.take()) {
            waker.wake();
        }
    }

    fn end_wait(&mut self, trx: TrxId, wait: u64) {
        let now_us = self.now_us;
        let waits = self.locks.waits(trx);
        if let Some(one) = self.transactions.get_mut(&trx).filter(|one| waits && one.wait == wait) {
            (one.standing, one.active_us) = (Standing::TimedOut, now_us);
            self.counters.timeouts += 1;
            self.locks.stop_waiting(trx);
            self.later(now_us + us(self.limits.holder), Due::ThrowOut(trx));
            self.wake(trx);
        }
    }

    /// The statement failed, the transaction goes on.
    pub fn forgive(&mut self, trx: TrxId) {
        if let Some(one) = self.transactions.get_mut(&trx).filter(|one| one.standing == Standing::TimedOut) {
            one.standing = Standing::Open;
        }
    }

    fn release(&mut self, trx: TrxId) {
        for next in self.locks.release(trx) {
            if let Some(one) = self.transactions.get_mut(&next) {
                one.active_us = self.now_us;
                self.later(self.now_us + us(self.limits.holder), Due::ThrowOut(next));
            }
            self.wake(next);
        }
    }

    pub fn roll_back(&mut self, trx: TrxId, standing: Standing) {
        let Some(one) = self.transactions.get_mut(&trx).filter(|one| one.standing != Standing::Committed) else {
            return;
        };
        (one.own, one.standing) = (Own::default(), standing);
        self.release(trx);
        self.end(trx);
    }

    /// Tells its client, or forgets it where that is gone.
    fn end(&mut self, trx: TrxId) {
        self.wake(trx);
        if self.transactions.get(&trx).is_some_and(|one| !one.heard) {
            self.transactions.remove(&trx);
        }
    }

    /// `false` where there is nothing to commit any more.
    pub fn commit(&mut self, trx: TrxId) -> bool {
        let open = |one: &&mut Trx| matches!(one.standing, Standing::Open);
        let Some(one) = self.transactions.get_mut(&trx).filter(open) else { return false };
        one.standing = Standing::Committed;
        let (own, by) = (std::mem::take(&mut one.own), one.by);
        for row in &own.epochs {
            self.epochs[*row as usize] += 1;
        }
        if let Some(commits) = &mut self.commits {
            commits.push(own.told(by));
        }
        own.apply(&mut self.data);
        self.release(trx);
        self.end(trx);
        true
    }

    fn commit_late(&mut self, trx: TrxId) {
        let heard = self.transactions.get(&trx).is_some_and(|one| one.heard);
        self.counters.strays += u64::from(self.commit(trx) && !heard);
    }

    pub fn commit_at(&mut self, trx: TrxId, at_us: u64) {
        self.later(at_us, Due::Commit(trx));
    }

    pub fn listen(&mut self, trx: TrxId, waker: &Waker) {
        if let Some(one) = self.transactions.get_mut(&trx) {
            one.waker = Some(waker.clone());
        }
    }

    /// Its client is gone. `rolled_back_at_us`: when the server learns of that, if it does.
    pub fn abandon(&mut self, trx: TrxId, rolled_back_at_us: Option<u64>) {
        let Some(one) = self.transactions.get_mut(&trx) else { return };
        (one.heard, one.waker) = (false, None);
        if !matches!(one.standing, Standing::Open | Standing::TimedOut) {
            self.transactions.remove(&trx);
        } else if let Some(at_us) = rolled_back_at_us {
            self.later(at_us, Due::RollBack(trx));
        }
    }

    /// Nobody asks for it any more.
    pub fn forget(&mut self, trx: TrxId) {
        self.transactions.remove(&trx);
    }

    fn throw_out(&mut self, trx: TrxId) {
        let Some(one) = self.transactions.get(&trx) else { return };
        let over = matches!(one.standing, Standing::Committed | Standing::Gone | Standing::Deadlocked);
        if over || self.locks.waits(trx) {
            return;
        }
        let at_us = one.active_us + us(self.limits.holder);
        if at_us > self.now_us {
            return self.later(at_us, Due::ThrowOut(trx));
        }
        self.counters.thrown_out += 1;
        self.roll_back(trx, Standing::Gone);
    }
}
