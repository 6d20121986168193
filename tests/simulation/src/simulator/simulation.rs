//! A cluster, its database, its people, and the time of all of them.

mod events;
mod nodes;

use carillon_doubles::author;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::invariants::{self as must, Invariant, Violation};
use carillon_domain::job::Job;
use carillon_domain::time::Timestamp;
use carillon_doubles::innodb::{Client, InnoDb, Limits};
use carillon_store::{Clock, ControlStore, PutIf, PutJob};

use super::calls::{Done, Request};
use super::checks::Checks;
use super::dice::Dice;
use super::fault_plan::SeededFaults;
use super::outbox::{Outbox, are_sent};
use super::plan::Plan;
use super::process::{PARTITIONS, STATEMENT_TIMEOUT_US, Seat, config};
use super::tasks::Tasks;
use super::{Summary, jobs};
use crate::world::{DatabaseClock, World};

pub(super) use events::TimedEvent;

pub(super) const SECOND_US: u64 = 1_000_000;
/// Calls of people belong to no process.
pub(super) const PEOPLE: usize = usize::MAX;
/// As the plan of faults knows them.
const PEOPLES_CLIENT: u64 = 1_000;

pub(super) struct Simulation {
    pub plan: Plan,
    pub world: World<Seat>,
    pub dice: Dice,
    pub database: InnoDb,
    pub clock: DatabaseClock,
    pub fault_plan: SeededFaults,
    pub people: Client,
    /// The jobs as they were put last, by their number.
    pub jobs: Vec<Job>,
    pub checks: Checks,
    pub troubled: bool,
    /// Requests that got an answer which is one, and runs that were asked for.
    pub answered: u64,
    pub asked_runs: u64,
    pub outbox: Outbox,
    pub tasks: Tasks<Request, Done>,
    queue: BTreeMap<(u64, u64), TimedEvent>,
    queued: u64,
    booted: u64,
}

impl Simulation {
    pub fn new(plan: Plan, seed: u64, job_count: u64) -> Self {
        let mut dice = Dice(seed ^ (plan as u64) << 56);
        let begin = jobs::begin(plan, &mut dice);
        let drift = if plan.clocks() { i64::try_from(dice.below(10_001)).unwrap_or(0) - 5_000 } else { 0 };
        let clock = DatabaseClock::new(begin.as_ms() * 1_000, drift);
        clock.advance_to(0);
        let fault_plan = SeededFaults::new(plan, dice.split());
        let limits = Limits { lock_wait: Duration::from_millis(700), holder: Duration::from_millis(1_000) };
        let database = InnoDb::new(Arc::new(clock.clone()), PARTITIONS, limits, fault_plan.clone());
        database.watch();
        let lasts_s = plan.troubled_s() + plan.quiet_s();
        let end_at = begin + Duration::from_secs(lasts_s);
        let jobs = (0..job_count).map(|number| jobs::job(plan, &mut dice, number, end_at)).collect();
        Self {
            plan,
            world: World::new(config(plan).timing),
            people: database.client(PEOPLES_CLIENT),
            dice,
            database,
            clock,
            fault_plan,
            jobs,
            checks: Checks::default(),
            troubled: false,
            answered: 0,
            asked_runs: 0,
            outbox: Outbox::default(),
            tasks: Tasks::new(),
            queue: BTreeMap::new(),
            queued: 0,
            booted: 0,
        }
    }

    /// Trouble for a while, then quiet; then every due time must be accounted for and every row Idle.
    pub fn run(mut self) -> Result<Summary, Violation> {
        self.put_all(self.jobs.clone());
        let nodes = if self.plan == Plan::Calm { 3 } else { usize::try_from(self.dice.between(2, 4)).unwrap_or(3) };
        for place in 0..nodes {
            let after = self.dice.below(200_000);
            self.later(after, TimedEvent::Boot { place });
        }
        self.run_until(SECOND_US)?;
        let troubled_until_us = self.plan.troubled_s() * SECOND_US;
        self.troubled = true;
        self.fault_plan.now().stormy = true;
        self.later(0, TimedEvent::Meddle);
        self.later(0, TimedEvent::People);
        self.run_until(troubled_until_us)?;
        self.calm_down();
        self.run_until((self.plan.troubled_s() + self.plan.quiet_s()) * SECOND_US)?;
        self.come_to_rest()?;
        self.tell_the_rest()?;
        self.summary()
    }

    fn calm_down(&mut self) {
        self.troubled = false;
        let mut fault_plan = self.fault_plan.now();
        (fault_plan.stormy, fault_plan.away) = (false, false);
        fault_plan.cut_off.clear();
        drop(fault_plan);
        for job in self.jobs.clone() {
            self.resume(&job);
        }
    }

    /// L1 and L2: what is left is worked off, and then nothing is held, and nobody remembers anything.
    fn come_to_rest(&mut self) -> Result<(), Violation> {
        let latest_us = self.world.now_us + 900 * SECOND_US;
        // A pause that was on its way may have come after the resume.
        for job in self.jobs.clone() {
            self.resume(&job);
        }
        while !self.rests() {
            if self.world.now_us > latest_us {
                must::all_idle(&self.database.phases())?;
                let row = self.database.states().into_iter().find(|row| !row.is_completed());
                let sentence = format!("a job does not come to its end: {row:?}");
                return Err(Violation { invariant: Invariant::L1, sentence });
            }
            self.run_until(self.world.now_us + SECOND_US)?;
        }
        self.run_until(self.world.now_us + 5 * SECOND_US)?;
        self.world.at_rest(&self.database.phases())
    }

    /// L3: without a node, others tell and send what is left.
    fn tell_the_rest(&mut self) -> Result<(), Violation> {
        self.leave_the_rest_to_others();
        let (told_us, sent_us) = Self::last_messages_us();
        self.run_until(self.world.now_us + told_us)?;
        let latest_us = self.world.now_us + sent_us;
        // A route that repeats may always have something to tell, so one look finds all sent and is judged.
        let mut deliveries = self.deliveries()?;
        while self.world.now_us < latest_us && !are_sent(&deliveries) {
            self.run_until(self.world.now_us + 60 * SECOND_US)?;
            deliveries = self.deliveries()?;
        }
        for (what, times) in self.judge_messages(&deliveries)? {
            self.checks.counted.insert(what, times);
        }
        Ok(())
    }

    fn rests(&self) -> bool {
        let (phases, states) = (self.database.phases(), self.database.states());
        let idle = phases.iter().all(|phase| phase.held().is_none());
        // A retry beside a job's own row is held by nobody until its backoff is over.
        let none_waits_beside = phases.len() == states.len();
        idle && none_waits_beside && states.iter().all(|state| state.is_completed())
    }

    fn summary(mut self) -> Result<Summary, Violation> {
        let conflicts = self.database.record_conflicts();
        if conflicts > 0 {
            let sentence = format!("{conflicts} records were refused as second ones of their attempt");
            return Err(Violation { invariant: Invariant::S6, sentence });
        }
        let due_times = self.checks.settle_accounts()?;
        let mut faults = self.fault_plan.now().counters.clone();
        let counters = self.database.counters();
        faults.insert("a wait for a lock", counters.waits);
        faults.insert("a wait for a lock that took too long", counters.timeouts);
        faults.insert("a deadlock", counters.deadlocks);
        faults.insert("a silent transaction thrown out", counters.thrown_out);
        faults.insert("a COMMIT nobody waited for any more", counters.strays);
        faults.insert("a start of a part of its rows", counters.partial_starts);
        faults.retain(|_, times| *times > 0);
        if counters.single_starts > 0 {
            self.checks.counted.insert("started by a statement of its own", counters.single_starts);
        }
        Ok(Summary {
            firings: self.world.history.count() as u64,
            due_times,
            commits: self.checks.commits,
            virtual_s: self.world.now_us / SECOND_US,
            faults,
            paths: self.checks.counted,
            trace: self.checks.trace.sum(),
        })
    }

    /// The routes first: nobody is told of what was before.
    fn put_all(&mut self, jobs: Vec<Job>) {
        let put = |job| PutJob { job, paused: None, when: PutIf::Any, author: author() };
        let (people, puts) = (self.people.clone(), jobs.into_iter().map(put).collect::<Vec<_>>());
        let putting = async move {
            Self::put_routes(people.clone()).await;
            for part in puts.chunks(500) {
                let _each_is_valid = people.put_jobs(part).await;
            }
            Done::Told(true)
        };
        self.tasks.spawn(PEOPLE, Request::Control, putting);
    }

    /// A request of an operator, with the time limit that the API sets.
    pub fn ask(&mut self, asking: impl Future<Output = bool> + Send + 'static) {
        let task = self.tasks.spawn(PEOPLE, Request::Control, async move { Done::Told(asking.await) });
        self.later(STATEMENT_TIMEOUT_US, TimedEvent::Deadline { task });
    }

    /// Again and again, until it is answered.
    fn resume(&mut self, job: &Job) {
        let (people, key) = (self.people.clone(), super::operators::key(job));
        let asking = async move {
            use carillon_store::ControlError;
            while let Err(ControlError::Store(_)) = people.resume(&key, &author()).await {}
            Done::Told(true)
        };
        self.tasks.spawn(PEOPLE, Request::Control, asking);
    }

    /// The time by the database's clock.
    pub fn database_now(&self) -> Timestamp {
        self.clock.now()
    }
}
