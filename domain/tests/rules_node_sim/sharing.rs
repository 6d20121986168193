//! What balance promises: nothing lies about for long where somebody can run it, and nobody is robbed without need.

use std::collections::BTreeMap;

use carillon_domain::id::SessionId;
use carillon_domain::job::Job;
use carillon_domain::node::port::RowKey;
use carillon_domain::partition::share_of;
use carillon_domain::time::Timestamp;

use super::{Dice, UTC0_MS, World, config, executors_of};

/// Rows that nobody claims although somebody could, at their versions, and since when.
#[derive(Debug, Default)]
pub(super) struct Lying {
    pub watched: bool,
    since: BTreeMap<RowKey, (u64, u64)>,
}

/// Twice `steal_after`, three looks, and what the calls and the clock's lag take. It is seen at the first look; what lies in the
/// same partition for a little longer is claimed or moves just before its own time is up, which begins anew at the next look;
/// the last one finds that it is up.
const LONGEST_MS: u64 = 2 * 1_500 + 3 * 500 + 500;

impl World {
    /// Three nodes, eight jobs that come up together and end soon, and no faults.
    pub fn calm(seed: u64, schedule: &str) -> Self {
        let job = |n| Job { executor: "shell".into(), ..Job::new(("default", &format!("job-{n}")), schedule, "{}") };
        Self::with(Dice(seed), (1..=8).map(job).collect(), 3)
    }

    /// So long, nothing else happens.
    pub fn pass(&mut self, ms: u64) {
        self.run_until(self.now + ms);
    }

    /// From now on no claim of the node that holds most jobs is applied; answers how many jobs that are.
    pub fn stick_the_busiest(&mut self) -> usize {
        let jobs_of = |session: SessionId| self.jobs_of(session);
        let sessions = self.processes.iter().map(|process| process.session);
        let (jobs, session) = sessions.map(|session| (jobs_of(session), session)).max().expect("a node");
        self.stuck = Some(session);
        jobs
    }

    /// The node that holds most jobs hears and does nothing for so long; answers how many jobs that are.
    pub fn freeze_the_busiest(&mut self, ms: u64) -> usize {
        let jobs = self.stick_the_busiest();
        let session = self.stuck.take().expect("chosen just now");
        let n = self.alive(session).expect("it lives");
        self.processes[n].frozen_until = self.now + ms;
        jobs
    }

    fn jobs_of(&self, session: SessionId) -> usize {
        let live: Vec<_> = self.store.sessions.keys().copied().collect();
        let share = share_of(session, &live, config().partitions);
        let all = self.store.claimable(Timestamp::MAX);
        let held = self.store.held(session).len();
        held + all.iter().filter(|row| share.contains(&row.partition)).count()
    }

    pub fn stolen(&self) -> u64 {
        self.store.stolen
    }

    pub fn onward(&self) -> u64 {
        self.store.onward
    }

    pub fn along(&self) -> u64 {
        self.store.along
    }

    /// How long after its due time each firing that was due since `from_ms` has started.
    pub fn lags_ms(&self, from_ms: u64) -> Vec<u64> {
        let from = Timestamp::from_ms(UTC0_MS + from_ms as i64);
        let late = self.spawned.iter().filter(|(key, ..)| key.due_at >= from);
        late.map(|(key, _, at)| (at.as_ms() - key.due_at.as_ms()) as u64).collect()
    }

    /// How many sessions were not ended by anybody.
    pub fn unexpired(&self) -> usize {
        self.store.sessions.values().filter(|session| !session.ended).count()
    }

    pub(super) fn watch_what_lies(&mut self) {
        // Where the store goes back in time, rows lie until somebody accepts that.
        if !self.lying.watched || self.past.is_some() {
            return;
        }
        let mut before = std::mem::take(&mut self.lying.since);
        for row in self.store.claimable(self.store.now + config().horizon) {
            if self.somebody_could_run(&row.executor) {
                let known = before.remove(&row.row).filter(|(version, _)| *version == row.version);
                let (_, since) = known.unwrap_or((row.version, self.now));
                assert!(self.now - since <= LONGEST_MS, "{row:?} lies unclaimed since {since}, and it is {}", self.now);
                self.lying.since.insert(row.row, (row.version, since));
            }
        }
    }

    /// Whether a node is awake, claims, has the executor, and places.
    fn somebody_could_run(&self, executor: &str) -> bool {
        self.processes.iter().any(|process| {
            let claims = self.store.sessions.get(&process.session).is_some_and(|row| !row.draining && !row.ended);
            let awake = process.alive && process.frozen_until <= self.now;
            let places = process.node.known_runs().count() < config().max_executing;
            claims && awake && places && executors_of(process.session).contains(&executor)
        })
    }
}
