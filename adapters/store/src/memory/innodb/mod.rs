//! The memory store made to behave as InnoDB does: transactions that run side by side, row locks with queues, statements that
//! wait, COMMITs that come late, connections that break, a server that freezes.
//!
//! [`InnoDb`] is the server. Its clients are [`Client`]s, each as one process with its turnstiles; what they ask are the same
//! operations as everywhere (`store/ops`), over locks taken in the order of the statements of `store/mysql`. Nothing here has a
//! thread or a clock: the one who drives it moves its time ([`InnoDb::advance_to`]), decides what goes wrong ([`Weather`]) and
//! polls the calls, so that a seed replays to the letter. With [`Calm`] nothing takes time and any executor will do.
//!
//! `tests/tests/on_server/locking/` holds it against real servers, step by step. What is left out: gap locks (whose deadlocks
//! [`StatementFate::RolledBack`] stands for), the number of connections a process may have, and MySQL's habit of granting a
//! lock to the waiter on whom most others wait.

mod connection;
mod known;
mod line;
mod locks;
mod own;
mod server;
mod tables;
mod transaction;
mod view;
mod weather;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::time::Timestamp;
use tokio::sync::Mutex as Turnstile;

pub use self::connection::{Connection, Refused};
use self::line::Line;
pub use self::own::{Change, Commit};
pub use self::server::{Limits, Struck};
use self::server::{Server, Shared, lock};
use self::transaction::{Locks, Transaction};
pub use self::weather::{Calm, CommitFate, StatementFate, Weather};
use super::Backup;
use super::data::Data;
use crate::cache::clock_estimate::ClockEstimate;
use crate::cache::row_cache::RowCache;
use crate::calls::{control, node};
use crate::clock::Clock;
use crate::tables::{Tables, at_once};
use crate::views::{jobs, runs};
use crate::{
    ClaimRequest, ControlError, ControlStore, Finished, JobKey, JobQuery, JobView, LivePart, Me, NewSession, NodeStore,
    Opened, Output, Page, PeekRequest, PutJob, RecordedLoss, RunCursor, RunQuery, RunView, Saved, SessionView,
    StoreError,
};
use carillon_domain::store::SplitFinish;

/// As in `store/mysql`: how often a transaction is tried that lost against another one.
const TRIES: u32 = 8;

/// A server.
#[derive(Clone)]
pub struct InnoDb {
    server: Shared,
    partitions: u16,
}

impl InnoDb {
    /// An empty one that reads the time of day from `clock`.
    pub fn new(clock: Arc<dyn Clock>, partitions: u16, limits: Limits, weather: impl Weather + 'static) -> Self {
        let server = Server::new(Data::new(clock, partitions), limits, Box::new(weather));
        Self { server: Arc::new(Mutex::new(server)), partitions: partitions.max(1) }
    }

    /// The calls of one process. The weather is asked by its number.
    pub fn client(&self, number: u64) -> Client {
        let turnstiles = (0..=self.partitions).map(|_| Arc::default()).collect();
        let (server, memory) = (self.server.clone(), Arc::default());
        Client { server, number, partitions: self.partitions, turnstiles, memory }
    }

    /// A bare connection, for statements one by one.
    pub fn connection(&self) -> Connection {
        Connection::new(self.server.clone())
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

    /// What was committed since this was asked last, in that order; nothing unless it is [watched](Self::watch).
    pub fn take_commits(&self) -> Vec<Commit> {
        lock(&self.server).commits.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What the server did of what it does rarely.
    pub fn struck(&self) -> Struck {
        lock(&self.server).struck
    }

    /// How often each lock row was written.
    pub fn epochs(&self) -> Vec<u64> {
        lock(&self.server).epochs.clone()
    }

    /// As [`super::MemoryStore::back_up`].
    pub fn back_up(&self) -> Backup {
        Backup::of(&lock(&self.server).data)
    }

    /// As [`super::MemoryStore::restore`].
    pub fn restore(&self, backup: &Backup) {
        backup.overwrite(&mut lock(&self.server).data);
    }

    /// As [`super::MemoryStore::record_conflicts`].
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

/// One process's way to the server.
#[derive(Clone)]
pub struct Client {
    server: Shared,
    number: u64,
    partitions: u16,
    turnstiles: Vec<Arc<Turnstile<()>>>,
    memory: Arc<Memory>,
}

/// What a process knows without asking.
struct Memory {
    held: Mutex<RowCache>,
    reckoning: Mutex<ClockEstimate>,
}

impl Default for Memory {
    /// Of a process that holds fewer rows than this.
    fn default() -> Self {
        Self { held: Mutex::new(RowCache::of(10_000)), reckoning: Mutex::default() }
    }
}

impl Memory {
    fn held(&self) -> MutexGuard<'_, RowCache> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reckoning(&self) -> MutexGuard<'_, ClockEstimate> {
        self.reckoning.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which of the process's turnstiles are passed first, ascending.
enum Pass<'a> {
    Nothing,
    Sessions,
    Partitions(&'a [u16]),
    All,
}

/// Runs an operation in a transaction, and again where it lost against another one.
macro_rules! write {
    ($client:expr, $by:literal, $pass:expr, |$tables:ident| $operation:expr) => {{
        let mut tries = 0;
        loop {
            let (_passed, mut transaction) = $client.begin($by, $pass).await?;
            let answer = {
                let $tables = &mut transaction;
                $operation.await
            };
            let (answer, again) = transaction.end(answer).await;
            tries += 1;
            if !again || tries >= TRIES {
                break answer;
            }
        }
    }};
}

type Passed = Vec<tokio::sync::OwnedMutexGuard<()>>;

impl Client {
    async fn begin(&self, by: &'static str, pass: Pass<'_>) -> Result<(Passed, Transaction), StoreError> {
        let (mut wanted, locks): (Vec<usize>, Locks) = match pass {
            Pass::Nothing => (Vec::new(), Locks::Rows),
            Pass::Sessions => (vec![0], Locks::Sessions),
            Pass::Partitions(which) => (which.iter().map(|one| usize::from(*one) + 1).collect(), Locks::Rows),
            Pass::All => ((0..self.turnstiles.len()).collect(), Locks::Sessions),
        };
        wanted.sort_unstable();
        wanted.dedup();
        let mut passed = Vec::with_capacity(wanted.len());
        for turnstile in wanted.iter().filter_map(|at| self.turnstiles.get(*at)) {
            passed.push(turnstile.clone().lock_owned().await);
        }
        let line = Line::begin(self.server.clone(), self.number, by).await?;
        Ok((passed, Transaction::new(line, self.partitions, locks, self.memory.clone()).await?))
    }

    /// A transaction that only reads: one state of the database, and no lock.
    async fn look<T, E: From<StoreError>>(&self, read: impl FnOnce(&mut Data) -> Result<T, E> + Send) -> Result<T, E> {
        line::travel(&self.server, self.number).await;
        match lock(&self.server).weather.statement(self.number) {
            StatementFate::Arrives => {}
            StatementFate::TimesOut | StatementFate::RolledBack | StatementFate::Lost { .. } => {
                return Err(StoreError::Retryable("the connection is gone".to_owned()).into());
            }
        }
        read(&mut lock(&self.server).data)
    }

    async fn finish_part(
        &self,
        me: Me,
        part: &[Finished],
        executors: &[String],
    ) -> Result<Vec<FinishAnswer>, StoreError> {
        write!(self, "finish", Pass::Nothing, |tables| node::finish(tables, me, part, executors))
    }
}

#[async_trait]
impl NodeStore for Client {
    async fn open_session(&self, new: &NewSession) -> Result<Opened, StoreError> {
        write!(self, "open_session", Pass::Sessions, |tables| node::open(tables, new))
    }

    async fn heartbeat(&self, me: Me, seq: u64, draining: bool) -> Result<BeatAnswer, StoreError> {
        write!(self, "heartbeat", Pass::Nothing, |tables| node::heartbeat(tables, me, seq, draining))
    }

    async fn close_session(&self, id: SessionId) -> Result<(), StoreError> {
        write!(self, "close_session", Pass::All, |tables| node::close(tables, id))
    }

    async fn peek(&self, request: &PeekRequest) -> Result<Peek, StoreError> {
        self.look(|data| Ok(data.peek(request))).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        write!(self, "claim", Pass::Partitions(&request.partitions), |tables| node::claim(tables, request))
    }

    async fn start(&self, me: Me, runs: &[RunRef]) -> Result<Vec<StartAnswer>, StoreError> {
        if let Some(answers) = self.start_known(me, runs).await? {
            return Ok(answers);
        }
        write!(self, "start", Pass::Nothing, |tables| node::start(tables, me, runs))
    }

    async fn finish(&self, me: Me, runs: &[Finished], executors: &[String]) -> Result<Vec<FinishAnswer>, StoreError> {
        let mut parts = SplitFinish::of(runs);
        while let Some(part) = parts.next_part() {
            let answer = self.finish_part(me, &part, executors).await;
            node::take_part(&mut parts, part, answer)?;
        }
        Ok(parts.answers())
    }

    async fn reset(&self, id: SessionId, runs: &[RunRef]) -> Result<(), StoreError> {
        write!(self, "reset", Pass::Nothing, |tables| node::release(tables, id, runs))
    }

    async fn settle(&self, id: SessionId, runs: &[RunRef]) -> Result<Vec<SettleAnswer>, StoreError> {
        write!(self, "settle", Pass::Nothing, |tables| node::settle(tables, id, runs))
    }

    async fn held(&self, id: SessionId) -> Result<Vec<RunRef>, StoreError> {
        self.look(|data| Ok(data.held(id))).await
    }

    async fn expire(&self, by: Option<Me>, id: SessionId, seen_seq: u64) -> Result<bool, StoreError> {
        write!(self, "expire", Pass::Sessions, |tables| node::expire(tables, by, id, seen_seq))
    }

    async fn sweep(&self, id: SessionId, limit: usize) -> Result<usize, StoreError> {
        write!(self, "sweep", Pass::All, |tables| node::sweep(tables, id, limit))
    }

    async fn publish_output(&self, outputs: &[(RunId, LivePart)]) -> Result<(), StoreError> {
        let outputs = outputs.to_vec();
        self.look(|data| {
            data.publish_output(outputs);
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl ControlStore for Client {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.look(|data| Ok(data.clock.now())).await
    }

    async fn put_jobs(&self, jobs: &[PutJob]) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
        write!(self, "put_jobs", Pass::Nothing, |tables| control::put_jobs(tables, jobs))
    }

    async fn delete_job(&self, key: &JobKey, if_generation: Option<u64>) -> Result<(), ControlError> {
        write!(self, "delete_job", Pass::Nothing, |tables| control::delete(tables, key, if_generation))
    }

    async fn job(&self, key: &JobKey) -> Result<JobView, ControlError> {
        self.look(|data| at_once(jobs::job(&mut data.begin(), key))).await
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<JobView, JobKey>, StoreError> {
        self.look(|data| at_once(jobs::jobs(&mut data.begin(), query))).await
    }

    async fn pause(
        &self,
        key: &JobKey,
        until: Option<Timestamp>,
        reason: Option<String>,
    ) -> Result<JobView, ControlError> {
        write!(self, "pause", Pass::Nothing, |tables| control::pause(tables, key, until, reason.clone()))
    }

    async fn resume(&self, key: &JobKey) -> Result<JobView, ControlError> {
        write!(self, "resume", Pass::Nothing, |tables| control::resume(tables, key))
    }

    async fn trigger(&self, key: &JobKey, run: RunId) -> Result<(), ControlError> {
        write!(self, "trigger", Pass::Nothing, |tables| control::trigger(tables, key, run))
    }

    async fn cancel(&self, run: RunId) -> Result<RunView, ControlError> {
        write!(self, "cancel", Pass::Nothing, |tables| control::cancel(tables, run))
    }

    async fn run(&self, run: RunId) -> Result<RunView, ControlError> {
        self.look(|data| at_once(runs::run(&mut data.begin(), run))).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Page<RunView, RunCursor>, ControlError> {
        self.look(|data| at_once(runs::runs(&mut data.begin(), query))).await
    }

    async fn output(&self, run: RunId) -> Result<Output, ControlError> {
        self.look(|data| at_once(runs::output(&mut data.begin(), run))).await
    }

    async fn recorded_losses(&self) -> Result<Vec<RecordedLoss>, StoreError> {
        self.look(|data| at_once(control::losses(&mut data.begin()))).await
    }

    async fn accept_losses(&self) -> Result<Vec<RecordedLoss>, StoreError> {
        write!(self, "accept_losses", Pass::Nothing, |tables| control::accept_losses(tables))
    }

    async fn ask_output(&self, run: RunId) -> Result<Option<LivePart>, StoreError> {
        self.look(|data| Ok(data.ask_output(run))).await
    }

    async fn sessions(&self) -> Result<Vec<SessionView>, StoreError> {
        self.look(|data| at_once(data.begin().sessions(true))).await
    }

    async fn purge(&self, before: Timestamp, max_runs_per_job: u32, limit: usize) -> Result<usize, StoreError> {
        self.look(|data| Ok(data.purge(before, max_runs_per_job, limit))).await
    }
}
