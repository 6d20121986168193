//! A cluster, its database, its people, and the time of all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carillon_adapters::store::memory::innodb::{Client, InnoDb, Limits};
use carillon_adapters::store::{Clock, ControlStore, PutIf, PutJob};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::invariants::{self as must, Number, Violation};
use carillon_domain::job::Job;
use carillon_domain::node::{Effect, Input, Node};
use carillon_domain::run::{Ending, Status};
use carillon_domain::time::{BootTime, Timestamp};

use super::calls::{Call, Done, perform};
use super::checks::Checks;
use super::clocks::{BootClock, DatabaseClock};
use super::dice::Dice;
use super::plan::Plan;
use super::process::{PARTITIONS, Process, STATEMENT_TIMEOUT_US, config};
use super::sky::Sky;
use super::tasks::{TaskId, Tasks};
use super::{Summary, jobs};

pub(super) const SECOND_US: u64 = 1_000_000;
/// Calls of people belong to no process.
pub(super) const PEOPLE: usize = usize::MAX;
/// As the weather knows them.
const PEOPLES_CLIENT: u64 = 1_000;
/// More inputs than one moment can have in any cluster that makes progress.
const BUSY: u64 = 200_000;

pub(super) enum Happening {
    Boot {
        place: usize,
    },
    ChildEnds {
        process: usize,
        run: RunId,
        status: Status,
    },
    KeeperKills {
        process: usize,
    },
    Deadline {
        task: TaskId,
    },
    Thaw {
        process: usize,
    },
    /// A node is reachable again.
    Mend {
        client: u64,
    },
    DatabaseIsBack,
    Meddle,
    People,
}

pub(super) struct World {
    pub plan: Plan,
    pub now_us: u64,
    pub dice: Dice,
    pub database: InnoDb,
    pub clock: DatabaseClock,
    pub sky: Sky,
    pub processes: Vec<Process>,
    pub people: Client,
    /// The jobs as they were put last, by their number.
    pub jobs: Vec<Job>,
    pub checks: Checks,
    pub broken: Option<Violation>,
    pub troubled: bool,
    /// Requests that got an answer which is one, and runs that were asked for.
    pub answered: u64,
    pub asked_runs: u64,
    tasks: Tasks<Call, Done>,
    queue: BTreeMap<(u64, u64), Happening>,
    queued: u64,
    booted: u64,
}

impl World {
    pub fn new(plan: Plan, seed: u64, job_count: u64) -> Self {
        let mut dice = Dice(seed ^ (plan as u64) << 56);
        let begin = jobs::begin(plan, &mut dice);
        let drift = if plan.clocks() { i64::try_from(dice.below(10_001)).unwrap_or(0) - 5_000 } else { 0 };
        let clock = DatabaseClock::new(begin.as_ms() * 1_000, drift);
        clock.advance_to(0);
        let sky = Sky::new(plan, dice.split());
        let limits = Limits { lock_wait: Duration::from_millis(700), holder: Duration::from_millis(1_000) };
        let database = InnoDb::new(Arc::new(clock.clone()), PARTITIONS, limits, sky.clone());
        database.watch();
        let lasts_s = plan.troubled_s() + plan.quiet_s();
        let end_at = begin + Duration::from_secs(lasts_s);
        let jobs = (0..job_count).map(|number| jobs::job(plan, &mut dice, number, end_at)).collect();
        Self {
            plan,
            now_us: 0,
            people: database.client(PEOPLES_CLIENT),
            dice,
            database,
            clock,
            sky,
            processes: Vec::new(),
            jobs,
            checks: Checks::default(),
            broken: None,
            troubled: false,
            answered: 0,
            asked_runs: 0,
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
            self.later(after, Happening::Boot { place });
        }
        self.run_until(SECOND_US)?;
        let troubled_until_us = self.plan.troubled_s() * SECOND_US;
        self.troubled = true;
        self.sky.now().stormy = true;
        self.later(0, Happening::Meddle);
        self.later(0, Happening::People);
        self.run_until(troubled_until_us)?;
        self.calm_down();
        self.run_until((self.plan.troubled_s() + self.plan.quiet_s()) * SECOND_US)?;
        self.come_to_rest()?;
        self.summary()
    }

    fn calm_down(&mut self) {
        self.troubled = false;
        let mut sky = self.sky.now();
        (sky.stormy, sky.away) = (false, false);
        sky.cut_off.clear();
        drop(sky);
        for job in self.jobs.clone() {
            self.resume(&job);
        }
    }

    /// L1 and L2: what is left is worked off, and then nothing is held, and nobody remembers anything.
    fn come_to_rest(&mut self) -> Result<(), Violation> {
        let latest_us = self.now_us + 900 * SECOND_US;
        // A pause that was on its way may have come after the resume.
        for job in self.jobs.clone() {
            self.resume(&job);
        }
        while !self.rests() {
            if self.now_us > latest_us {
                must::all_idle(&self.database.phases())?;
                let row = self.database.states().into_iter().find(|row| !row.is_completed());
                let sentence = format!("a job does not come to its end: {row:?}");
                return Err(Violation { number: Number::L1, sentence });
            }
            self.run_until(self.now_us + SECOND_US)?;
        }
        self.run_until(self.now_us + 5 * SECOND_US)?;
        must::all_idle(&self.database.phases())?;
        for process in self.processes.iter().filter(|process| process.alive) {
            process.node.iter().try_for_each(must::nothing_wedged)?;
        }
        Ok(())
    }

    fn rests(&self) -> bool {
        let (phases, states) = (self.database.phases(), self.database.states());
        let idle = phases.iter().all(|phase| phase.held().is_none());
        // A retry beside a job's own row is held by nobody until its backoff is over.
        let none_waits_beside = phases.len() == states.len();
        idle && none_waits_beside && states.iter().all(carillon_domain::firing::JobState::is_completed)
    }

    fn summary(self) -> Result<Summary, Violation> {
        let conflicts = self.database.record_conflicts();
        if conflicts > 0 {
            let sentence = format!("{conflicts} records were refused as second ones of their attempt");
            return Err(Violation { number: Number::S6, sentence });
        }
        let due_times = self.checks.settle_accounts()?;
        let mut faults = self.sky.now().struck.clone();
        let struck = self.database.struck();
        faults.insert("a wait for a lock", struck.waits);
        faults.insert("a wait for a lock that took too long", struck.timeouts);
        faults.insert("a deadlock", struck.deadlocks);
        faults.insert("a silent transaction thrown out", struck.thrown_out);
        faults.insert("a COMMIT nobody waited for any more", struck.strays);
        faults.retain(|_, times| *times > 0);
        Ok(Summary {
            firings: self.checks.firings,
            due_times,
            commits: self.checks.commits,
            virtual_s: self.now_us / SECOND_US,
            faults,
            paths: self.checks.counted,
            trace: self.checks.trace.sum(),
        })
    }

    fn put_all(&mut self, jobs: Vec<Job>) {
        for part in jobs.chunks(500) {
            let puts: Vec<PutJob> =
                part.iter().map(|job| PutJob { job: job.clone(), paused: None, when: PutIf::Any }).collect();
            let people = self.people.clone();
            self.tasks.spawn(PEOPLE, Call::Control, async move { Done::Told(people.put_jobs(&puts).await.is_ok()) });
        }
    }

    /// What a person asks for, with the time limit that the API sets.
    pub fn ask(&mut self, asking: impl Future<Output = bool> + Send + 'static) {
        let task = self.tasks.spawn(PEOPLE, Call::Control, async move { Done::Told(asking.await) });
        self.later(STATEMENT_TIMEOUT_US, Happening::Deadline { task });
    }

    /// Again and again, until it is answered.
    fn resume(&mut self, job: &Job) {
        let (people, key) = (self.people.clone(), super::people::key(job));
        let asking = async move {
            use carillon_adapters::store::ControlError;
            while let Err(ControlError::Store(_)) = people.resume(&key).await {}
            Done::Told(true)
        };
        self.tasks.spawn(PEOPLE, Call::Control, asking);
    }

    pub fn later(&mut self, after_us: u64, what: Happening) {
        self.queued += 1;
        self.queue.insert((self.now_us + after_us, self.queued), what);
    }

    fn run_until(&mut self, end_us: u64) -> Result<(), Violation> {
        let mut at_once = 0;
        loop {
            self.go_on();
            if let Some(violation) = self.broken.take() {
                return Err(violation);
            }
            let queued = self.queue.keys().next().map(|(at, _)| *at);
            let wakes = self.processes.iter().map(Process::wake_us);
            let next_us = queued.into_iter().chain(self.database.next_at_us()).chain(wakes).min().unwrap_or(u64::MAX);
            if next_us > end_us {
                break;
            }
            at_once = if next_us > self.now_us { 0 } else { at_once + 1 };
            if at_once > BUSY {
                let awake = self.processes.iter().filter(|process| process.wake_us() <= self.now_us);
                let nodes: Vec<_> = awake.map(|process| (process.place, process.alive, &process.node)).collect();
                let server = self.database.next_at_us();
                let sentence = format!(
                    "a busy loop {} us after the beginning: queued {queued:?}, server {server:?}, awake {nodes:?}",
                    self.now_us
                );
                return Err(Violation { number: Number::L2, sentence });
            }
            self.advance_to(next_us.max(self.now_us));
            self.step();
        }
        self.advance_to(end_us);
        Ok(())
    }

    fn advance_to(&mut self, now_us: u64) {
        self.now_us = now_us;
        self.clock.advance_to(now_us);
        self.database.advance_to(now_us);
        self.watch();
    }

    /// What is due is done: one thing that was put into the queue, or whoever wakes.
    fn step(&mut self) {
        let due = self.queue.first_entry().filter(|entry| entry.key().0 <= self.now_us);
        if let Some(what) = due.map(|entry| entry.remove()) {
            self.happen(what);
            return;
        }
        for n in 0..self.processes.len() {
            if self.processes[n].wake_us() > self.now_us {
                continue;
            }
            let process = &mut self.processes[n];
            let overdue = process.clock.at(self.now_us) >= process.keeper_until;
            if overdue && !process.killing && !process.children.is_empty() {
                process.killing = true;
                let pause = config(self.plan).timing.pause.as_micros() as u64;
                let after = self.dice.below(pause);
                self.later(after, Happening::KeeperKills { process: n });
            }
            if self.processes[n].alive && !self.processes[n].is_frozen(self.now_us) {
                self.feed(n, Input::Tick);
            }
        }
    }

    /// Polls every call that may go on, and hands on what came of it.
    fn go_on(&mut self) {
        while let Some((task, owner)) = self.tasks.next_ready() {
            if let Some(process) = self.processes.get_mut(owner)
                && process.is_frozen(self.now_us)
            {
                process.asleep.push(task);
                continue;
            }
            let done = self.tasks.poll(task);
            self.watch();
            if let Some((task, done)) = done {
                self.done(task.owner, done);
            }
            if self.broken.is_some() {
                return;
            }
        }
    }

    fn watch(&mut self) {
        for commit in self.database.take_commits() {
            let verdict = self.checks.committed(&commit);
            self.judge(verdict);
        }
    }

    fn judge(&mut self, verdict: Result<(), Violation>) {
        if let Err(violation) = verdict
            && self.broken.is_none()
        {
            self.broken = Some(violation);
        }
    }

    fn done(&mut self, owner: usize, done: Done) {
        match done {
            Done::Told(answered) => self.answered += u64::from(answered),
            Done::Input(input) => self.feed(owner, input),
            Done::Closed => {
                self.processes[owner].alive = false;
                self.tasks.drop_of(owner);
                self.boot_again(owner);
            }
            Done::Opened(Some(utc)) => {
                let process = &mut self.processes[owner];
                let now = process.clock.at(self.now_us);
                let node = Node::new(config(self.plan), process.session, utc, now).registered_at(process.sent);
                process.keeper_until = process.sent + config(self.plan).timing.self_kill_after;
                process.node = Some(node);
                self.feed(owner, Input::Tick);
            }
            Done::Opened(None) => {
                self.processes[owner].alive = false;
                self.boot_again(owner);
            }
        }
    }

    fn boot_again(&mut self, n: usize) {
        let place = self.processes[n].place;
        let after = self.dice.between(100_000, 2_500_000);
        self.later(after, Happening::Boot { place });
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Boot { place } => self.boot(place),
            Happening::ChildEnds { process, run, status } => {
                if self.processes[process].children.remove(&run).is_some() {
                    self.checks.died(run);
                    self.feed(process, Input::Exited { run, ending: ending(status) });
                }
            }
            Happening::KeeperKills { process } => self.kill_children(process, true),
            Happening::Deadline { task } => self.deadline(task),
            Happening::Thaw { process } => self.thaw(process),
            Happening::Mend { client } => {
                self.sky.now().cut_off.remove(&client);
            }
            Happening::DatabaseIsBack => self.sky.now().away = false,
            Happening::Meddle => self.meddle(),
            Happening::People => self.ask_something(),
        }
    }

    /// Nobody waits for the answer any more; what was sent may still be carried out.
    fn deadline(&mut self, task: TaskId) {
        let Some(owner) = self.tasks.owner(task) else { return };
        if let Some(process) = self.processes.get(owner).filter(|process| process.is_frozen(self.now_us)) {
            let after = process.frozen_until_us - self.now_us;
            return self.later(after, Happening::Deadline { task });
        }
        if let Some(one) = self.tasks.drop_one(task) {
            self.sky.strike("an answer that came too late");
            self.done(one.owner, one.call.late());
        }
    }

    fn thaw(&mut self, n: usize) {
        let process = &mut self.processes[n];
        if process.is_frozen(self.now_us) {
            return;
        }
        let (asleep, inbox) = (std::mem::take(&mut process.asleep), std::mem::take(&mut process.inbox));
        asleep.into_iter().for_each(|task| self.tasks.wake(task));
        for input in inbox {
            self.feed(n, input);
        }
    }

    fn boot(&mut self, place: usize) {
        self.booted += 1;
        let session = SessionId::from_random(self.booted << 8 | place as u64);
        let client = self.database.client(place as u64);
        let drift_ppm =
            if self.plan.clocks() { i64::try_from(self.dice.below(19_001)).unwrap_or(0) - 9_500 } else { 0 };
        let clock = BootClock { ahead_us: self.dice.below(1 << 40), drift_ppm };
        let sent = clock.at(self.now_us);
        let n = self.processes.len();
        self.processes.push(Process {
            place,
            node: None,
            session,
            client: client.clone(),
            clock,
            sent,
            frozen_until_us: 0,
            asleep: Vec::new(),
            inbox: Vec::new(),
            keeper_until: sent,
            killing: false,
            children: BTreeMap::new(),
            alive: true,
            drained: false,
        });
        let new = carillon_adapters::store::NewSession {
            id: session,
            node: format!("node-{place}"),
            address: String::new(),
            version: String::new(),
        };
        let opening = async move {
            use carillon_adapters::store::NodeStore;
            Done::Opened(client.open_session(&new).await.ok().map(|opened| opened.now))
        };
        let task = self.tasks.spawn(n, Call::Open, opening);
        self.later(STATEMENT_TIMEOUT_US, Happening::Deadline { task });
    }

    /// The node is gone at once; its keeper kills the children within the grace, and somebody starts another one.
    pub fn die(&mut self, n: usize) {
        self.processes[n].alive = false;
        self.processes[n].killing = true;
        self.tasks.drop_of(n);
        let grace = config(self.plan).timing.fence_grace.as_micros() as u64;
        let after = self.dice.below(grace);
        self.later(after, Happening::KeeperKills { process: n });
        self.boot_again(n);
    }

    pub fn kill_children(&mut self, n: usize, told: bool) {
        self.processes[n].killing = false;
        for run in std::mem::take(&mut self.processes[n].children).into_keys() {
            self.checks.died(run);
            if told && self.processes[n].alive {
                self.feed(n, Input::Exited { run, ending: ending(Status::Failed) });
            }
        }
    }

    pub fn feed(&mut self, n: usize, input: Input) {
        let process = &mut self.processes[n];
        if process.is_frozen(self.now_us) {
            process.inbox.push(input);
            return;
        }
        let now = process.clock.at(self.now_us);
        let Some(node) = process.node.as_mut().filter(|_| process.alive) else { return };
        node.handle(input, now);
        while let Some(effect) = self.processes[n].node.as_mut().and_then(Node::poll) {
            self.carry_out(n, effect, now);
            if !self.processes[n].alive {
                return;
            }
        }
    }

    fn carry_out(&mut self, n: usize, effect: Effect, now: BootTime) {
        match effect {
            Effect::RenewKeeper { until } => self.processes[n].keeper_until = until,
            Effect::Spawn { held, job } => {
                let process = &mut self.processes[n];
                let lease = (process.keeper_until, now);
                process.children.insert(held.run, ());
                let verdict = self.checks.spawn((process.session, &held, &job), lease).map(|_| ());
                self.judge(verdict);
                let (after, status) = self.fate_of_child();
                self.later(after, Happening::ChildEnds { process: n, run: held.run, status });
            }
            Effect::Stop { run, .. } => {
                let after = self.dice.below(200_000);
                self.later(after, Happening::ChildEnds { process: n, run, status: Status::Cancelled });
            }
            Effect::Forget(_) => {}
            Effect::SelfKill(_) => {
                self.sky.strike("a node that ended itself");
                self.die(n);
            }
            call => self.send(n, call, now),
        }
    }

    fn fate_of_child(&mut self) -> (u64, Status) {
        if self.plan == Plan::Calm {
            return (self.dice.below(80_000), Status::Succeeded);
        }
        let status = self.dice.pick(&[Status::Succeeded, Status::Succeeded, Status::Failed, Status::TimedOut]);
        let takes = match self.dice.below(12) {
            0 => self.dice.below(6_000_000),
            1..=3 => self.dice.below(900_000),
            _ => self.dice.below(60_000),
        };
        (takes, status)
    }

    /// On its way to the store, with the time limit that the engine sets.
    fn send(&mut self, n: usize, effect: Effect, now: BootTime) {
        let process = &mut self.processes[n];
        let closes = matches!(effect, Effect::Drained);
        process.drained |= closes;
        let call = if closes { Some(Call::Close) } else { Call::of(&effect, now) };
        let Some(call) = call else { return };
        let calling = perform(process.client.clone(), process.me(), process.executors(), effect, now);
        let limit_us = match call {
            Call::Asked { beat: true, .. } => config(self.plan).timing.heartbeat_timeout.as_micros() as u64,
            _ => STATEMENT_TIMEOUT_US,
        };
        let task = self.tasks.spawn(n, call, calling);
        self.later(limit_us, Happening::Deadline { task });
    }

    /// What the database's clock shows.
    pub fn database_now(&self) -> Timestamp {
        self.clock.now()
    }
}

fn ending(status: Status) -> Ending {
    Ending { status, exit_code: None, signal: None, reason: None, ended_at: Timestamp::EPOCH }
}
