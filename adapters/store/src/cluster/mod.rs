//! The store of a cluster: one database that any number of nodes share.
//!
//! A transaction takes its locks first and reads after, under READ COMMITTED. A call that acts on a set of rows (claim, sweep) takes
//! the lock rows of the partitions. A call that acts on known rows compares and swaps them, in ascending order. A start of few rows is one
//! statement that commits by itself. A transaction that loses against another one is tried again. One whose COMMIT was not
//! acknowledged is [`StoreError::Unknown`], and its connection is ended. The database's clock is the clock.
//!
//! Everything here is generic over a [`Database`](port::Database), which only carries out statements.

#[macro_use]
mod retrying;

mod alerts;
mod job_loader;
mod locks;
mod optimistic_start;
mod people;
pub mod port;
mod report;
mod rows;
mod shared;
mod tables;
mod transaction;
mod write;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::call::{BeatAnswer, WriteBackRequest};
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RunRef, SettleAnswer, StartAnswer, WriteBackAnswer};
use carillon_domain::store::SplitFinish;
use carillon_domain::time::Timestamp;

use self::job_loader::JobLoader;
use self::locks::Locks;
pub(crate) use self::locks::{lock_name, without_locks};
use self::port::{Database, LiveOutputs, Pool, Purging};
use self::shared::StoreState;
use self::transaction::{TRIES, Transaction};
use crate::audit;
use crate::calls::sign_in::{LinkDigest, SigningKey};
use crate::calls::{control, node};
use crate::clock::Clock;
use crate::feed::{FeedLook, FeedRequest};
use crate::purge_cursor::{Purge, PurgeCursors};
use crate::tables::Tables;
use crate::views::{feed, jobs, runs};
use crate::{
    AuditQuery, AuditView, Author, ClaimRequest, ControlError, ControlStore, Finished, JobCursor, JobKey, JobQuery,
    JobView, LivePart, Me, NewSession, NodeStore, Opened, Output, Page, PeekRequest, PutJob, RecordedLoss, RunCursor,
    RunQuery, RunView, Saved, ServerReport, SessionView, StoreError,
};

/// Jobs, runs and sessions in a database that other nodes use too. Clones share everything.
pub struct ClusterStore<D> {
    database: Arc<D>,
    shared: Arc<StoreState>,
    jobs: Arc<JobLoader<D>>,
    purge_cursors: Arc<PurgeCursors>,
}

impl<D> Clone for ClusterStore<D> {
    fn clone(&self) -> Self {
        let Self { database, shared, jobs, purge_cursors } = self;
        let (database, shared) = (database.clone(), shared.clone());
        Self { database, shared, jobs: jobs.clone(), purge_cursors: purge_cursors.clone() }
    }
}

macro_rules! write {
    ($store:expr, $name:literal, $locks:expr, |$tables:ident| $call:expr) => {
        within!(Transaction::begin(&$store.database, &$store.shared, (Pool::Writers, $name), $locks), |$tables| $call)
    };
}

macro_rules! read {
    ($store:expr, $name:literal, |$tables:ident| $call:expr) => {
        within!(Transaction::read(&$store.database, &$store.shared, $name), |$tables| $call)
    };
}

impl<D: Database> ClusterStore<D> {
    /// A store on a database with so many partitions, for a node that holds at most `held` firings. `clock` tells the time in place of
    /// the database; for tests.
    pub fn new(database: D, clock: Option<Arc<dyn Clock>>, partitions: u16, held: usize) -> Self {
        let (database, shared) = (Arc::new(database), Arc::new(StoreState::new(clock, partitions, held)));
        let jobs = Arc::new(JobLoader::new(database.clone(), shared.clone()));
        Self { database, shared, jobs, purge_cursors: Arc::default() }
    }

    /// The database under the protocol.
    pub(crate) fn database(&self) -> &D {
        &self.database
    }

    async fn finish_part(
        &self,
        me: Me,
        runs: &[Finished],
        executors: &[String],
    ) -> Result<Vec<FinishAnswer>, StoreError> {
        let claims = runs.iter().any(|finished| finished.next.is_some());
        let locks = if claims { Locks::Standing(me.session) } else { Locks::Rows };
        write!(self, "finish", locks, |tables| node::finish(tables, me, runs, executors))
    }
}

#[async_trait]
impl<D: Database> NodeStore for ClusterStore<D> {
    async fn open_session(&self, new: &NewSession) -> Result<Opened, StoreError> {
        write!(self, "open_session", Locks::Sessions, |tables| node::open(tables, new))
    }

    async fn heartbeat(&self, me: Me, seq: u64, draining: bool) -> Result<BeatAnswer, StoreError> {
        let locks = Locks::Standing(me.session);
        within!(Transaction::begin(&self.database, &self.shared, (Pool::Heartbeats, "heartbeat"), locks), |tables| {
            node::heartbeat(tables, me, seq, draining)
        })
    }

    async fn close_session(&self, id: SessionId) -> Result<(), StoreError> {
        write!(self, "close_session", Locks::All, |tables| node::close(tables, id))
    }

    async fn peek(&self, request: &PeekRequest) -> Result<Peek, StoreError> {
        glance!(self, |tables| tables.peek(request))
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let locks = Locks::Partitions(&request.partitions, request.me.session);
        write!(self, "claim", locks, |tables| node::claim(tables, request))
    }

    async fn start(&self, me: Me, runs: &[RunRef]) -> Result<Vec<StartAnswer>, StoreError> {
        if let Some(answers) = self.start_optimistically(me, runs).await? {
            return Ok(answers);
        }
        write!(self, "start", Locks::Standing(me.session), |tables| node::start(tables, me, runs))
    }

    async fn finish(&self, me: Me, runs: &[Finished], executors: &[String]) -> Result<Vec<FinishAnswer>, StoreError> {
        let mut parts = SplitFinish::of(runs);
        while let Some(part) = parts.next_part() {
            let answer = self.finish_part(me, &part, executors).await;
            node::take_part(&mut parts, part, answer)?;
        }
        Ok(parts.answers())
    }

    async fn release(&self, id: SessionId, runs: &[RunRef]) -> Result<(), StoreError> {
        write!(self, "release", Locks::Rows, |tables| node::release(tables, id, runs))
    }

    async fn settle(&self, id: SessionId, runs: &[RunRef]) -> Result<Vec<SettleAnswer>, StoreError> {
        write!(self, "settle", Locks::Rows, |tables| node::settle(tables, id, runs))
    }

    async fn write_back(&self, request: &WriteBackRequest) -> Result<Option<Vec<WriteBackAnswer>>, StoreError> {
        write!(self, "write_back", Locks::Standing(request.me.session), |tables| node::write_back(tables, request))
    }

    async fn list_held(&self, id: SessionId) -> Result<Vec<RunRef>, StoreError> {
        read!(self, "list_held", |tables| tables.held(id))
    }

    async fn expire(&self, by: Option<Me>, id: SessionId, seen_seq: u64) -> Result<bool, StoreError> {
        write!(self, "expire", Locks::Sessions, |tables| node::expire(tables, by, id, seen_seq))
    }

    async fn sweep(&self, id: SessionId, limit: usize) -> Result<usize, StoreError> {
        write!(self, "sweep", Locks::All, |tables| node::sweep(tables, id, limit))
    }

    async fn publish_output(&self, outputs: &[(RunId, LivePart)]) -> Result<(), StoreError> {
        write!(self, "publish_output", Locks::Rows, |tables| tables.publish(outputs))
    }
}

#[async_trait]
impl<D: Database> ControlStore for ClusterStore<D> {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        match self.shared.estimated_us(self.database.boot_us()) {
            Some(now_us) => Ok(Timestamp::from_ms(now_us.div_euclid(1000))),
            None => glance!(self, |tables| std::future::ready(Ok(tables.now()))),
        }
    }

    async fn put_jobs(&self, jobs: &[PutJob]) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
        write!(self, "put_jobs", Locks::Rows, |tables| control::put_jobs(tables, jobs))
    }

    async fn delete_job(&self, key: &JobKey, if_generation: Option<u64>, author: &Author) -> Result<(), ControlError> {
        write!(self, "delete_job", Locks::Rows, |tables| control::delete(tables, key, if_generation, author))
    }

    async fn job(&self, key: &JobKey) -> Result<JobView, ControlError> {
        self.jobs.job(key).await?.map(JobView::from).ok_or_else(|| jobs::no_job(key))
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<JobView, JobCursor>, StoreError> {
        glance!(self, |tables| jobs::jobs(tables, query))
    }

    async fn pause(
        &self,
        key: &JobKey,
        until: Option<Timestamp>,
        reason: Option<String>,
        author: &Author,
    ) -> Result<JobView, ControlError> {
        write!(self, "pause", Locks::Rows, |tables| control::pause(tables, key, until, reason.clone(), author))
    }

    async fn resume(&self, key: &JobKey, author: &Author) -> Result<JobView, ControlError> {
        write!(self, "resume", Locks::Rows, |tables| control::resume(tables, key, author))
    }

    async fn trigger_with(
        &self,
        key: &JobKey,
        run: RunId,
        params: Option<Arc<str>>,
        author: &Author,
    ) -> Result<(), ControlError> {
        write!(self, "trigger", Locks::Rows, |tables| control::trigger(tables, key, run, params.as_ref(), author))
    }

    async fn cancel(&self, run: RunId, author: &Author) -> Result<RunView, ControlError> {
        write!(self, "cancel", Locks::Rows, |tables| control::cancel(tables, run, author))
    }

    async fn run(&self, run: RunId) -> Result<RunView, ControlError> {
        glance!(self, |tables| runs::run(tables, run))
    }

    async fn runs(&self, query: &RunQuery) -> Result<Page<RunView, RunCursor>, ControlError> {
        if query.job.is_some() || query.job_id.is_some() {
            return glance!(self, |tables| runs::runs(tables, query));
        }
        read!(self, "runs", |tables| runs::runs(tables, query))
    }

    async fn output(&self, run: RunId) -> Result<Option<Output>, StoreError> {
        glance!(self, |tables| tables.output(run))
    }

    async fn recorded_losses(&self) -> Result<Vec<RecordedLoss>, StoreError> {
        glance!(self, |tables| control::losses(tables))
    }

    async fn accept_losses(&self, patience: Duration, author: &Author) -> Result<Vec<RecordedLoss>, ControlError> {
        write!(self, "accept_losses", Locks::Rows, |tables| control::accept_losses(tables, patience, author))
    }

    async fn ask_output(&self, run: RunId) -> Result<Option<LivePart>, StoreError> {
        let (row, now) = read!(self, "ask_output", |tables| async {
            Ok::<_, StoreError>((tables.connection.live_output(run).await?, tables.now()))
        })?;
        if row.as_ref().is_none_or(|row| row.is_asked_again(now)) {
            write!(self, "ask_output", Locks::Rows, |tables| tables.ask_live_output(run))?;
        }
        Ok(row.and_then(|row| row.into_fresh(now)))
    }

    async fn look(&self, request: &FeedRequest) -> Result<FeedLook, StoreError> {
        let commits_within = self.database.commits_within();
        read!(self, "look", |tables| feed::look(tables, request, commits_within))
    }

    fn server(&self) -> Option<ServerReport> {
        self.database.server()
    }

    async fn sessions(&self) -> Result<Vec<SessionView>, StoreError> {
        glance!(self, |tables| tables.sessions(true))
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Page<AuditView, u64>, StoreError> {
        glance!(self, |tables| audit::page(tables, query))
    }

    async fn purge_audit(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        write!(self, "purge_audit", Locks::Rows, |tables| tables.purge_audit(before, limit))
    }

    async fn purge(&self, before: Timestamp, max_runs_per_job: u32, limit: usize) -> Result<usize, StoreError> {
        let (purge, from) = (Purge { before, max_runs_per_job, limit }, self.purge_cursors.places());
        let counted = read!(self, "purge", |tables| tables.connection.crowded_jobs(&purge, from.crowded_after))?;
        let (purged, after) = write!(self, "purge", Locks::Rows, |tables| tables.purge(&purge, &counted, from))?;
        self.purge_cursors.go_on(&purge, purged, after);
        Ok(purged)
    }

    async fn signing_key(&self, offered: SigningKey) -> Result<SigningKey, StoreError> {
        write!(self, "signing_key", Locks::Rows, |tables| tables.signing_key(offered))
    }

    async fn add_sign_in_link(&self, link: LinkDigest, lives_for: Duration) -> Result<(), StoreError> {
        write!(self, "add_sign_in_link", Locks::Rows, |tables| tables.add_link(link, lives_for))
    }

    async fn has_sign_in_link(&self, link: LinkDigest) -> Result<bool, StoreError> {
        read!(self, "has_sign_in_link", |tables| tables.has_link(link))
    }

    async fn use_sign_in_link(&self, link: LinkDigest) -> Result<bool, StoreError> {
        write!(self, "use_sign_in_link", Locks::Rows, |tables| tables.use_link(link))
    }
}
