//! A store that always has something due, until it has given out as many firings as it was made with.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use carillon_domain::alert::{Answer, Fact, Incident, Notice, Route};
use carillon_domain::firing::{Firing, Held};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::node::call::{BeatAnswer, Peer};
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RowKey, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use carillon_store::alerts::{
    self, AlertError, DeliveryClaim, DeliveryCounts, DeliveryQuery, DeliveryView, IncidentQuery, Stepped, StoredRoute,
    Unreadable, Watched,
};
use carillon_store::feed::{FeedLook, FeedRequest, JournalAsk, Numbered};
use carillon_store::*;
use tokio::sync::Notify;

/// How long a call takes, as one of a full batch does on a database.
const LATENCY: Duration = Duration::from_millis(5);

/// The store.
pub struct Endless {
    session: SessionId,
    job: Arc<Job>,
    to_give: AtomicUsize,
    to_finish: AtomicUsize,
    calls: AtomicUsize,
    finished: Notify,
}

impl Endless {
    /// With so many firings to give to one session.
    pub fn new(session: SessionId, firings: usize) -> Self {
        let job = Job { executor: "noop".into(), ..Job::new(("default", "measured"), "* * * * *", "{\"sleep_ms\":0}") };
        Self {
            session,
            job: Arc::new(job),
            to_give: AtomicUsize::new(firings),
            to_finish: AtomicUsize::new(firings),
            calls: AtomicUsize::new(0),
            finished: Notify::new(),
        }
    }

    /// Returns when all of them are finished.
    pub async fn all_finished(&self) {
        self.finished.notified().await;
    }

    /// How many claims, starts and finishes there were.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    async fn called(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(LATENCY).await;
    }

    fn held(&self, run: RunId, started_at: Option<Timestamp>, fencing_token: u64) -> Held {
        Held { firing: Firing::regular(SystemClock.now()), run, session: self.session, started_at, fencing_token }
    }
}

#[async_trait]
impl NodeStore for Endless {
    async fn open_session(&self, _: &NewSession) -> Result<Opened, StoreError> {
        unreachable!("the session is open")
    }

    async fn heartbeat(&self, _: Me, seq: u64, _: bool) -> Result<BeatAnswer, StoreError> {
        let peers = vec![Peer { session: self.session, seq, claims: true, ended: false }];
        Ok(BeatAnswer::Alive { utc: SystemClock.now(), peers, window: None })
    }

    async fn close_session(&self, _: SessionId) -> Result<(), StoreError> {
        Ok(())
    }

    async fn peek(&self, _: &PeekRequest) -> Result<Peek, StoreError> {
        let earliest_claim_at = Some(SystemClock.now());
        Ok(Peek { earliest_claim_at, claimants: vec![self.session], ..Peek::default() })
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        self.called().await;
        let left = self.to_give.load(Ordering::Relaxed);
        let given = left.min(request.runs.len());
        self.to_give.store(left - given, Ordering::Relaxed);
        let claimed = |(row, run): (u64, &RunId)| {
            let at = RunRef { row: RowKey::Job(JobId(row)), run: *run, version: 1 };
            Claimed { at, held: self.held(*run, None, 0), replace_at: None, job: self.job.clone(), generation: 1 }
        };
        Ok((1..).zip(&request.runs[..given]).map(claimed).collect())
    }

    async fn start(&self, _: Me, runs: &[RunRef]) -> Result<Vec<StartAnswer>, StoreError> {
        self.called().await;
        let started = |at: &RunRef| {
            let at = RunRef { version: 2, ..*at };
            let held = self.held(at.run, Some(SystemClock.now()), 2);
            StartAnswer::Started { at, held, replace_at: None }
        };
        Ok(runs.iter().map(started).collect())
    }

    async fn finish(&self, _: Me, runs: &[Finished], _: &[String]) -> Result<Vec<FinishAnswer>, StoreError> {
        self.called().await;
        if self.to_finish.fetch_sub(runs.len(), Ordering::Relaxed) == runs.len() {
            self.finished.notify_one();
        }
        Ok(vec![FinishAnswer::Recorded { claim_at: None }; runs.len()])
    }

    async fn release(&self, _: SessionId, _: &[RunRef]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn settle(&self, _: SessionId, runs: &[RunRef]) -> Result<Vec<SettleAnswer>, StoreError> {
        Ok(vec![SettleAnswer::Gone; runs.len()])
    }

    async fn write_back(&self, _: &WriteBackRequest) -> Result<Option<Vec<WriteBackAnswer>>, StoreError> {
        unreachable!()
    }

    async fn list_held(&self, _: SessionId) -> Result<Vec<RunRef>, StoreError> {
        Ok(vec![])
    }

    async fn expire(&self, _: Option<Me>, _: SessionId, _: u64) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn sweep(&self, _: SessionId, _: usize) -> Result<usize, StoreError> {
        Ok(0)
    }

    async fn publish_output(&self, _: &[(RunId, LivePart)]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Nobody asks: there are no people.
#[async_trait]
impl ControlStore for Endless {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(SystemClock.now())
    }

    async fn put_jobs(&self, _: &[PutJob]) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
        unreachable!()
    }

    async fn delete_job(&self, _: &JobKey, _: Option<u64>, _: &Author) -> Result<(), ControlError> {
        unreachable!()
    }

    async fn job(&self, _: &JobKey) -> Result<JobView, ControlError> {
        unreachable!()
    }

    async fn jobs(&self, _: &JobQuery) -> Result<Page<JobView, JobCursor>, StoreError> {
        unreachable!()
    }

    async fn pause(
        &self,
        _: &JobKey,
        _: Option<Timestamp>,
        _: Option<String>,
        _: &Author,
    ) -> Result<JobView, ControlError> {
        unreachable!()
    }

    async fn resume(&self, _: &JobKey, _: &Author) -> Result<JobView, ControlError> {
        unreachable!()
    }

    async fn trigger_with(&self, _: &JobKey, _: RunId, _: Option<Arc<str>>, _: &Author) -> Result<(), ControlError> {
        unreachable!()
    }

    async fn cancel(&self, _: RunId, _: &Author) -> Result<RunView, ControlError> {
        unreachable!()
    }

    async fn run(&self, _: RunId) -> Result<RunView, ControlError> {
        unreachable!()
    }

    async fn runs(&self, _: &RunQuery) -> Result<Page<RunView, RunCursor>, ControlError> {
        unreachable!()
    }

    async fn output(&self, _: RunId) -> Result<Option<Output>, StoreError> {
        unreachable!()
    }

    async fn recorded_losses(&self) -> Result<Vec<RecordedLoss>, StoreError> {
        unreachable!()
    }

    async fn accept_losses(&self, _: Duration, _: &Author) -> Result<Vec<RecordedLoss>, ControlError> {
        unreachable!()
    }

    async fn ask_output(&self, _: RunId) -> Result<Option<LivePart>, StoreError> {
        unreachable!()
    }

    async fn look(&self, _: &FeedRequest) -> Result<FeedLook, StoreError> {
        unreachable!()
    }

    async fn sessions(&self) -> Result<Vec<SessionView>, StoreError> {
        unreachable!()
    }

    async fn audit(&self, _: &AuditQuery) -> Result<Page<AuditView, u64>, StoreError> {
        unreachable!()
    }

    async fn purge_audit(&self, _: Timestamp, _: usize) -> Result<usize, StoreError> {
        unreachable!()
    }

    async fn purge(&self, _: Timestamp, _: u32, _: usize) -> Result<usize, StoreError> {
        unreachable!()
    }

    async fn signing_key(&self, _: SigningKey) -> Result<SigningKey, StoreError> {
        unreachable!()
    }

    async fn add_sign_in_link(&self, _: LinkDigest, _: Duration) -> Result<(), StoreError> {
        unreachable!()
    }

    async fn has_sign_in_link(&self, _: LinkDigest) -> Result<bool, StoreError> {
        unreachable!()
    }

    async fn use_sign_in_link(&self, _: LinkDigest) -> Result<bool, StoreError> {
        unreachable!()
    }
}

#[async_trait]
impl ReportStore for Endless {
    async fn recent_runs(&self, _: &[JobId], _: usize) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError> {
        unreachable!()
    }

    async fn runs_between(
        &self,
        _: &[JobId],
        _: Range<Timestamp>,
        _: usize,
    ) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError> {
        unreachable!()
    }

    async fn job_lists(&self, _: &NamespaceScope, _: &[JobListQuery]) -> Result<Vec<Bounded<ListedJob>>, StoreError> {
        unreachable!()
    }

    async fn overview(&self, _: &OverviewQuery) -> Result<Overview, StoreError> {
        unreachable!()
    }

    async fn days_of_job(&self, _: JobId, _: Timestamp) -> Result<Vec<JobDay>, StoreError> {
        unreachable!()
    }

    async fn roll_up(&self, _: usize) -> Result<RolledUp, StoreError> {
        unreachable!()
    }
}

#[async_trait]
impl AlertStore for Endless {
    async fn put_route(&self, _: &Route, _: Option<u64>, _: &Author) -> Result<StoredRoute, AlertError> {
        unreachable!()
    }

    async fn delete_route(&self, _: &str, _: Option<u64>, _: &Author) -> Result<(), AlertError> {
        unreachable!()
    }

    async fn route(&self, _: &str) -> Result<StoredRoute, AlertError> {
        unreachable!()
    }

    async fn routes(&self) -> Result<Vec<StoredRoute>, StoreError> {
        Ok(Vec::new())
    }

    async fn alert_step(&self, _: usize) -> Result<Stepped, StoreError> {
        Ok(Stepped::default())
    }

    async fn watch_expectations(&self, _: usize) -> Result<Watched, StoreError> {
        Ok(Watched::default())
    }

    async fn tell_fact(&self, _: &Fact) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn claim_deliveries(&self, _: &DeliveryClaim) -> Result<Vec<alerts::Claimed>, StoreError> {
        Ok(Vec::new())
    }

    async fn settle_delivery(&self, _: SessionId, _: u64, _: &Answer, _: u32) -> Result<bool, StoreError> {
        unreachable!()
    }

    async fn deliveries(&self, _: &DeliveryQuery) -> Result<Page<DeliveryView, u64>, StoreError> {
        unreachable!()
    }

    async fn resend_delivery(&self, _: u64, _: &Author) -> Result<DeliveryView, AlertError> {
        unreachable!()
    }

    async fn test_route(&self, _: &str, _: &Author) -> Result<Vec<DeliveryView>, AlertError> {
        unreachable!()
    }

    async fn delivery_counts(&self) -> Result<DeliveryCounts, StoreError> {
        Ok(DeliveryCounts::default())
    }

    async fn incidents(&self, _: &IncidentQuery) -> Result<Vec<Incident>, StoreError> {
        unreachable!()
    }

    async fn last_ping(&self, _: JobId) -> Result<Option<DeliveryView>, StoreError> {
        unreachable!()
    }

    async fn notices_numbered(&self, _: &JournalAsk) -> Result<Numbered<Notice>, StoreError> {
        unreachable!()
    }

    async fn unreadable_alerts(&self) -> Result<Vec<Unreadable>, StoreError> {
        Ok(Vec::new())
    }

    async fn purge_alerts(&self, _: Timestamp, _: usize) -> Result<usize, StoreError> {
        Ok(0)
    }
}
