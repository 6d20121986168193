//! The store of a single server: one SQLite file.
//!
//! One thread writes (`writer`), a few connections read (`readers`), and the operations are the same as everywhere. Whoever
//! serves the file holds its [`Lease`] first, so what former lives left can be ended and swept at once.

mod change;
mod client;
mod history;
mod live_output;
mod losses;
mod purge;
mod rows;
mod select;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::time::Timestamp;

use super::clock::Clock;
use super::purge_cursor::{Places, Purge, PurgeCursors};
use super::tables::{Tables, at_once};
use super::{
    ClaimRequest, ControlError, ControlStore, Finished, JobKey, JobQuery, JobView, LivePart, Me, NewSession, NodeStore,
    Opened, Output, Page, PeekRequest, PutJob, RecordedLoss, RunCursor, RunQuery, RunView, Saved, SessionView,
    StoreError,
};
use crate::cache::definition_cache::Cache;
use crate::calls::{control, node};
pub use crate::sqlite::client::error::OpenError;
pub use crate::sqlite::client::lease::{Lease, LeaseError};
pub use crate::sqlite::client::open::{OpenOptions, path_of_url};
use crate::sqlite::client::readers::{Reader, Readers};
use crate::sqlite::client::writer::{Desk, Writer, savepoint};
use crate::sqlite::tables::Transaction;
use crate::views::{jobs, runs};
use carillon_domain::store::SplitFinish;

/// Jobs, runs and sessions in one file. Dropping it waits until what was accepted is written; everything is in the one
/// file then, so that it may be copied.
pub struct SqliteStore {
    clock: Arc<dyn Clock>,
    partitions: u16,
    /// Dropped before the writer: the last connection to close folds the write-ahead log into the file, and only the one
    /// that writes may.
    readers: Readers,
    writer: Writer,
    rounds: PurgeCursors,
}

impl SqliteStore {
    /// Opens the database, or makes it: with mode 0600, durable at every commit, at the newest schema. Blocks the thread.
    ///
    /// # Errors
    /// [`OpenError`], each a sentence for the person who started the server.
    pub fn open(path: &Path, clock: Arc<dyn Clock>, options: OpenOptions) -> Result<Self, OpenError> {
        let path = absolute(path)?;
        let (conn, partitions) = crate::sqlite::client::open::writer(&path, &options)?;
        let other = |reason: std::io::Error| OpenError::Other { path: path.clone(), reason: reason.to_string() };
        let writer = Writer::spawn(conn, Cache::of(options.held)).map_err(other)?;
        Ok(Self {
            clock,
            partitions,
            readers: Readers::new(path, options.readers),
            writer,
            rounds: PurgeCursors::default(),
        })
    }

    /// One writing transaction.
    async fn write<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (clock, partitions) = (self.clock.clone(), self.partitions);
        self.writer.call(move |desk| operation(&mut begin(desk, clock.now_us(), partitions))).await
    }

    /// One look at one state of the database.
    async fn read<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        look: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (clock, partitions) = (self.clock.clone(), self.partitions);
        let look = move |Reader { conn, cache }: &mut Reader| {
            look(&mut Transaction { conn, cache, now_us: clock.now_us(), partitions })
        };
        self.readers.call(look).await
    }
}

fn begin(desk: &mut Desk, now_us: i64, partitions: u16) -> Transaction<'_> {
    Transaction { conn: &desk.conn, cache: &mut desk.cache, now_us, partitions }
}

/// Readers are opened later, perhaps from another directory.
fn absolute(path: &Path) -> Result<PathBuf, OpenError> {
    std::path::absolute(path).map_err(|error| OpenError::Other { path: path.to_owned(), reason: error.to_string() })
}

#[async_trait]
impl NodeStore for SqliteStore {
    async fn open_session(&self, new: &NewSession) -> Result<Opened, StoreError> {
        let new = new.clone();
        self.write(move |tables| at_once(node::open(tables, &new))).await
    }

    async fn heartbeat(&self, me: Me, seq: u64, draining: bool) -> Result<BeatAnswer, StoreError> {
        self.write(move |tables| at_once(node::heartbeat(tables, me, seq, draining))).await
    }

    async fn close_session(&self, id: SessionId) -> Result<(), StoreError> {
        self.write(move |tables| at_once(node::close(tables, id))).await
    }

    async fn peek(&self, request: &PeekRequest) -> Result<Peek, StoreError> {
        let request = request.clone();
        self.read(move |tables| history::peek(tables.conn, &request, tables.partitions, tables.now())).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let request = request.clone();
        self.write(move |tables| at_once(node::claim(tables, &request))).await
    }

    async fn start(&self, me: Me, runs: &[RunRef]) -> Result<Vec<StartAnswer>, StoreError> {
        let runs = runs.to_vec();
        self.write(move |tables| at_once(node::start(tables, me, &runs))).await
    }

    async fn finish(&self, me: Me, runs: &[Finished], executors: &[String]) -> Result<Vec<FinishAnswer>, StoreError> {
        let (runs, executors) = (runs.to_vec(), executors.to_vec());
        let (clock, partitions) = (self.clock.clone(), self.partitions);
        let finish = move |desk: &mut Desk| {
            let now_us = clock.now_us();
            let mut parts = SplitFinish::of(&runs);
            while let Some(part) = parts.next_part() {
                let recorded = savepoint(desk, |desk| {
                    at_once(node::finish(&mut begin(desk, now_us, partitions), me, &part, &executors))
                });
                node::take_part(&mut parts, part, recorded.map_err(crate::sqlite::client::error::statement).flatten())?;
            }
            Ok(parts.answers())
        };
        self.writer.call(finish).await
    }

    async fn reset(&self, id: SessionId, runs: &[RunRef]) -> Result<(), StoreError> {
        let runs = runs.to_vec();
        self.write(move |tables| at_once(node::release(tables, id, &runs))).await
    }

    async fn settle(&self, id: SessionId, runs: &[RunRef]) -> Result<Vec<SettleAnswer>, StoreError> {
        let runs = runs.to_vec();
        self.write(move |tables| at_once(node::settle(tables, id, &runs))).await
    }

    async fn held(&self, id: SessionId) -> Result<Vec<RunRef>, StoreError> {
        self.read(move |tables| history::held(tables.conn, id)).await
    }

    async fn expire(&self, by: Option<Me>, id: SessionId, seen_seq: u64) -> Result<bool, StoreError> {
        self.write(move |tables| at_once(node::expire(tables, by, id, seen_seq))).await
    }

    async fn sweep(&self, id: SessionId, limit: usize) -> Result<usize, StoreError> {
        self.write(move |tables| at_once(node::sweep(tables, id, limit))).await
    }

    async fn publish_output(&self, outputs: &[(RunId, LivePart)]) -> Result<(), StoreError> {
        let outputs = outputs.to_vec();
        self.write(move |tables| live_output::write(tables.conn, &outputs)).await
    }
}

#[async_trait]
impl ControlStore for SqliteStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.clock.now())
    }

    async fn put_jobs(&self, jobs: &[PutJob]) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
        let jobs = jobs.to_vec();
        self.write(move |tables| at_once(control::put_jobs(tables, &jobs))).await
    }

    async fn delete_job(&self, key: &JobKey, if_generation: Option<u64>) -> Result<(), ControlError> {
        let key = key.clone();
        self.write(move |tables| at_once(control::delete(tables, &key, if_generation))).await
    }

    async fn job(&self, key: &JobKey) -> Result<JobView, ControlError> {
        let key = key.clone();
        self.read(move |tables| at_once(jobs::job(tables, &key))).await
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<JobView, JobKey>, StoreError> {
        let query = query.clone();
        self.read(move |tables| at_once(jobs::jobs(tables, &query))).await
    }

    async fn pause(
        &self,
        key: &JobKey,
        until: Option<Timestamp>,
        reason: Option<String>,
    ) -> Result<JobView, ControlError> {
        let key = key.clone();
        self.write(move |tables| at_once(control::pause(tables, &key, until, reason))).await
    }

    async fn resume(&self, key: &JobKey) -> Result<JobView, ControlError> {
        let key = key.clone();
        self.write(move |tables| at_once(control::resume(tables, &key))).await
    }

    async fn trigger(&self, key: &JobKey, run: RunId) -> Result<(), ControlError> {
        let key = key.clone();
        self.write(move |tables| at_once(control::trigger(tables, &key, run))).await
    }

    async fn cancel(&self, run: RunId) -> Result<RunView, ControlError> {
        self.write(move |tables| at_once(control::cancel(tables, run))).await
    }

    async fn run(&self, run: RunId) -> Result<RunView, ControlError> {
        self.read(move |tables| at_once(runs::run(tables, run))).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Page<RunView, RunCursor>, ControlError> {
        let query = query.clone();
        self.read(move |tables| at_once(runs::runs(tables, &query))).await
    }

    async fn output(&self, run: RunId) -> Result<Output, ControlError> {
        self.read(move |tables| at_once(runs::output(tables, run))).await
    }

    async fn recorded_losses(&self) -> Result<Vec<RecordedLoss>, StoreError> {
        self.read(|tables| at_once(control::losses(tables))).await
    }

    async fn accept_losses(&self) -> Result<Vec<RecordedLoss>, StoreError> {
        self.write(|tables| at_once(control::accept_losses(tables))).await
    }

    async fn ask_output(&self, run: RunId) -> Result<Option<LivePart>, StoreError> {
        let (row, now) = self
            .read(move |tables| Ok::<_, StoreError>((live_output::select(tables.conn, run)?, tables.now())))
            .await?;
        if row.as_ref().is_none_or(|row| row.is_asked_again(now)) {
            self.write(move |tables| live_output::ask(tables.conn, run, tables.now())).await?;
        }
        Ok(row.and_then(|row| row.into_fresh(now)))
    }

    async fn sessions(&self) -> Result<Vec<SessionView>, StoreError> {
        self.read(|tables| at_once(tables.sessions(true))).await
    }

    async fn purge(&self, before: Timestamp, max_runs_per_job: u32, limit: usize) -> Result<usize, StoreError> {
        let (purge, from) = (Purge { before, max_runs_per_job, limit }, self.rounds.places());
        let counted = self.read(move |tables| purge::crowded_jobs(tables.conn, &purge, from.crowded_after)).await?;
        let after = Places { crowded_after: counted.next_after, ..from };
        let purging = self.write(move |tables| {
            let purged = purge::purge(tables.conn, &purge, &counted)?;
            losses::purge(tables.conn, tables.now())?;
            live_output::purge(tables.conn, tables.now())?;
            Ok::<_, StoreError>(purged)
        });
        let purged = purging.await?;
        self.rounds.go_on(&purge, purged, after);
        Ok(purged)
    }
}
