//! The store for tests and the simulator: the same operations over ordered maps, with faults on demand.

mod backup;
mod data;
mod faults;
pub mod innodb;
mod live;
mod tables;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::time::Timestamp;

pub use self::backup::Backup;
use self::data::Data;
pub use self::faults::{Fault, Faults};
use super::clock::Clock;
use super::tables::{Tables, at_once};
use super::{
    ClaimRequest, ControlError, ControlStore, Finished, JobKey, JobQuery, JobView, LivePart, Me, NewSession, NodeStore,
    Opened, Output, Page, PeekRequest, PutJob, RecordedLoss, RunCursor, RunQuery, RunView, Saved, SessionView,
    StoreError,
};
use crate::calls::{control, node};
use crate::views::{jobs, runs};
use carillon_domain::store::SplitFinish;

type Stray = Box<dyn FnOnce(&mut Data) + Send>;

/// Jobs, runs and sessions in memory. Clones share them.
#[derive(Clone)]
pub struct MemoryStore {
    data: Arc<Mutex<Data>>,
    faults: Faults,
    strays: Arc<Mutex<Vec<Stray>>>,
}

impl MemoryStore {
    /// An empty store that reads the time from `clock`.
    pub fn new(clock: Arc<dyn Clock>, partitions: u16) -> Self {
        Self {
            data: Arc::new(Mutex::new(Data::new(clock, partitions))),
            faults: Faults::default(),
            strays: Arc::default(),
        }
    }

    /// What will go wrong.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Applies the oldest transaction that was answered [`StoreError::Unknown`] and is still under way; `false` when there
    /// is none. Its guards are asked now, at the time that it is now.
    pub fn land_stray(&self) -> bool {
        let mut strays = lock(&self.strays);
        if strays.is_empty() {
            return false;
        }
        let stray = strays.remove(0);
        drop(strays);
        stray(&mut lock(&self.data));
        true
    }

    /// Everything that is stored, as it is now.
    pub fn back_up(&self) -> Backup {
        Backup::of(&lock(&self.data))
    }

    /// Goes back to what was stored then, in this store or in another one; the time goes on.
    pub fn restore(&self, backup: &Backup) {
        backup.overwrite(&mut lock(&self.data));
    }

    /// How often a second record for one (job, due time, trigger, attempt) was refused; 0 unless a rule is broken.
    pub fn record_conflicts(&self) -> usize {
        lock(&self.data).record_conflicts
    }

    /// One transaction, with whatever fault is due. `operation` keeps its own copy of what it was asked, as a stray one is
    /// run after its caller has gone.
    fn call<T, E: From<StoreError>>(
        &self,
        method: &'static str,
        operation: impl FnOnce(&mut Data) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let said = |what: &str| format!("{method}: {what}");
        match self.faults.next(method) {
            None => operation(&mut lock(&self.data)),
            Some(Fault::Refused) => Err(StoreError::Retryable(said("refused")).into()),
            Some(Fault::NeverSent) => Err(StoreError::Unknown(said("lost before it was applied")).into()),
            Some(Fault::AnswerLost) => {
                operation(&mut lock(&self.data))?;
                Err(StoreError::Unknown(said("answer lost")).into())
            }
            Some(Fault::Stray) => {
                let stray = move |data: &mut Data| {
                    // Nobody waits for its answer.
                    let _unheard = operation(data);
                };
                lock(&self.strays).push(Box::new(stray));
                Err(StoreError::Unknown(said("still under way")).into())
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl NodeStore for MemoryStore {
    async fn open_session(&self, new: &NewSession) -> Result<Opened, StoreError> {
        let new = new.clone();
        self.call("open_session", move |data| at_once(node::open(&mut data.begin(), &new)))
    }

    async fn heartbeat(&self, me: Me, seq: u64, draining: bool) -> Result<BeatAnswer, StoreError> {
        self.call("heartbeat", move |data| at_once(node::heartbeat(&mut data.begin(), me, seq, draining)))
    }

    async fn close_session(&self, id: SessionId) -> Result<(), StoreError> {
        self.call("close_session", move |data| at_once(node::close(&mut data.begin(), id)))
    }

    async fn peek(&self, request: &PeekRequest) -> Result<Peek, StoreError> {
        let request = request.clone();
        self.call("peek", move |data| Ok(data.peek(&request)))
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let request = request.clone();
        self.call("claim", move |data| at_once(node::claim(&mut data.begin(), &request)))
    }

    async fn start(&self, me: Me, runs: &[RunRef]) -> Result<Vec<StartAnswer>, StoreError> {
        let runs = runs.to_vec();
        self.call("start", move |data| at_once(node::start(&mut data.begin(), me, &runs)))
    }

    async fn finish(&self, me: Me, runs: &[Finished], executors: &[String]) -> Result<Vec<FinishAnswer>, StoreError> {
        let (runs, executors) = (runs.to_vec(), executors.to_vec());
        self.call("finish", move |data| {
            let mut parts = SplitFinish::of(&runs);
            while let Some(part) = parts.next_part() {
                let answer = at_once(node::finish(&mut data.begin(), me, &part, &executors));
                node::take_part(&mut parts, part, answer)?;
            }
            Ok(parts.answers())
        })
    }

    async fn reset(&self, id: SessionId, runs: &[RunRef]) -> Result<(), StoreError> {
        let runs = runs.to_vec();
        self.call("reset", move |data| at_once(node::release(&mut data.begin(), id, &runs)))
    }

    async fn settle(&self, id: SessionId, runs: &[RunRef]) -> Result<Vec<SettleAnswer>, StoreError> {
        let runs = runs.to_vec();
        self.call("settle", move |data| at_once(node::settle(&mut data.begin(), id, &runs)))
    }

    async fn held(&self, id: SessionId) -> Result<Vec<RunRef>, StoreError> {
        self.call("held", move |data| Ok(data.held(id)))
    }

    async fn expire(&self, by: Option<Me>, id: SessionId, seen_seq: u64) -> Result<bool, StoreError> {
        self.call("expire", move |data| at_once(node::expire(&mut data.begin(), by, id, seen_seq)))
    }

    async fn sweep(&self, id: SessionId, limit: usize) -> Result<usize, StoreError> {
        self.call("sweep", move |data| at_once(node::sweep(&mut data.begin(), id, limit)))
    }

    async fn publish_output(&self, outputs: &[(RunId, LivePart)]) -> Result<(), StoreError> {
        let outputs = outputs.to_vec();
        self.call("publish_output", move |data| {
            data.publish_output(outputs);
            Ok(())
        })
    }
}

#[async_trait]
impl ControlStore for MemoryStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.call("now", |data| Ok(data.clock.now()))
    }

    async fn put_jobs(&self, jobs: &[PutJob]) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
        let jobs = jobs.to_vec();
        self.call("put_jobs", move |data| at_once(control::put_jobs(&mut data.begin(), &jobs)))
    }

    async fn delete_job(&self, key: &JobKey, if_generation: Option<u64>) -> Result<(), ControlError> {
        let key = key.clone();
        self.call("delete_job", move |data| at_once(control::delete(&mut data.begin(), &key, if_generation)))
    }

    async fn job(&self, key: &JobKey) -> Result<JobView, ControlError> {
        let key = key.clone();
        self.call("job", move |data| at_once(jobs::job(&mut data.begin(), &key)))
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<JobView, JobKey>, StoreError> {
        let query = query.clone();
        self.call("jobs", move |data| at_once(jobs::jobs(&mut data.begin(), &query)))
    }

    async fn pause(
        &self,
        key: &JobKey,
        until: Option<Timestamp>,
        reason: Option<String>,
    ) -> Result<JobView, ControlError> {
        let key = key.clone();
        self.call("pause", move |data| at_once(control::pause(&mut data.begin(), &key, until, reason)))
    }

    async fn resume(&self, key: &JobKey) -> Result<JobView, ControlError> {
        let key = key.clone();
        self.call("resume", move |data| at_once(control::resume(&mut data.begin(), &key)))
    }

    async fn trigger(&self, key: &JobKey, run: RunId) -> Result<(), ControlError> {
        let key = key.clone();
        self.call("trigger", move |data| at_once(control::trigger(&mut data.begin(), &key, run)))
    }

    async fn cancel(&self, run: RunId) -> Result<RunView, ControlError> {
        self.call("cancel", move |data| at_once(control::cancel(&mut data.begin(), run)))
    }

    async fn run(&self, run: RunId) -> Result<RunView, ControlError> {
        self.call("run", move |data| at_once(runs::run(&mut data.begin(), run)))
    }

    async fn runs(&self, query: &RunQuery) -> Result<Page<RunView, RunCursor>, ControlError> {
        let query = query.clone();
        self.call("runs", move |data| at_once(runs::runs(&mut data.begin(), &query)))
    }

    async fn output(&self, run: RunId) -> Result<Output, ControlError> {
        self.call("output", move |data| at_once(runs::output(&mut data.begin(), run)))
    }

    async fn recorded_losses(&self) -> Result<Vec<RecordedLoss>, StoreError> {
        self.call("recorded_losses", |data| at_once(control::losses(&mut data.begin())))
    }

    async fn accept_losses(&self) -> Result<Vec<RecordedLoss>, StoreError> {
        self.call("accept_losses", |data| at_once(control::accept_losses(&mut data.begin())))
    }

    async fn ask_output(&self, run: RunId) -> Result<Option<LivePart>, StoreError> {
        self.call("ask_output", move |data| Ok(data.ask_output(run)))
    }

    async fn sessions(&self) -> Result<Vec<SessionView>, StoreError> {
        self.call("sessions", move |data| at_once(data.begin().sessions(true)))
    }

    async fn purge(&self, before: Timestamp, max_runs_per_job: u32, limit: usize) -> Result<usize, StoreError> {
        self.call("purge", move |data| Ok(data.purge(before, max_runs_per_job, limit)))
    }
}
