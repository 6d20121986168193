//! A tiny store: two maps, the production rules, and the guards that every real one has.

#[path = "claiming.rs"]
pub mod claiming;
#[path = "restoring.rs"]
mod restoring;
#[path = "starting.rs"]
mod starting;

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, Event, FiringKey, Held, JobState, Phase, Rejected, TransitionKind};
use carillon_domain::firing::{apply, apply_concurrent};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::invariants as must;
use carillon_domain::job::{Job, Overlap};
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::node::port::{Claimed, FinishAnswer, FinishRequest, RowKey, RunRef, Seen};
use carillon_domain::node::{BeatAnswer, Peer};
use carillon_domain::run::{RunRecord, Trigger};
use carillon_domain::schedule::Timeline;
use carillon_domain::time::Timestamp;
use claiming::Claimant;

#[derive(Debug, Clone)]
pub struct Stored {
    pub job: Arc<Job>,
    pub timeline: Timeline,
    /// `None` once it is gone.
    pub state: Option<JobState>,
    pub ever_allowed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    pub seq: u64,
    pub draining: bool,
    pub ended: bool,
}

#[derive(Debug, Default, Clone)]
pub struct Store {
    pub jobs: BTreeMap<JobId, Stored>,
    pub concurrent: BTreeMap<FiringKey, ConcurrentRun>,
    pub sessions: BTreeMap<SessionId, Session>,
    /// The last sequence of sessions that are over.
    pub spent: BTreeMap<SessionId, u64>,
    /// Commits were lost, and nobody has accepted that.
    pub open: Option<LossWindow>,
    /// The end of the newest window that was accepted.
    pub losses_until: Option<Timestamp>,
    pub records: Vec<RunRecord>,
    /// The latest fencing token of each job.
    pub tokens: BTreeMap<JobId, u64>,
    pub now: Timestamp,
    /// How many firings were taken from others.
    pub stolen: u64,
    /// How many were claimed by the commit that finished the run before.
    pub onward: u64,
    /// How many started in the commit that claimed them.
    pub along: u64,
}

/// Who asks, and the highest heartbeat sequence that was acknowledged to it.
pub type Me = (SessionId, u64);

impl Store {
    pub fn apply(&mut self, row: &RowKey, event: &Event) -> Result<TransitionKind, Rejected> {
        match row {
            RowKey::Job(id) => self.apply_job(*id, event),
            RowKey::Concurrent(key) => self.apply_concurrent(*key, event),
        }
    }

    fn apply_job(&mut self, id: JobId, event: &Event) -> Result<TransitionKind, Rejected> {
        let now = self.now;
        let stored = self.jobs.get_mut(&id).ok_or(Rejected::Deleted)?;
        let before = stored.state.clone().ok_or(Rejected::Deleted)?;
        let done = apply(&stored.job, &stored.timeline, &before, event, now)?;
        if let Some(after) = &done.next {
            must::row_goes_forward(&before, after).unwrap();
        }
        let after = done.next.as_ref().map(|next| next.phase);
        must::prepared_is_kept(&before.phase, after.as_ref(), done.kind).unwrap();
        if let (TransitionKind::Started | TransitionKind::StartedConcurrently, Phase::Prepared(held)) =
            (done.kind, before.phase)
        {
            must::starts_where_allowed(&before, held.firing.trigger, now).unwrap();
            assert!(held.firing.start_at <= now, "nothing starts early");
        }
        stored.state = done.next;
        self.records.extend(done.records);
        if let Some(row) = done.concurrent {
            assert!(self.concurrent.insert(row.key, row).is_none());
        }
        Ok(done.kind)
    }

    fn apply_concurrent(&mut self, key: FiringKey, event: &Event) -> Result<TransitionKind, Rejected> {
        let before = self.concurrent.get(&key).cloned().ok_or(Rejected::NothingDue)?;
        let done = apply_concurrent(&self.jobs[&key.job].job, &before, event, self.now)?;
        must::prepared_is_kept(&before.phase, done.next.as_ref().map(|next| &next.phase), done.kind).unwrap();
        match done.next {
            None => drop(self.concurrent.remove(&key)),
            Some(next) => {
                assert_eq!(next.version, before.version + 1);
                self.concurrent.insert(key, next);
            }
        }
        self.records.extend(done.records);
        Ok(done.kind)
    }

    /// What a person does: to the job's row and those beside it.
    pub fn tell(&mut self, id: JobId, event: &Event) {
        if self.apply_job(id, event).is_err() {
            return;
        }
        let beside: Vec<_> = self.concurrent.keys().filter(|key| key.job == id).copied().collect();
        for key in beside {
            let _unconcerned = self.apply_concurrent(key, event);
        }
    }

    pub fn cancel(&mut self, run: RunId) {
        if let Some((row, ..)) =
            self.rows().into_iter().find(|(_, phase, _)| phase.held().map(|held| held.run) == Some(run))
        {
            let _too_late = self.apply(&row, &Event::Cancel { run });
        }
    }

    pub fn update(&mut self, id: JobId, job: Job) {
        let now = self.now;
        let Some(stored) = self.jobs.get_mut(&id) else { return };
        let Some(state) = &stored.state else { return };
        let anchor = if job.timing_differs(&stored.job) { now } else { state.anchor_at };
        let timeline = job.timeline(anchor).unwrap();
        let before = stored.clone();
        let previous = Box::new(((*stored.job).clone(), stored.timeline.clone()));
        stored.ever_allowed |= job.overlap == Overlap::Allow;
        (stored.job, stored.timeline) = (Arc::new(job), timeline);
        if self.apply_job(id, &Event::Update { previous }).is_err() {
            self.jobs.insert(id, before);
        }
    }

    /// Every row: its key, phase and version.
    pub fn rows(&self) -> Vec<(RowKey, Phase, u64)> {
        let own =
            |(id, one): (&JobId, &Stored)| one.state.as_ref().map(|row| (RowKey::Job(*id), row.phase, row.version));
        let beside = self.concurrent.iter().map(|(key, row)| (RowKey::Concurrent(*key), row.phase, row.version));
        self.jobs.iter().filter_map(own).chain(beside).collect()
    }

    fn row(&self, key: &RowKey) -> Option<(Phase, u64)> {
        match key {
            RowKey::Job(id) => self.jobs.get(id)?.state.as_ref().map(|row| (row.phase, row.version)),
            RowKey::Concurrent(key) => self.concurrent.get(key).map(|row| (row.phase, row.version)),
        }
    }

    /// The row that carries the run for that session.
    pub fn carrier(&self, session: SessionId, run: RunId) -> Option<(RowKey, Phase, u64)> {
        let carries = |held: &Held| held.run == run && held.session == session;
        self.rows().into_iter().find(|(_, phase, _)| phase.held().is_some_and(carries))
    }

    fn lives(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|row| !row.ended)
    }

    pub fn beat(&mut self, (session, acked): Me, seq: u64, draining: bool) -> BeatAnswer {
        let lost = self.notices((session, acked));
        match self.sessions.get_mut(&session).filter(|row| !row.ended) {
            None if lost => return BeatAnswer::WentBack,
            None => return BeatAnswer::Fenced,
            Some(row) => {
                must::never_decreases("a heartbeat's sequence", row.seq, seq.max(row.seq)).unwrap();
                (row.seq, row.draining) = (seq.max(row.seq), draining);
            }
        }
        let peer = |(id, row): (&SessionId, &Session)| Peer {
            session: *id,
            seq: row.seq,
            claims: !row.draining && !row.ended,
            ended: row.ended,
        };
        BeatAnswer::Alive { utc: self.now, peers: self.sessions.iter().map(peer).collect(), window: self.open }
    }

    fn claimed(&self, key: &RowKey) -> Option<Claimed> {
        let (phase, version) = self.row(key)?;
        let held = *phase.held()?;
        let id = match key {
            RowKey::Job(id) => *id,
            RowKey::Concurrent(key) => key.job,
        };
        Some(Claimed {
            at: RunRef { row: *key, run: held.run, version },
            held,
            replace_at: None,
            job: self.jobs[&id].job.clone(),
            generation: 1,
        })
    }

    fn replace_at(&self, row: &RowKey) -> Option<Timestamp> {
        let RowKey::Job(id) = row else { return None };
        let stored = &self.jobs[id];
        stored.state.as_ref()?.replace_at(&stored.job, &stored.timeline, self.now)
    }

    pub fn finish(&mut self, who: Claimant<'_>, requests: &[FinishRequest]) -> Vec<FinishAnswer> {
        let session = who.session;
        let mut one = |request: &FinishRequest| {
            let (run, ending) = (request.at.run, request.ending.clone());
            let row = self.carrier(session, run).map(|(row, ..)| row);
            let ended = row.filter(|row| self.apply(row, &Event::Finish { session, run, ending }).is_ok());
            match (self.claim_next(who, request, ended), ended) {
                (Some(claimed), _) => FinishAnswer::Onward(Box::new(claimed)),
                (None, Some(_)) => FinishAnswer::Recorded { claim_at: Some(self.now) },
                (None, None) => FinishAnswer::AlreadyGone,
            }
        };
        requests.iter().map(&mut one).collect()
    }

    pub fn reset(&mut self, session: SessionId, refs: &[RunRef]) {
        for at in refs {
            if self.row(&at.row).is_some_and(|(_, version)| version == at.version) {
                let _not_mine = self.apply(&at.row, &Event::Reset { session, run: at.run });
            }
        }
    }

    pub fn settle(&mut self, session: SessionId, refs: &[RunRef]) -> Vec<Seen> {
        let mut one = |at: &RunRef| {
            self.disarm(at);
            let Some((row, phase, version)) = self.carrier(session, at.run) else { return Seen::Gone };
            let Phase::Executing(held) = phase else { return self.claimed(&row).map_or(Seen::Gone, Seen::Prepared) };
            let at = RunRef { row, run: at.run, version };
            Seen::Executing { at, held, replace_at: self.replace_at(&row), withdrawn: self.withdrawn(&row, &held) }
        };
        refs.iter().map(&mut one).collect()
    }

    fn disarm(&mut self, at: &RunRef) {
        let version = match &at.row {
            RowKey::Job(id) => self.jobs.get_mut(id).and_then(|one| one.state.as_mut()).map(|row| &mut row.version),
            RowKey::Concurrent(key) => self.concurrent.get_mut(key).map(|row| &mut row.version),
        };
        if let Some(version) = version.filter(|version| **version == at.version) {
            *version += 1;
        }
    }

    fn withdrawn(&self, row: &RowKey, held: &Held) -> bool {
        let paused = |id: &JobId| {
            let state = self.jobs.get(id).and_then(|one| one.state.as_ref());
            state.is_none_or(|state| state.pause.is_some() && held.firing.trigger != Trigger::Manual)
        };
        match row {
            RowKey::Job(id) => {
                let state = self.jobs[id].state.as_ref();
                paused(id) || state.is_none_or(|state| state.deleted || state.cancel.is_some())
            }
            RowKey::Concurrent(key) => {
                let row = &self.concurrent[key];
                row.withdrawn || row.cancel.is_some() || paused(&key.job)
            }
        }
    }

    pub fn held(&self, session: SessionId) -> Vec<RunRef> {
        let mine = |(row, phase, version): (RowKey, Phase, u64)| {
            let held = phase.held().filter(|held| held.session == session)?;
            Some(RunRef { row, run: held.run, version })
        };
        self.rows().into_iter().filter_map(mine).collect()
    }

    pub fn close(&mut self, session: SessionId) {
        if self.held(session).is_empty() {
            self.spend(session);
        } else if let Some(row) = self.sessions.get_mut(&session) {
            row.ended = true;
        }
    }

    pub fn sweep(&mut self, session: SessionId) {
        for at in self.held(session) {
            self.apply(&at.row, &Event::Sweep { session }).unwrap();
        }
        self.spend(session);
    }
}
