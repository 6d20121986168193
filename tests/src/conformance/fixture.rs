//! A store under test, and short words for what the cases do with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RowKey, RunRef, StartAnswer};
use carillon_domain::run::{Ending, RunRecord, Status};
use carillon_domain::time::Timestamp;
use carillon_doubles::author;
use carillon_store::{
    Change, ClaimRequest, Clock, ControlError, Finished, JobKey, JobView, ManualClock, Me, NewSession, PeekRequest,
    PutIf, PutJob, RunQuery, RunStage, RunView, Saved, Store, StoreError,
};

use super::Backups;

/// When every test begins.
pub const BEGIN: Timestamp = Timestamp::from_secs(1_767_225_600);

/// The number of partitions of every store under test.
pub const PARTITIONS: u16 = 4;

/// A store, its clock and one session.
pub struct StoreFixture {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Its clock, which shows [`BEGIN`] at first.
    pub clock: ManualClock,
    /// A live session.
    pub me: SessionId,
    drawn: AtomicU64,
    /// How the store goes back in time.
    pub backups: Option<Backups>,
    /// A value that must live as long as the store.
    pub keep: Option<Box<dyn std::any::Any + Send + Sync>>,
}

/// A job that is due every ten seconds.
pub fn job(name: &str) -> Job {
    Job::new(("default", name), "@every 10s", "{}")
}

/// The name of a job in the default namespace.
pub fn key(name: &str) -> JobKey {
    JobKey { namespace: "default".into(), name: name.into() }
}

/// `BEGIN` and so many seconds.
pub fn at(secs: u64) -> Timestamp {
    BEGIN + Duration::from_secs(secs)
}

/// A run that ended well, or not.
pub fn ending(status: Status, ended_at: Timestamp) -> Ending {
    Ending { exit_code: Some(i32::from(status != Status::Succeeded)), ..Ending::new(status, ended_at) }
}

/// The row of a job, and the run, as a claim tells them.
pub fn refs(claimed: &[Claimed]) -> Vec<RunRef> {
    claimed.iter().map(|one| one.at).collect()
}

impl StoreFixture {
    /// A store with one live session.
    pub async fn new(store: Arc<dyn Store>, clock: ManualClock) -> Self {
        let me = SessionId::from_random(1);
        let bench = Self { store, clock, me, drawn: AtomicU64::new(0), backups: None, keep: None };
        bench.session(1).await;
        bench
    }

    fn backups(&self) -> &Backups {
        self.backups.as_ref().expect("the bench of this store knows how to go back")
    }

    /// Keeps what is stored now.
    pub async fn back_up(&self) {
        self.backups().take().await;
    }

    /// The database goes back to what was kept; the clock goes on.
    pub async fn restore(&self) {
        self.backups().restore().await;
    }

    /// Opens a session on a node of its own.
    pub async fn session(&self, number: u64) -> SessionId {
        let id = SessionId::from_random(number);
        let (node, address) = (format!("node-{number}"), "127.0.0.1:7650".into());
        let opened = self.store.open_session(&NewSession { id, node, address, version: "0.1.0".into() }).await.unwrap();
        assert_eq!(opened.partitions, PARTITIONS);
        id
    }

    /// Sets the clock to `BEGIN` and so many seconds.
    pub fn go_to(&self, secs: u64) {
        self.clock.set(at(secs));
    }

    /// So many seconds from now.
    pub fn clock_in(&self, secs: u64) -> Timestamp {
        self.clock.now() + Duration::from_secs(secs)
    }

    /// A run id that was never drawn before.
    pub fn draw(&self) -> RunId {
        RunId::drawn(self.me, self.drawn.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Puts one job.
    pub async fn put_if(&self, job: Job, paused: Option<bool>, when: PutIf) -> Result<Saved, ControlError> {
        self.store.put_jobs(&[PutJob { job, paused, when, author: author() }]).await.unwrap().pop().unwrap()
    }

    /// Puts one job, which must be accepted.
    pub async fn put(&self, job: Job) -> Saved {
        self.put_if(job, None, PutIf::Any).await.unwrap()
    }

    /// Puts one job and expects that it is new.
    pub async fn create(&self, job: Job) -> JobView {
        let saved = self.put(job).await;
        assert_eq!(saved.change, Change::Created);
        saved.view
    }

    /// A claim of `session` in all partitions.
    pub fn claim_request(&self, session: SessionId, until: Timestamp, limit: usize) -> ClaimRequest {
        let runs = (0..limit).map(|_| self.draw()).collect();
        let executors = vec!["shell".into()];
        ClaimRequest { me: Me::new(session), partitions: (0..PARTITIONS).collect(), until, runs, places: 0, executors }
    }

    /// A look of `session` whose own partitions are `mine`.
    pub fn peek_request(&self, session: SessionId, mine: &[u16], until: Timestamp) -> PeekRequest {
        PeekRequest { session, partitions: mine.to_vec(), until, executors: vec!["shell".into()] }
    }

    /// The peek of the session: all partitions are its own, and nothing is too far ahead.
    pub async fn peek(&self) -> Peek {
        let all: Vec<u16> = (0..PARTITIONS).collect();
        let until = self.clock.now() + Duration::from_secs(1_000);
        self.store.peek(&self.peek_request(self.me, &all, until)).await.unwrap()
    }

    /// Claims what comes up within 30 seconds from now.
    pub async fn claim(&self) -> Vec<Claimed> {
        let until = self.store.now().await.unwrap() + Duration::from_secs(30);
        self.store.claim(&self.claim_request(self.me, until, 100)).await.unwrap()
    }

    /// Claims, and expects exactly one.
    pub async fn claim_one(&self) -> Claimed {
        let mut claimed = self.claim().await;
        assert_eq!(claimed.len(), 1, "{claimed:?}");
        claimed.remove(0)
    }

    /// Starts one run.
    pub async fn start(&self, claimed: &Claimed) -> StartAnswer {
        self.store.start(Me::new(self.me), &[claimed.at]).await.unwrap().remove(0)
    }

    /// Starts one run, which must start; answers where it runs.
    pub async fn started(&self, claimed: &Claimed) -> RunRef {
        match self.start(claimed).await {
            StartAnswer::Started { at, .. } => at,
            other => panic!("{} did not start: {other:?}", claimed.job.name),
        }
    }

    /// Moves the clock to the due time of what is claimed next, and starts it.
    pub async fn run_next(&self) -> RunRef {
        let claimed = self.claim_one().await;
        let now = self.store.now().await.unwrap();
        self.clock.set(now.max(claimed.held.firing.start_at));
        self.started(&claimed).await
    }

    /// Ends one run now.
    pub async fn finish(&self, at: RunRef, status: Status) -> FinishAnswer {
        let now = self.store.now().await.unwrap();
        let request = Finished { at, ending: ending(status, now), next: None, output: Default::default() };
        let finished = request;
        self.store.finish(Me::new(self.me), &[finished], &[]).await.unwrap().remove(0)
    }

    /// A job as it stands.
    pub async fn view(&self, name: &str) -> JobView {
        self.store.job(&key(name)).await.unwrap()
    }

    /// The row of a job.
    pub async fn row(&self, name: &str) -> RowKey {
        RowKey::Job(self.view(name).await.state.id)
    }

    /// All runs of a job, newest first.
    pub async fn runs(&self, name: &str) -> Vec<RunView> {
        let query = RunQuery { job: Some(key(name)), limit: 10_000, ..RunQuery::default() };
        self.store.runs(&query).await.unwrap().items
    }

    /// The history of a job, newest first.
    pub async fn records(&self, name: &str) -> Vec<RunRecord> {
        let runs = self.runs(name).await;
        runs.into_iter()
            .filter_map(|run| match run.stage {
                RunStage::Recorded { record, .. } => Some(*record),
                RunStage::Waiting { .. } | RunStage::Running { .. } => None,
            })
            .collect()
    }

    /// The history of a job as (first due, last due, how it ended, why), in seconds after `BEGIN`, oldest first.
    pub async fn story(&self, name: &str) -> Vec<(i64, i64, &'static str, String)> {
        let secs = |t: Timestamp| (t.as_ms() - BEGIN.as_ms()) / 1000;
        let records = self.records(name).await.into_iter().rev();
        records
            .map(|record| {
                let reason = record.reason.map(|reason| reason.to_string()).unwrap_or_default();
                (secs(record.first_due_at), secs(record.due_at), record.status.as_str(), reason)
            })
            .collect()
    }

    /// Sends heartbeats until one is answered, behind the death of a database server. `unanswered` is told how many were not, after
    /// each of them.
    ///
    /// # Panics
    /// If an answer tells of lost commits, or of anything else that is not so.
    pub async fn outlives_a_failover(&self, acked: u64, mut unanswered: impl AsyncFnMut(u32)) {
        for tries in 1.. {
            let me = Me { session: self.me, acked };
            match self.store.heartbeat(me, acked + u64::from(tries), false).await {
                Ok(BeatAnswer::Alive { window, .. }) => {
                    assert_eq!(window, None, "no commit was lost");
                    return;
                }
                Ok(other) => panic!("a false alarm: {other:?}"),
                Err(StoreError::Retryable(_) | StoreError::Unknown(_)) => unanswered(tries).await,
                Err(error) => panic!("a false alarm: {error}"),
            }
            // A server that is gone refuses at once, and the others need seconds to agree.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}
