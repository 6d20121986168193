//! The store of a cluster: one MySQL or MariaDB database that any number of nodes share.
//!
//! A transaction takes its locks first and reads after, under READ COMMITTED. What acts on a set of rows (claim, sweep)
//! takes the lock rows of the partitions, what acts on known rows compares and swaps them, ascending; a start of few of them
//! is one statement that commits by itself. A transaction that loses against another one is tried again; one whose COMMIT
//! was not acknowledged is [`StoreError::Unknown`] and its connection is ended. The database's clock is the clock.

mod client;
mod encoding;
mod optimistic_start;
mod read;
mod schema;
mod tables;
mod transaction;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::time::Timestamp;

use super::purge_cursor::{Purge, PurgeCursors};
use super::tables::Tables;
use super::{
    ClaimRequest, ControlError, ControlStore, Finished, JobKey, JobQuery, JobView, LivePart, Me, NewSession, NodeStore,
    Opened, Output, Page, PeekRequest, PutJob, RecordedLoss, RunCursor, RunQuery, RunView, Saved, SessionView,
    StoreError,
};
use crate::calls::{control, node};
use crate::mysql::client::address::Address;
pub use crate::mysql::client::error::OpenError;
pub use crate::mysql::client::open::Options;
use crate::mysql::client::open::{Pools, Variables};
use crate::mysql::client::server::Server;
use crate::mysql::read::job_loader::JobLoader;
use crate::mysql::transaction::{Context, Kind, Locks, TRIES, Transaction};
use crate::views::{jobs, runs};
use carillon_domain::store::SplitFinish;

/// Jobs, runs and sessions in a database that other nodes use too.
pub struct MySqlStore {
    pools: Pools,
    context: Arc<Context>,
    looks: JobLoader,
    rounds: PurgeCursors,
}

/// Host, port and database of an address, without user and password.
///
/// # Errors
/// [`OpenError::BadUrl`] says what is wrong with it; it shows no password.
pub fn place_of(url: &str) -> Result<String, OpenError> {
    Address::of(url).map(|address| address.place)
}

/// Runs an operation in a transaction, and again where it lost against another one.
macro_rules! within {
    ($store:expr, $pool:ident, $kind:expr, $locks:expr, |$tables:ident| $operation:expr) => {{
        let mut tries = 0;
        loop {
            tries += 1;
            let begun = Transaction::begin(&$store.pools.$pool, $store.context.clone(), $kind, $locks).await;
            let mut transaction = match begun {
                Ok(transaction) => transaction,
                Err(unbegun) if unbegun.again && tries < TRIES => continue,
                Err(unbegun) => break Err(unbegun.error.into()),
            };
            let answer = {
                let $tables = &mut transaction;
                $operation.await
            };
            let (answer, again) = transaction.end(answer).await;
            if !again || tries >= TRIES {
                break answer;
            }
        }
    }};
}

macro_rules! write {
    ($store:expr, $locks:expr, |$tables:ident| $operation:expr) => {
        within!($store, writers, Kind::Writes, $locks, |$tables| $operation)
    };
}

macro_rules! read {
    ($store:expr, |$tables:ident| $operation:expr) => {
        within!($store, readers, Kind::Reads, Locks::Rows, |$tables| $operation)
    };
}

impl MySqlStore {
    /// Opens the database at `mysql://user:password@host:port/database`, makes or migrates its schema, and opens the
    /// connection for heartbeats before any other.
    ///
    /// `?ssl-mode=` is `disabled`, `preferred` (the default), `required`, `verify_ca` or `verify_identity`, as with MySQL's
    /// clients; the last two need `ssl-ca=FILE`, the authority's certificates in PEM. `?socket=PATH` goes without TLS.
    ///
    /// # Errors
    /// [`OpenError`], each a sentence for the person who started the server.
    pub async fn open(url: &str, options: Options) -> Result<Self, OpenError> {
        let address = Address::of(url)?;
        let unreachable = |error: mysql_async::Error| address.unreachable(&error);
        let statement_timeout = options.statement_timeout;
        let server = Arc::new(Server::at(&address, statement_timeout));
        let mut conn = server.connect(&[]).await.map_err(unreachable)?.conn;
        let variables = Variables::read(&mut conn).await.map_err(unreachable)?;
        variables.check(&address, &options)?;
        let partitions = schema::prepare(&mut conn, &address, &options).await?;
        let pools = variables.pools(&server, &options);
        pools.beats.warm().await.map_err(unreachable)?;
        conn.disconnect().await.map_err(unreachable)?;
        let context = Arc::new(Context::new(options, partitions));
        let looks = JobLoader::new(pools.readers.clone(), context.clone());
        Ok(Self { pools, context, looks, rounds: PurgeCursors::default() })
    }

    async fn finish_part(
        &self,
        me: Me,
        runs: &[Finished],
        executors: &[String],
    ) -> Result<Vec<FinishAnswer>, StoreError> {
        let claims = runs.iter().any(|finished| finished.next.is_some());
        let locks = if claims { Locks::Standing(me.session) } else { Locks::Rows };
        write!(self, locks, |tables| node::finish(tables, me, runs, executors))
    }
}

#[async_trait]
impl NodeStore for MySqlStore {
    async fn open_session(&self, new: &NewSession) -> Result<Opened, StoreError> {
        write!(self, Locks::Sessions, |tables| node::open(tables, new))
    }

    async fn heartbeat(&self, me: Me, seq: u64, draining: bool) -> Result<BeatAnswer, StoreError> {
        within!(self, beats, Kind::Writes, Locks::Standing(me.session), |tables| node::heartbeat(
            tables, me, seq, draining
        ))
    }

    async fn close_session(&self, id: SessionId) -> Result<(), StoreError> {
        write!(self, Locks::All, |tables| node::close(tables, id))
    }

    async fn peek(&self, request: &PeekRequest) -> Result<Peek, StoreError> {
        read!(self, |tables| tables.peek(request))
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let locks = Locks::Partitions(&request.partitions, request.me.session);
        write!(self, locks, |tables| node::claim(tables, request))
    }

    async fn start(&self, me: Me, runs: &[RunRef]) -> Result<Vec<StartAnswer>, StoreError> {
        if let Some(answers) = self.start_optimistically(me, runs).await? {
            return Ok(answers);
        }
        write!(self, Locks::Standing(me.session), |tables| node::start(tables, me, runs))
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
        write!(self, Locks::Rows, |tables| node::release(tables, id, runs))
    }

    async fn settle(&self, id: SessionId, runs: &[RunRef]) -> Result<Vec<SettleAnswer>, StoreError> {
        write!(self, Locks::Rows, |tables| node::settle(tables, id, runs))
    }

    async fn held(&self, id: SessionId) -> Result<Vec<RunRef>, StoreError> {
        read!(self, |tables| tables.held(id))
    }

    async fn expire(&self, by: Option<Me>, id: SessionId, seen_seq: u64) -> Result<bool, StoreError> {
        write!(self, Locks::Sessions, |tables| node::expire(tables, by, id, seen_seq))
    }

    async fn sweep(&self, id: SessionId, limit: usize) -> Result<usize, StoreError> {
        write!(self, Locks::All, |tables| node::sweep(tables, id, limit))
    }

    async fn publish_output(&self, outputs: &[(RunId, LivePart)]) -> Result<(), StoreError> {
        write!(self, Locks::Rows, |tables| tables.write_live(outputs))
    }
}

#[async_trait]
impl ControlStore for MySqlStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        read!(self, |tables| std::future::ready(Ok(tables.now())))
    }

    async fn put_jobs(&self, jobs: &[PutJob]) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
        write!(self, Locks::Rows, |tables| control::put_jobs(tables, jobs))
    }

    async fn delete_job(&self, key: &JobKey, if_generation: Option<u64>) -> Result<(), ControlError> {
        write!(self, Locks::Rows, |tables| control::delete(tables, key, if_generation))
    }

    async fn job(&self, key: &JobKey) -> Result<JobView, ControlError> {
        self.looks.job(key).await?.map(JobView::from).ok_or_else(|| jobs::no_job(key))
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<JobView, JobKey>, StoreError> {
        read!(self, |tables| jobs::jobs(tables, query))
    }

    async fn pause(
        &self,
        key: &JobKey,
        until: Option<Timestamp>,
        reason: Option<String>,
    ) -> Result<JobView, ControlError> {
        write!(self, Locks::Rows, |tables| control::pause(tables, key, until, reason.clone()))
    }

    async fn resume(&self, key: &JobKey) -> Result<JobView, ControlError> {
        write!(self, Locks::Rows, |tables| control::resume(tables, key))
    }

    async fn trigger(&self, key: &JobKey, run: RunId) -> Result<(), ControlError> {
        write!(self, Locks::Rows, |tables| control::trigger(tables, key, run))
    }

    async fn cancel(&self, run: RunId) -> Result<RunView, ControlError> {
        write!(self, Locks::Rows, |tables| control::cancel(tables, run))
    }

    async fn run(&self, run: RunId) -> Result<RunView, ControlError> {
        read!(self, |tables| runs::run(tables, run))
    }

    async fn runs(&self, query: &RunQuery) -> Result<Page<RunView, RunCursor>, ControlError> {
        read!(self, |tables| runs::runs(tables, query))
    }

    async fn output(&self, run: RunId) -> Result<Output, ControlError> {
        read!(self, |tables| runs::output(tables, run))
    }

    async fn recorded_losses(&self) -> Result<Vec<RecordedLoss>, StoreError> {
        read!(self, |tables| control::losses(tables))
    }

    async fn accept_losses(&self) -> Result<Vec<RecordedLoss>, StoreError> {
        write!(self, Locks::Rows, |tables| control::accept_losses(tables))
    }

    async fn ask_output(&self, run: RunId) -> Result<Option<LivePart>, StoreError> {
        let (row, now) = read!(self, |tables| async { Ok((tables.select_live(run).await?, tables.now())) })?;
        if row.as_ref().is_none_or(|row| row.is_asked_again(now)) {
            write!(self, Locks::Rows, |tables| tables.ask_live(run))?;
        }
        Ok(row.and_then(|row| row.into_fresh(now)))
    }

    async fn sessions(&self) -> Result<Vec<SessionView>, StoreError> {
        read!(self, |tables| tables.sessions(true))
    }

    async fn purge(&self, before: Timestamp, max_runs_per_job: u32, limit: usize) -> Result<usize, StoreError> {
        let (purge, from) = (Purge { before, max_runs_per_job, limit }, self.rounds.places());
        let counted = read!(self, |tables| tables.crowded_jobs(&purge, from.crowded_after))?;
        let (purged, after) = write!(self, Locks::Rows, |tables| tables.purge(&purge, &counted, from))?;
        self.rounds.go_on(&purge, purged, after);
        Ok(purged)
    }
}
