//! A random walk over two stores at once: what they show must be the same, and every due time must be accounted for once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::Phase;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::job::{Job, Misfire, MisfirePolicy, OnLost, Overlap, Retry};
use carillon_domain::node::port::{Claimed, RunRef, StartAnswer};
use carillon_domain::run::{Status, Trigger};
use carillon_doubles::{author, memory_store};
use carillon_store::{Finished, JobView, ManualClock, Me, Output, PutIf, RunQuery, RunStage, RunView, SessionView};

use super::fixture::{BEGIN, PARTITIONS, StoreFixture, ending, job, key};

/// A small generator of our own: a seed replays everywhere.
pub struct Dice(u64);

impl Dice {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % sides
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Walks over the memory store and one that `bench` makes, a walk a seed.
///
/// # Panics
/// Where the two differ.
pub async fn beside_memory(seeds: Range<u64>, steady: bool, bench: impl AsyncFn() -> StoreFixture) {
    for seed in seeds {
        let clock = ManualClock::at(BEGIN);
        let memory = memory_store(Arc::new(clock.clone()), PARTITIONS);
        let left = StoreFixture::new(Arc::new(memory.clone()), clock).await;
        let right = bench().await;
        eprintln!("seed {seed}, steady {steady}");
        Walk::new(&left, &right, seed, steady).take(400).await;
        assert_eq!(memory.record_conflicts(), 0, "seed {seed}, steady {steady}");
    }
}

/// The stores under comparison, and what the walk remembers.
pub struct Walk<'a> {
    benches: [&'a StoreFixture; 2],
    dice: Dice,
    prepared: Vec<Claimed>,
    executing: Vec<RunRef>,
    triggered: BTreeSet<RunId>,
    session: u64,
    beat: u64,
    /// Whether timing is changed on the way: then due times cannot be recomputed afterwards.
    pub steady: bool,
}

impl<'a> Walk<'a> {
    /// Two benches whose clocks show the same.
    pub fn new(left: &'a StoreFixture, right: &'a StoreFixture, seed: u64, steady: bool) -> Self {
        let benches = [left, right];
        let (prepared, executing, triggered) = Default::default();
        Self { benches, dice: Dice::new(seed), prepared, executing, triggered, session: 1, beat: 0, steady }
    }

    fn me(&self) -> SessionId {
        SessionId::from_random(self.session)
    }

    /// Takes `steps` random steps, comparing what both stores answer to each.
    pub async fn take(&mut self, steps: usize) {
        for name in NAMES {
            let job = self.random_job(name);
            self.both(async |bench| bench.put_if(job.clone(), None, PutIf::Any).await).await.unwrap();
        }
        for _ in 0..steps {
            self.step().await;
        }
        self.compare().await;
        self.account_for_due_times().await;
    }

    /// The same call of both; the answers must be equal.
    async fn both<T: PartialEq + std::fmt::Debug>(&self, call: impl AsyncFn(&StoreFixture) -> T) -> T {
        let [left, right] = self.benches;
        let (one, other) = (call(left).await, call(right).await);
        assert_eq!(one, other);
        one
    }

    fn random_job(&mut self, name: &str) -> Job {
        let dice = &mut self.dice;
        let grace = Duration::from_secs(dice.pick(&[0, 5, 30]));
        Job {
            schedule: if self.steady { "@every 10s".into() } else { dice.pick(&["@every 7s", "@every 10s"]).into() },
            overlap: dice.pick(&Overlap::ALL),
            misfire: Misfire { policy: dice.pick(&MisfirePolicy::ALL), grace },
            on_lost: dice.pick(&OnLost::ALL),
            retry: Retry { max_attempts: dice.pick(&[1, 1, 3]), ..Retry::default() },
            ..job(name)
        }
    }

    async fn step(&mut self) {
        let name = self.dice.pick(&NAMES);
        match self.dice.roll(24) {
            0..=4 => self.pass_time(),
            5..=8 => self.claim().await,
            9..=12 => self.start().await,
            13..=16 => self.finish().await,
            17 => self.reset_or_settle().await,
            18 => self.pause_or_resume(name).await,
            19 => self.trigger(name).await,
            20 => self.cancel().await,
            21 => self.put_or_delete(name).await,
            22 => self.die().await,
            _ => self.compare().await,
        }
    }

    fn pass_time(&mut self) {
        let by = Duration::from_millis([300, 2000, 5000, 11_000, 60_000][self.dice.roll(5)]);
        self.benches.iter().for_each(|bench| bench.clock.advance(by));
    }

    async fn claim(&mut self) {
        let (me, limit) = (self.me(), 1 + self.dice.roll(4));
        let runs: Vec<RunId> = (0..limit).map(|_| self.draw()).collect();
        let claimed = self
            .both(async |bench| {
                let until = bench.store.now().await.unwrap() + Duration::from_secs(30);
                let mut request = bench.claim_request(me, until, 0);
                request.runs.clone_from(&runs);
                bench.store.claim(&request).await.unwrap()
            })
            .await;
        self.prepared.extend(claimed);
    }

    fn draw(&self) -> RunId {
        let (high, low) = self.benches[0].draw().parts();
        let _same_counter = self.benches[1].draw();
        RunId::from_parts(high, low)
    }

    async fn start(&mut self) {
        let (me, batch) = (self.me(), std::mem::take(&mut self.prepared));
        let refs: Vec<RunRef> = batch.iter().map(|claimed| claimed.at).collect();
        let answers = self.both(async |bench| bench.store.start(Me::new(me), &refs).await.unwrap()).await;
        for (claimed, answer) in batch.into_iter().zip(answers) {
            match answer {
                StartAnswer::Started { at, .. } => self.executing.push(at),
                StartAnswer::Early { .. } => self.prepared.push(claimed),
                // Left to the recovery that the walk plays.
                StartAnswer::Moved | StartAnswer::Gone | StartAnswer::Suspended => {}
            }
        }
    }

    async fn finish(&mut self) {
        if self.executing.is_empty() {
            return;
        }
        let me = self.me();
        let at = self.executing.remove(self.dice.roll(self.executing.len()));
        let status = self.dice.pick(&[Status::Succeeded, Status::Succeeded, Status::Failed, Status::TimedOut]);
        self.both(async |bench| {
            let now = bench.store.now().await.unwrap();
            let output = Output { bytes: b"hello".to_vec(), truncated: false };
            let finished = Finished { at, ending: ending(status, now), next: None, output: output.into() };
            bench.store.finish(Me::new(me), &[finished], &[]).await.unwrap()
        })
        .await;
    }

    /// Does as recovery does: settles or releases the rows that it finds.
    async fn reset_or_settle(&mut self) {
        let me = self.me();
        let held = self.both(async |bench| bench.store.list_held(me).await.unwrap()).await;
        if held.is_empty() {
            return;
        }
        let at = self.dice.pick(&held);
        if self.dice.roll(2) == 0 {
            self.both(async |bench| bench.store.settle(me, &[at]).await.unwrap()).await;
        } else {
            self.both(async |bench| bench.store.release(me, &[at]).await.unwrap()).await;
            self.executing.retain(|running| running.run != at.run);
        }
    }

    async fn pause_or_resume(&mut self, name: &str) {
        let key = key(name);
        if self.dice.roll(2) == 0 {
            let until = (self.dice.roll(2) == 0).then_some(Duration::from_secs(15));
            self.both(async |bench| {
                let now = bench.store.now().await.unwrap();
                bench.store.pause(&key, until.map(|until| now + until), None, &author()).await
            })
            .await
            .ok();
        } else {
            self.both(async |bench| bench.store.resume(&key, &author()).await).await.ok();
        }
    }

    async fn trigger(&mut self, name: &str) {
        let run = self.draw();
        if self.both(async |bench| bench.store.trigger(&key(name), run, &author()).await).await.is_ok() {
            self.triggered.insert(run);
        }
    }

    async fn cancel(&mut self) {
        let mut live: Vec<RunId> = self.prepared.iter().map(|claimed| claimed.at.run).collect();
        live.extend(self.executing.iter().map(|at| at.run));
        live.extend(&self.triggered);
        if !live.is_empty() {
            let run = self.dice.pick(&live);
            self.both(async |bench| bench.store.cancel(run, &author()).await).await.ok();
        }
    }

    async fn put_or_delete(&mut self, name: &str) {
        if self.dice.roll(4) > 0 || self.steady {
            let job = self.random_job(name);
            self.both(async |bench| bench.put_if(job.clone(), None, PutIf::Any).await).await.ok();
        } else {
            self.both(async |bench| bench.store.delete_job(&key(name), None, &author()).await).await.ok();
        }
    }

    /// The session ends as a killed one does, and a new one takes over.
    async fn die(&mut self) {
        let dead = self.me();
        self.session += 1;
        let number = self.session;
        self.both(async |bench| bench.session(number).await).await;
        let seq = self.beat;
        assert!(self.both(async |bench| bench.store.expire(None, dead, seq).await.unwrap()).await);
        while self.both(async |bench| bench.store.sweep(dead, 2).await.unwrap()).await > 0 {}
        self.beat = 0;
        self.prepared.clear();
        self.executing.clear();
    }

    async fn compare(&self) {
        let me = self.me();
        self.both(async |bench| bench.store.jobs(&jobs_query()).await.unwrap()).await;
        self.both(async |bench| bench.store.runs(&all_runs()).await.unwrap()).await;
        // Each database has a server of its own, or none; only sessions of a cluster tell their terms.
        let without_server = |view| SessionView { server: None, terms: None, ..view };
        self.both(async |bench| {
            bench.store.sessions().await.unwrap().into_iter().map(without_server).collect::<Vec<_>>()
        })
        .await;
        self.both(async |bench| {
            let mut peek = bench.store.peek(&bench.peek_request(me, &[1, 2], bench.clock_in(5))).await.unwrap();
            peek.cancels.sort_unstable();
            peek
        })
        .await;
    }

    /// Each due time up to the cursor is recorded once, held, armed, or part of a backlog; each manual run is somewhere.
    async fn account_for_due_times(&self) {
        let [bench, _] = self.benches;
        let runs = bench.store.runs(&all_runs()).await.unwrap().items;
        for run in &self.triggered {
            assert_eq!(runs.iter().filter(|view| view.id == *run).count(), 1, "manual run {run}");
        }
        if self.steady {
            for view in bench.store.jobs(&jobs_query()).await.unwrap().items {
                account(&view, &runs);
            }
        }
    }
}

fn jobs_query() -> carillon_store::JobQuery {
    carillon_store::JobQuery { limit: 100, ..Default::default() }
}

fn all_runs() -> RunQuery {
    RunQuery { limit: 1_000_000, ..RunQuery::default() }
}

/// Due times of a schedule that never changed are ten seconds apart.
fn account(view: &JobView, runs: &[RunView]) {
    let state = &view.state;
    let index = |t: carillon_domain::time::Timestamp| (t.as_ms() - BEGIN.as_ms()) / 10_000;
    let mut seen: BTreeMap<i64, usize> = BTreeMap::new();
    let mut total = 0;
    for run in runs.iter().filter(|run| run.job_id == state.id) {
        match &run.stage {
            RunStage::Recorded { record, .. } if record.trigger != Trigger::Manual && record.attempt == 1 => {
                let (first, last) = (index(record.first_due_at), index(record.due_at));
                total += record.count as i64;
                assert_eq!(
                    last - first + 1,
                    record.count as i64,
                    "a record stands for each due time in it: {record:?}"
                );
                (first..=last).for_each(|due| *seen.entry(due).or_default() += 1);
            }
            RunStage::Running { held, .. } if held.firing.trigger != Trigger::Manual && held.firing.attempt == 1 => {
                *seen.entry(index(held.firing.due_at)).or_default() += 1;
                total += 1;
            }
            // Given back beside the job's row.
            RunStage::Waiting { due_at, trigger, attempt: 1, .. } if *trigger != Trigger::Manual => {
                *seen.entry(index(*due_at)).or_default() += 1;
                total += 1;
            }
            _ => {}
        }
    }
    let held = state.phase.held().map(|held| held.firing).filter(|firing| firing.trigger != Trigger::Manual);
    let cursor = index(state.cursor);
    // An armed or prepared firing is accounted for only if it lies behind the cursor, which moves at the start.
    let prepared = held.filter(|_| matches!(state.phase, Phase::Prepared(_)));
    for coming in state.armed.into_iter().chain(prepared) {
        if coming.attempt == 1 && index(coming.due_at) <= cursor {
            *seen.entry(index(coming.due_at)).or_default() += 1;
            total += 1;
        }
    }
    let backlog_from = held.or(state.armed).map_or(0, |firing| index(firing.due_at));
    for due in 1..=cursor {
        let in_backlog = state.catch_up_until.is_some_and(|until| due > backlog_from && due <= index(until));
        let times = seen.remove(&due).unwrap_or(0);
        assert!(times <= 1, "due time {due} of {} is accounted for {times} times: {state:#?}", view.job.name);
        total += i64::from(times == 0 && in_backlog);
    }
    assert_eq!(total, cursor, "due times of {} are missing: {state:#?}", view.job.name);
    assert!(seen.is_empty(), "due times after the cursor {cursor} of {}: {seen:?}", view.job.name);
}
