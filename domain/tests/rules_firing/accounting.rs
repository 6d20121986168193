//! The accounting: after any sequence of events, every due time up to now is in exactly one place. The expected due
//! times are computed here as `anchor + k * period`, independently of the code under test. `ACCOUNTING_CASES=200000`
//! tries more cases.

use std::collections::BTreeSet;

use carillon_domain::firing::{Event, Firing, Phase, TransitionKind};
use carillon_domain::id::RunId;
use carillon_domain::job::{Job, Misfire, MisfirePolicy, Overlap};
use carillon_domain::run::Trigger;
use carillon_domain::time::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::events::{Op, jobs, ops};
use super::fixture::{JobFixture, at, ending, me, secs};

/// The due times of one definition: `anchor + k * period` in `(from, until]`.
#[derive(Debug, Clone, Copy)]
struct Era {
    anchor_ms: i64,
    /// Later than the anchor, if due times up to here were cancelled ahead of their time.
    from_ms: i64,
    period_ms: i64,
    until_ms: i64,
}

impl Era {
    fn of(job: &Job, anchor_ms: i64) -> Self {
        let period = job.schedule.trim_start_matches("@every ").trim_end_matches('s');
        let period_ms = period.parse::<i64>().unwrap() * 1_000;
        Self { anchor_ms, from_ms: anchor_ms, period_ms, until_ms: job.end_at.unwrap_or(Timestamp::MAX).as_ms() }
    }

    fn due(self, now_ms: i64) -> impl Iterator<Item = i64> {
        let until = self.until_ms.min(now_ms);
        let all = (1..).map(move |k| self.anchor_ms + k * self.period_ms).take_while(move |due| *due <= until);
        all.skip_while(move |due| *due <= self.from_ms)
    }
}

struct RandomWalk {
    fixture: JobFixture,
    eras: Vec<Era>,
    ever_allowed: bool,
    /// The manual runs whose ids were returned to a caller.
    announced: BTreeSet<RunId>,
    /// Due times that were recorded ahead of their time, because they were cancelled while prepared.
    early: BTreeSet<i64>,
}

impl RandomWalk {
    fn new(job: Job) -> Self {
        let ever_allowed = job.overlap == Overlap::Allow;
        let eras = vec![Era::of(&job, at(0).as_ms())];
        Self { fixture: JobFixture::new(job), eras, ever_allowed, announced: BTreeSet::new(), early: BTreeSet::new() }
    }
}

impl RandomWalk {
    fn step(&mut self, op: &Op) {
        let fixture = &mut self.fixture;
        let run = fixture.draw();
        let held = fixture.state.as_ref().and_then(|state| state.phase.held().copied());
        let held_run = held.map_or(run, |held| held.run);
        let session = me();
        let event = match op {
            Op::Wait { ms } => {
                fixture.now = fixture.now + std::time::Duration::from_millis(*ms as u64);
                return;
            }
            Op::LoseCommits => {
                fixture.losses_until = Some(fixture.now);
                return;
            }
            Op::Claim { ahead } => {
                let losses_until = fixture.losses_until;
                Event::Claim { session, run, until: fixture.now + secs(*ahead), losses_until }
            }
            Op::Start => Event::Start { session, run: held_run },
            Op::Finish { status, ago_ms } => {
                let ended = Timestamp::from_ms(fixture.now.as_ms() - ago_ms);
                let ended = ended.max(held.and_then(|held| held.started_at).unwrap_or(ended));
                Event::Finish { session, run: held_run, ending: ending(*status, ended) }
            }
            Op::Reset => Event::Reset { session, run: held_run },
            Op::Sweep => Event::Sweep { session },
            Op::Pause { until_ms } => {
                let until = until_ms.map(|ms| Timestamp::from_ms(fixture.now.as_ms() + ms));
                Event::Pause { until, reason: None }
            }
            Op::Resume => Event::Resume,
            Op::Trigger => Event::Trigger { run },
            Op::CancelHeld => Event::Cancel { run: held_run },
            Op::CancelManual => {
                let manual = fixture.state.as_ref().and_then(|state| state.manual).and_then(|manual| manual.run);
                Event::Cancel { run: manual.unwrap_or(run) }
            }
            Op::Delete => return self.delete(),
            Op::Retime { period } => return self.retime(*period),
            Op::Redefine { overlap, policy } => return self.redefine(*overlap, *policy),
            Op::Concurrent { which, op } => return self.step_concurrent(*which, op),
        };
        let paused_before = self.paused();
        let answer = match op {
            Op::Pause { .. } | Op::Resume | Op::Sweep => self.fixture.call(&event),
            _ => self.fixture.apply(&event),
        };
        if let (Ok(TransitionKind::CancelledUnstarted), Some(held)) = (&answer, held) {
            let of_schedule = matches!(op, Op::CancelHeld) && held.firing.trigger != Trigger::Manual;
            let early = of_schedule && held.firing.attempt == 1 && held.firing.due_at > self.fixture.now;
            self.early.extend(early.then_some(held.firing.due_at.as_ms()));
        }
        if matches!(op, Op::Trigger) && answer.is_ok() {
            self.announced.insert(run);
        }
        if let Ok(TransitionKind::Started | TransitionKind::StartedConcurrently) = answer {
            let held = *self.fixture.starts.last().unwrap();
            assert!(held.firing.start_at <= self.fixture.now, "nothing starts early");
            assert!(held.firing.due_at <= held.firing.start_at);
            assert!(!paused_before || held.firing.trigger == Trigger::Manual, "nothing starts while paused");
        }
    }

    fn paused(&self) -> bool {
        let pause = self.fixture.state.as_ref().and_then(|state| state.pause.as_ref());
        pause.is_some_and(|pause| pause.until.is_none_or(|until| until > self.fixture.now))
    }

    fn delete(&mut self) {
        if self.fixture.call(&Event::Delete).is_ok() {
            self.close_era(self.fixture.now.as_ms());
        }
    }

    fn close_era(&mut self, now_ms: i64) {
        if let Some(era) = self.eras.last_mut() {
            era.until_ms = era.until_ms.min(now_ms);
        }
    }

    fn retime(&mut self, period: u64) {
        let job = Job { schedule: format!("@every {period}s"), ..self.fixture.job.clone() };
        if self.fixture.state.is_none() || !job.timing_differs(&self.fixture.job) || self.fixture.redefine(job).is_err()
        {
            return;
        }
        let now = self.fixture.now.as_ms();
        self.close_era(now);
        let from_ms = self.early.last().map_or(now, |early| now.max(*early));
        self.eras.push(Era { from_ms, ..Era::of(&self.fixture.job, now) });
    }

    fn redefine(&mut self, overlap: Overlap, policy: MisfirePolicy) {
        let misfire = Misfire { policy, ..self.fixture.job.misfire };
        let job = Job { overlap, misfire, ..self.fixture.job.clone() };
        self.ever_allowed |= overlap == Overlap::Allow;
        if self.fixture.state.is_some() {
            let _refused_when_deleted = self.fixture.redefine(job);
        }
    }

    fn step_concurrent(&mut self, which: usize, op: &Op) {
        let Some(key) = self.fixture.concurrent.keys().nth(which).copied() else { return };
        let row = &self.fixture.concurrent[&key];
        let run = row.phase.held().map(|held| held.run);
        let drawn = self.fixture.draw();
        let (session, held_run, now) = (me(), run.unwrap_or(drawn), self.fixture.now);
        let event = match op {
            Op::Claim { ahead } => {
                let losses_until = self.fixture.losses_until;
                Event::Claim { session, run: drawn, until: now + secs(*ahead), losses_until }
            }
            Op::Start => Event::Start { session, run: held_run },
            Op::Finish { status, .. } => Event::Finish { session, run: held_run, ending: ending(*status, now) },
            Op::Reset => Event::Reset { session, run: held_run },
            Op::Sweep => Event::Sweep { session },
            _ => return,
        };
        let paused = self.paused();
        if let Ok(TransitionKind::Started) = self.fixture.apply_concurrent(key, &event) {
            let held = self.fixture.starts.last().unwrap();
            assert!(held.firing.start_at <= now, "nothing starts early");
            assert!(!paused || held.firing.trigger == Trigger::Manual, "nothing starts while paused");
        }
    }
}

/// The places in which each due time was found.
struct Count {
    due: Vec<i64>,
    places: Vec<Vec<&'static str>>,
}

impl Count {
    /// Notes that `place` has the `count` due times in `[first, last]`.
    fn mark(&mut self, place: &'static str, first: i64, last: i64, count: Option<u64>) -> Result<(), String> {
        let from = self.due.partition_point(|due| *due < first);
        let to = self.due.partition_point(|due| *due <= last).max(from);
        if let Some(count) = count.filter(|count| *count != (to - from) as u64) {
            return Err(format!("{place}: {count} due times in {first}..{last}, but {} there were", to - from));
        }
        self.places[from..to].iter_mut().for_each(|places| places.push(place));
        Ok(())
    }

    fn mark_firing(&mut self, place: &'static str, firing: &Firing, now_ms: i64) -> Result<(), String> {
        let due = firing.due_at.as_ms();
        let first_of_schedule = firing.trigger != Trigger::Manual && firing.attempt == 1 && due <= now_ms;
        if first_of_schedule { self.mark(place, due, due, Some(1)) } else { Ok(()) }
    }
}

impl RandomWalk {
    fn check(&self) -> Result<(), String> {
        let now_ms = self.fixture.now.as_ms();
        let came = self.eras.iter().flat_map(|era| era.due(now_ms));
        let due: BTreeSet<i64> = came.chain(self.early.iter().copied()).collect();
        let due: Vec<i64> = due.into_iter().collect();
        let mut count = Count { places: vec![Vec::new(); due.len()], due };
        self.mark_history(&mut count)?;
        self.mark_rows(&mut count, now_ms)?;
        if let Some(n) = count.places.iter().position(|places| places.len() != 1) {
            return Err(format!("due time {} is in {:?}", count.due[n], count.places[n]));
        }
        self.check_runs()
    }

    fn mark_history(&self, count: &mut Count) -> Result<(), String> {
        let (mut ids, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for record in &self.fixture.records {
            if !ids.insert(record.id) || !keys.insert((record.due_at, record.trigger, record.attempt)) {
                return Err(format!("recorded twice: {record:?}"));
            }
            if record.trigger != Trigger::Manual && record.attempt == 1 {
                let (first, last) = (record.first_due_at.as_ms(), record.due_at.as_ms());
                count.mark("history", first, last, Some(record.count))?;
            }
        }
        Ok(())
    }

    fn mark_rows(&self, count: &mut Count, now_ms: i64) -> Result<(), String> {
        for row in self.fixture.concurrent.values() {
            let firing = row.phase.held().map(|held| held.firing).or(row.waiting.map(|waiting| waiting.firing));
            count.mark_firing("concurrent", &firing.ok_or("a concurrent run without a firing")?, now_ms)?;
        }
        let Some(state) = &self.fixture.state else { return Ok(()) };
        let held = state.phase.held().map(|held| held.firing);
        let of_schedule = held.filter(|held| held.trigger != Trigger::Manual);
        if of_schedule.is_some() && state.armed.is_some() {
            return Err("a firing is armed while a firing of the schedule is held".into());
        }
        for (place, firing) in [("held", held), ("armed", state.armed)] {
            firing.map_or(Ok(()), |firing| count.mark_firing(place, &firing, now_ms))?;
        }
        let Some(current) = state.armed.or(of_schedule).filter(|_| !state.deleted) else { return Ok(()) };
        let current = current.due_at.as_ms();
        if let Some(until) = state.catch_up_until {
            count.mark("backlog", current + 1, until.as_ms(), None)?;
        }
        count.mark("later", state.cursor.as_ms().max(current) + 1, now_ms, None)
    }

    fn check_runs(&self) -> Result<(), String> {
        let fixture = &self.fixture;
        let executing = fixture.concurrent.values().filter(|row| matches!(row.phase, Phase::Executing(_))).count();
        if executing > 0 && !self.ever_allowed {
            return Err("a concurrent run of a job that never allowed overlap".into());
        }
        let state = fixture.state.as_ref();
        let manual = state.and_then(|state| state.manual).and_then(|manual| manual.run);
        let held = state.and_then(|state| state.phase.held()).map(|held| held.run);
        let concurrent_rows = fixture
            .concurrent
            .values()
            .flat_map(|row| [row.phase.held().map(|held| held.run), row.waiting.and_then(|waiting| waiting.run)]);
        let known: BTreeSet<RunId> = fixture
            .records
            .iter()
            .map(|record| record.id)
            .chain(manual)
            .chain(held)
            .chain(concurrent_rows.flatten())
            .collect();
        match self.announced.iter().find(|run| !known.contains(run)) {
            Some(run) => Err(format!("run {run} was returned to a caller, and it is nowhere")),
            None => Ok(()),
        }
    }
}

fn cases() -> u32 {
    std::env::var("ACCOUNTING_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_due_time_is_in_exactly_one_place(job in jobs(), ops in prop::collection::vec(ops(), 1..60)) {
        let mut walk = RandomWalk::new(job);
        for op in &ops {
            walk.step(op);
            if let Err(what) = walk.check() {
                return Err(TestCaseError::fail(format!("after {op:?}: {what}\n{:#?}", walk.fixture.state)));
            }
        }
    }
}
