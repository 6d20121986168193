//! A store on a database inside the process: an embedded file, or maps in memory.
//!
//! There is one transaction at a time, so there are no locks to take and no connection to lose. The calls are the same as those of
//! a cluster.

mod alerts;
pub mod port;
mod report;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::call::{BeatAnswer, WriteBackRequest};
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RunRef, SettleAnswer, StartAnswer, WriteBackAnswer};
use carillon_domain::store::SplitFinish;
use carillon_domain::time::Timestamp;

use self::port::{LocalDatabase, LocalTransaction};
use crate::audit;
use crate::calls::sign_in::{LinkDigest, SigningKey, expires_at};
use crate::calls::{control, node};
use crate::feed::{FeedLook, FeedRequest};
use crate::purge_cursor::{Purge, PurgeCursors};
use crate::tables::{Tables, at_once};
use crate::views::{feed, jobs, runs};
use crate::{
    AuditQuery, AuditView, Author, ClaimRequest, ControlError, ControlStore, Finished, JobCursor, JobKey, JobQuery,
    JobView, LivePart, Me, NewSession, NodeStore, Opened, Output, Page, PeekRequest, PutJob, RecordedLoss, RunCursor,
    RunQuery, RunView, Saved, SessionView, StoreError,
};

/// Jobs, runs and sessions in a database inside the process. It shows the methods of its database.
#[derive(Clone)]
pub struct LocalStore<D> {
    database: D,
    purge_cursors: Arc<PurgeCursors>,
}

impl<D: LocalDatabase> LocalStore<D> {
    /// A store on a database.
    pub fn on(database: D) -> Self {
        Self { database, purge_cursors: Arc::default() }
    }
}

impl<D> Deref for LocalStore<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.database
    }
}

#[async_trait]
impl<D: LocalDatabase> NodeStore for LocalStore<D> {
    async fn open_session(&self, new: &NewSession) -> Result<Opened, StoreError> {
        let new = new.clone();
        self.database.write("open_session", move |tables| at_once(node::open(tables, &new))).await
    }

    async fn heartbeat(&self, me: Me, seq: u64, draining: bool) -> Result<BeatAnswer, StoreError> {
        self.database.write("heartbeat", move |tables| at_once(node::heartbeat(tables, me, seq, draining))).await
    }

    async fn close_session(&self, id: SessionId) -> Result<(), StoreError> {
        self.database.write("close_session", move |tables| at_once(node::close(tables, id))).await
    }

    async fn peek(&self, request: &PeekRequest) -> Result<Peek, StoreError> {
        let request = request.clone();
        self.database.read("peek", move |tables| tables.peek(&request)).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let request = request.clone();
        self.database.write("claim", move |tables| at_once(node::claim(tables, &request))).await
    }

    async fn start(&self, me: Me, runs: &[RunRef]) -> Result<Vec<StartAnswer>, StoreError> {
        let runs = runs.to_vec();
        self.database.write("start", move |tables| at_once(node::start(tables, me, &runs))).await
    }

    async fn finish(&self, me: Me, runs: &[Finished], executors: &[String]) -> Result<Vec<FinishAnswer>, StoreError> {
        let (runs, executors) = (runs.to_vec(), executors.to_vec());
        let finish = move |tables: &mut D::Transaction<'_>| {
            let mut parts = SplitFinish::of(&runs);
            while let Some(part) = parts.next_part() {
                let recorded = tables.part(|tables| at_once(node::finish(tables, me, &part, &executors)));
                node::take_part(&mut parts, part, recorded)?;
            }
            Ok(parts.answers())
        };
        self.database.write("finish", finish).await
    }

    async fn release(&self, id: SessionId, runs: &[RunRef]) -> Result<(), StoreError> {
        let runs = runs.to_vec();
        self.database.write("release", move |tables| at_once(node::release(tables, id, &runs))).await
    }

    async fn settle(&self, id: SessionId, runs: &[RunRef]) -> Result<Vec<SettleAnswer>, StoreError> {
        let runs = runs.to_vec();
        self.database.write("settle", move |tables| at_once(node::settle(tables, id, &runs))).await
    }

    async fn write_back(&self, request: &WriteBackRequest) -> Result<Option<Vec<WriteBackAnswer>>, StoreError> {
        let request = request.clone();
        self.database.write("write_back", move |tables| at_once(node::write_back(tables, &request))).await
    }

    async fn list_held(&self, id: SessionId) -> Result<Vec<RunRef>, StoreError> {
        self.database.read("list_held", move |tables| tables.rows_held_by(id)).await
    }

    async fn expire(&self, by: Option<Me>, id: SessionId, seen_seq: u64) -> Result<bool, StoreError> {
        self.database.write("expire", move |tables| at_once(node::expire(tables, by, id, seen_seq))).await
    }

    async fn sweep(&self, id: SessionId, limit: usize) -> Result<usize, StoreError> {
        self.database.write("sweep", move |tables| at_once(node::sweep(tables, id, limit))).await
    }

    async fn publish_output(&self, outputs: &[(RunId, LivePart)]) -> Result<(), StoreError> {
        let outputs = outputs.to_vec();
        self.database.write("publish_output", move |tables| tables.publish_live_output(&outputs)).await
    }
}

#[async_trait]
impl<D: LocalDatabase> ControlStore for LocalStore<D> {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.database.now().await
    }

    async fn put_jobs(&self, jobs: &[PutJob]) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
        let jobs = jobs.to_vec();
        self.database.write("put_jobs", move |tables| at_once(control::put_jobs(tables, &jobs))).await
    }

    async fn delete_job(&self, key: &JobKey, if_generation: Option<u64>, author: &Author) -> Result<(), ControlError> {
        let (key, author) = (key.clone(), author.clone());
        let delete =
            move |tables: &mut D::Transaction<'_>| at_once(control::delete(tables, &key, if_generation, &author));
        self.database.write("delete_job", delete).await
    }

    async fn job(&self, key: &JobKey) -> Result<JobView, ControlError> {
        let key = key.clone();
        self.database.read("job", move |tables| at_once(jobs::job(tables, &key))).await
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<JobView, JobCursor>, StoreError> {
        let query = query.clone();
        self.database.read("jobs", move |tables| at_once(jobs::jobs(tables, &query))).await
    }

    async fn pause(
        &self,
        key: &JobKey,
        until: Option<Timestamp>,
        reason: Option<String>,
        author: &Author,
    ) -> Result<JobView, ControlError> {
        let (key, author) = (key.clone(), author.clone());
        self.database.write("pause", move |tables| at_once(control::pause(tables, &key, until, reason, &author))).await
    }

    async fn resume(&self, key: &JobKey, author: &Author) -> Result<JobView, ControlError> {
        let (key, author) = (key.clone(), author.clone());
        self.database.write("resume", move |tables| at_once(control::resume(tables, &key, &author))).await
    }

    async fn trigger_with(
        &self,
        key: &JobKey,
        run: RunId,
        params: Option<Arc<str>>,
        author: &Author,
    ) -> Result<(), ControlError> {
        let (key, author) = (key.clone(), author.clone());
        self.database
            .write("trigger", move |tables| at_once(control::trigger(tables, &key, run, params.as_ref(), &author)))
            .await
    }

    async fn cancel(&self, run: RunId, author: &Author) -> Result<RunView, ControlError> {
        let author = author.clone();
        self.database.write("cancel", move |tables| at_once(control::cancel(tables, run, &author))).await
    }

    async fn run(&self, run: RunId) -> Result<RunView, ControlError> {
        self.database.read("run", move |tables| at_once(runs::run(tables, run))).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Page<RunView, RunCursor>, ControlError> {
        let query = query.clone();
        self.database.read("runs", move |tables| at_once(runs::runs(tables, &query))).await
    }

    async fn output(&self, run: RunId) -> Result<Option<Output>, StoreError> {
        self.database.read("output", move |tables| at_once(tables.output(run))).await
    }

    async fn recorded_losses(&self) -> Result<Vec<RecordedLoss>, StoreError> {
        self.database.read("recorded_losses", |tables| at_once(control::losses(tables))).await
    }

    async fn accept_losses(&self, patience: Duration, author: &Author) -> Result<Vec<RecordedLoss>, ControlError> {
        let author = author.clone();
        self.database
            .write("accept_losses", move |tables| at_once(control::accept_losses(tables, patience, &author)))
            .await
    }

    async fn ask_output(&self, run: RunId) -> Result<Option<LivePart>, StoreError> {
        let (row, now) = self
            .database
            .read("ask_output", move |tables| Ok::<_, StoreError>((tables.live_output(run)?, tables.now())))
            .await?;
        if row.as_ref().is_none_or(|row| row.is_asked_again(now)) {
            self.database.write("ask_output", move |tables| tables.ask_live_output(run)).await?;
        }
        Ok(row.and_then(|row| row.into_fresh(now)))
    }

    async fn look(&self, request: &FeedRequest) -> Result<FeedLook, StoreError> {
        let request = request.clone();
        self.database.read("look", move |tables| at_once(feed::look(tables, &request, Duration::ZERO))).await
    }

    async fn sessions(&self) -> Result<Vec<SessionView>, StoreError> {
        self.database.read("sessions", |tables| at_once(tables.sessions(true))).await
    }

    async fn audit(&self, query: &AuditQuery) -> Result<Page<AuditView, u64>, StoreError> {
        let query = query.clone();
        self.database.read("audit", move |tables| at_once(audit::page(tables, &query))).await
    }

    async fn purge_audit(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.database.write("purge_audit", move |tables| tables.purge_audit(before, limit)).await
    }

    async fn purge(&self, before: Timestamp, max_runs_per_job: u32, limit: usize) -> Result<usize, StoreError> {
        let (purge, from) = (Purge { before, max_runs_per_job, limit }, self.purge_cursors.places());
        let counted =
            self.database.read("purge", move |tables| tables.crowded_jobs(&purge, from.crowded_after)).await?;
        let (purged, after) = self.database.write("purge", move |tables| tables.purge(&purge, &counted, from)).await?;
        self.purge_cursors.go_on(&purge, purged, after);
        Ok(purged)
    }

    async fn signing_key(&self, offered: SigningKey) -> Result<SigningKey, StoreError> {
        self.database.write("signing_key", move |tables| tables.signing_key(offered)).await
    }

    async fn add_sign_in_link(&self, link: LinkDigest, lives_for: Duration) -> Result<(), StoreError> {
        let until = move |now| expires_at(now, lives_for);
        self.database.write("add_sign_in_link", move |tables| tables.insert_link(link, until(tables.now()))).await
    }

    async fn has_sign_in_link(&self, link: LinkDigest) -> Result<bool, StoreError> {
        self.database.read("has_sign_in_link", move |tables| tables.has_link(link)).await
    }

    async fn use_sign_in_link(&self, link: LinkDigest) -> Result<bool, StoreError> {
        self.database.write("use_sign_in_link", move |tables| tables.delete_link(link)).await
    }
}
