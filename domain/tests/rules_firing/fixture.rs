//! A job with its row, its concurrent runs and its history. Only the production rules change them.

use std::collections::BTreeMap;
use std::time::Duration;

use carillon_domain::firing::{
    ConcurrentRun, ConcurrentTransition, Event, Firing, FiringKey, Held, JobState, Phase, Rejected, TransitionKind,
};
use carillon_domain::firing::{apply, apply_concurrent, start_concurrent};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::{Job, Misfire, MisfirePolicy, Overlap, Retry};
use carillon_domain::lost_commits::may_have_started;
use carillon_domain::run::{Ending, RunRecord, Status};
use carillon_domain::schedule::Timeline;
use carillon_domain::time::Timestamp;

/// The start of every fixture's clock. Seconds in tests count from it.
pub const ZERO: i64 = 1_800_000_000;

/// The instant `secs` seconds after the start.
pub fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(ZERO + secs)
}

pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub fn me() -> SessionId {
    SessionId::from_random(1)
}

/// A job that is due every `period` seconds, with all else at its default.
pub fn every(period: u64) -> Job {
    Job::new(("default", "job"), &format!("@every {period}s"), "{}")
}

pub fn overlap(overlap: Overlap) -> Job {
    Job { overlap, ..every(60) }
}

pub fn misfire(policy: MisfirePolicy, grace: u64) -> Job {
    Job { misfire: Misfire { policy, grace: secs(grace) }, ..every(60) }
}

pub fn retrying(overlap: Overlap, max_attempts: u32, backoff: u64) -> Job {
    let retry = Retry { max_attempts, backoff: secs(backoff), max_backoff: secs(300) };
    Job { overlap, retry, ..every(60) }
}

pub fn ending(status: Status, ended_at: Timestamp) -> Ending {
    Ending::new(status, ended_at)
}

#[derive(Debug, Clone)]
pub struct JobFixture {
    pub job: Job,
    pub timeline: Timeline,
    /// `None` after the row is deleted.
    pub state: Option<JobState>,
    pub concurrent: BTreeMap<FiringKey, ConcurrentRun>,
    pub records: Vec<RunRecord>,
    /// Every start with its fencing token, in order.
    pub starts: Vec<Held>,
    pub now: Timestamp,
    /// The end of the newest loss window.
    pub losses_until: Option<Timestamp>,
    drawn: u64,
    /// The latest fencing token of the job, in whichever row.
    token: u64,
}

impl JobFixture {
    /// A job that is created at second 0.
    pub fn new(job: Job) -> Self {
        let timeline = job.timeline(at(0)).unwrap();
        let state = JobState::new(JobId(7), &timeline, 1_000, at(0)).unwrap();
        let (concurrent, records, starts) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (state, now, losses_until) = (Some(state), at(0), None);
        Self { job, timeline, state, concurrent, records, starts, now, losses_until, drawn: 0, token: 0 }
    }

    pub fn draw(&mut self) -> RunId {
        self.drawn += 1;
        RunId::drawn(me(), self.drawn)
    }

    pub fn row(&self) -> &JobState {
        self.state.as_ref().expect("the row is there")
    }

    pub fn held(&self) -> Held {
        *self.row().phase.held().expect("the row is held")
    }

    pub fn armed(&self) -> Firing {
        self.row().armed.expect("something is armed")
    }

    /// Applies an event to the job's row and keeps the results.
    pub fn apply(&mut self, event: &Event) -> Result<TransitionKind, Rejected> {
        let released = self.state.as_ref().and_then(|row| self.released_instead(&row.phase, event));
        let event = released.as_ref().unwrap_or(event);
        if let Event::Start { session, run } = *event
            && self.job.overlap != Overlap::Allow
            && !self.concurrent.is_empty()
        {
            return self.defer(session, run);
        }
        self.apply_as_it_is(event)
    }

    /// A node releases a firing that may have started in lost commits, because the store suspends its start.
    fn released_instead(&self, phase: &Phase, event: &Event) -> Option<Event> {
        let Event::Start { session, run } = *event else { return None };
        let firing = phase.held()?.firing;
        may_have_started(&self.job, firing.due_at, self.losses_until).then_some(Event::Reset { session, run })
    }

    /// Stores defer a start while concurrent runs of a job live that no longer allows them.
    fn defer(&mut self, session: SessionId, run: RunId) -> Result<TransitionKind, Rejected> {
        let kind = self.apply_as_it_is(&Event::Defer { session, run })?;
        if kind == TransitionKind::Deferred && self.job.overlap == Overlap::Replace {
            for key in self.concurrent.keys().copied().collect::<Vec<_>>() {
                let _asked_before = self.apply_concurrent(key, &Event::Supersede);
            }
        }
        Ok(kind)
    }

    fn apply_as_it_is(&mut self, event: &Event) -> Result<TransitionKind, Rejected> {
        let before = self.state.clone().ok_or(Rejected::Deleted)?;
        let done = apply(&self.job, &self.timeline, &before, event, self.now)?;
        let arc = (state_of(Some(&before)), state_of(done.next.as_ref()));
        assert!(TransitionKind::ALL.contains(&done.kind), "{:?} is missing in the list", done.kind);
        assert!(done.kind.arcs().contains(&arc), "{:?} led from {} to {}", done.kind, arc.0, arc.1);
        if let Some(next) = &done.next {
            let one_more = next.version == before.version + 1;
            assert!(one_more || self.losses_until.is_some(), "an accepted event writes one version");
            assert!(next.version > before.version);
            assert_eq!(next.claim_at().is_none(), next.phase.held().is_some(), "claim_at is None while held");
            self.check_claim(&next.phase, done.kind);
        }
        self.state = done.next;
        if let (Some(Phase::Executing(held)), TransitionKind::Started) =
            (self.state.as_ref().map(|row| row.phase), done.kind)
        {
            self.started(held);
        }
        if let Some(row) = done.concurrent {
            if let Phase::Executing(held) = row.phase {
                self.started(held);
            }
            assert!(self.concurrent.insert(row.key, row).is_none(), "a firing is in the table `concurrent_run` once");
        }
        self.records.extend(done.records);
        self.check_overlap(done.kind);
        Ok(done.kind)
    }

    /// S1 at the moment of each start.
    fn check_overlap(&self, kind: TransitionKind) {
        let own = self.state.as_ref().map(|row| row.phase);
        let phases = own.into_iter().chain(self.concurrent.values().map(|row| row.phase));
        let executing = phases.filter(|phase| matches!(phase, Phase::Executing(_))).count();
        assert!(
            kind != TransitionKind::Started || self.job.overlap == Overlap::Allow || executing == 1,
            "{executing} runs live"
        );
    }

    /// A firing that may have started in lost commits is not claimed.
    fn check_claim(&self, phase: &Phase, kind: TransitionKind) {
        let Some(firing) = phase.held().map(|held| held.firing).filter(|_| kind == TransitionKind::Claimed) else {
            return;
        };
        let lost = may_have_started(&self.job, firing.due_at, self.losses_until);
        assert!(!lost, "{firing:?} is claimed and may have started before");
    }

    fn started(&mut self, held: Held) {
        assert!(held.fencing_token > self.token, "fencing tokens grow over all starts of a job");
        assert_eq!(held.started_at, Some(self.now));
        assert_eq!(
            held.fencing_token,
            self.row().version,
            "a token is the version that the job's row had at the start"
        );
        self.token = held.fencing_token;
        self.starts.push(held);
    }

    /// Applies an event to a concurrent run.
    pub fn apply_concurrent(&mut self, key: FiringKey, event: &Event) -> Result<TransitionKind, Rejected> {
        let before = self.concurrent.get(&key).cloned().ok_or(Rejected::NothingDue)?;
        let released = self.released_instead(&before.phase, event);
        let event = released.as_ref().unwrap_or(event);
        let done = match *event {
            Event::Start { session, run } if !self.overlaps(key) => self.start_concurrent(&before, session, run)?,
            Event::Start { session, run } => {
                apply_concurrent(&self.job, &before, &Event::Defer { session, run }, self.now)?
            }
            _ => apply_concurrent(&self.job, &before, event, self.now)?,
        };
        match done.next {
            None => drop(self.concurrent.remove(&key)),
            Some(next) => {
                assert_eq!(next.version, before.version + 1, "an accepted event writes one version");
                assert_eq!(next.claim_at().is_none(), next.phase.held().is_some(), "claim_at is None while held");
                assert!(next.phase.held().is_none() || next.waiting.is_none(), "what is held does not wait");
                self.check_claim(&next.phase, done.kind);
                if let (Phase::Executing(held), TransitionKind::Started) = (next.phase, done.kind) {
                    self.started(held);
                }
                self.concurrent.insert(key, next);
            }
        }
        self.records.extend(done.records);
        self.check_overlap(done.kind);
        Ok(done.kind)
    }

    /// Whether another run executes that this concurrent run must not overlap.
    fn overlaps(&self, key: FiringKey) -> bool {
        let others = self.concurrent.iter().filter(|(other, _)| **other != key).map(|(_, row)| row.phase);
        let mut phases = others.chain(self.state.as_ref().map(|row| row.phase));
        self.job.overlap != Overlap::Allow && phases.any(|phase| matches!(phase, Phase::Executing(_)))
    }

    fn start_concurrent(
        &mut self,
        row: &ConcurrentRun,
        session: SessionId,
        run: RunId,
    ) -> Result<ConcurrentTransition, Rejected> {
        let (state, done) =
            start_concurrent(self.state.as_ref().ok_or(Rejected::Deleted)?, row, (session, run), self.now)?;
        self.state = Some(state);
        Ok(done)
    }

    /// A call of an operator: it applies to the job's row, then to every concurrent run.
    pub fn call(&mut self, event: &Event) -> Result<TransitionKind, Rejected> {
        let kind = self.apply(event)?;
        for key in self.concurrent.keys().copied().collect::<Vec<_>>() {
            let _unconcerned = self.apply_concurrent(key, event);
        }
        Ok(kind)
    }

    pub fn claim(&mut self, now: i64) -> Result<TransitionKind, Rejected> {
        self.claim_ahead(now, 0)
    }

    pub fn claim_ahead(&mut self, now: i64, ahead: u64) -> Result<TransitionKind, Rejected> {
        self.now = at(now);
        let run = self.draw();
        self.apply(&Event::Claim { session: me(), run, until: self.now + secs(ahead), losses_until: self.losses_until })
    }

    pub fn start(&mut self, now: i64) -> Result<TransitionKind, Rejected> {
        self.now = at(now);
        let run = self.held().run;
        self.apply(&Event::Start { session: me(), run })
    }

    /// Claims and starts the firing that is due at second `now`.
    pub fn run(&mut self, now: i64) -> Held {
        self.claim(now).unwrap();
        assert_eq!(self.start(now), Ok(TransitionKind::Started));
        self.held()
    }

    pub fn finish(&mut self, now: i64, status: Status) -> Result<TransitionKind, Rejected> {
        self.now = at(now);
        let run = self.held().run;
        self.apply(&Event::Finish { session: me(), run, ending: ending(status, self.now) })
    }

    pub fn reset(&mut self, now: i64) -> Result<TransitionKind, Rejected> {
        self.now = at(now);
        let run = self.held().run;
        self.apply(&Event::Reset { session: me(), run })
    }

    pub fn sweep(&mut self, now: i64) -> Result<TransitionKind, Rejected> {
        self.now = at(now);
        self.apply(&Event::Sweep { session: me() })
    }

    pub fn pause(&mut self, now: i64, until: Option<i64>) -> Result<TransitionKind, Rejected> {
        self.now = at(now);
        self.call(&Event::Pause { until: until.map(at), reason: None })
    }

    pub fn resume(&mut self, now: i64) -> Result<TransitionKind, Rejected> {
        self.now = at(now);
        self.call(&Event::Resume)
    }

    pub fn delete(&mut self, now: i64) -> Result<TransitionKind, Rejected> {
        self.now = at(now);
        self.call(&Event::Delete)
    }

    pub fn trigger(&mut self, now: i64) -> Result<(TransitionKind, RunId), Rejected> {
        self.now = at(now);
        let run = self.draw();
        self.apply(&Event::Trigger { run }).map(|kind| (kind, run))
    }

    pub fn cancel(&mut self, now: i64, run: RunId) -> Result<TransitionKind, Rejected> {
        self.now = at(now);
        let answer = self.apply(&Event::Cancel { run });
        let concurrent_rows = self.concurrent.keys().copied().collect::<Vec<_>>();
        concurrent_rows
            .into_iter()
            .fold(answer, |answer, key| answer.or(self.apply_concurrent(key, &Event::Cancel { run })))
    }

    pub fn update(&mut self, now: i64, job: Job) -> Result<TransitionKind, Rejected> {
        self.now = at(now);
        self.redefine(job)
    }

    /// Stores a new definition. A refused one changes nothing.
    pub fn redefine(&mut self, job: Job) -> Result<TransitionKind, Rejected> {
        let anchor = if job.timing_differs(&self.job) { self.now } else { self.row().anchor_at };
        let timeline = job.timeline(anchor).unwrap();
        let previous = (std::mem::replace(&mut self.job, job), std::mem::replace(&mut self.timeline, timeline));
        let answer = self.apply(&Event::Update { previous: Box::new(previous.clone()) });
        if answer.is_err() {
            (self.job, self.timeline) = previous;
        }
        answer
    }

    /// The history, one line per record: `trigger first..last xCOUNT #ATTEMPT status(reason)`, in seconds after the
    /// start.
    pub fn history(&self) -> Vec<String> {
        self.records.iter().map(line).collect()
    }
}

/// One record as a line.
pub fn line(record: &RunRecord) -> String {
    let rel = |t: Timestamp| t.as_ms() / 1000 - ZERO;
    let mut text = format!("{} {}", record.trigger.as_str(), rel(record.first_due_at));
    if record.count > 1 {
        text += &format!("..{} x{}", rel(record.due_at), record.count);
    }
    if record.attempt > 1 {
        text += &format!(" #{}", record.attempt);
    }
    text += &format!(" {}", record.status.as_str());
    match &record.reason {
        Some(reason) => format!("{text}({reason})"),
        None => text,
    }
}

/// The name of the row's state in the diagram of docs/firing.md.
fn state_of(row: Option<&JobState>) -> &'static str {
    match row.map(|row| row.phase) {
        None => "[*]",
        Some(Phase::Idle) => "Idle",
        Some(Phase::Prepared(_)) => "Prepared",
        Some(Phase::Executing(_)) => "Executing",
    }
}
