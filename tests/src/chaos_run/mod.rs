//! A chaos run: jobs that write their own lives, people, and faults of many classes at once; then quiet, until all has come to
//! rest; then the checker judges by what the jobs wrote and what the API says.
//!
//! Every job has a `start_at` and an `end_at`, so the due times that must be accounted for are fixed before the first fault.

mod caller;
pub mod faults;
pub mod liveness;
mod load;
pub mod lost_updates;
mod operators;
mod outages;
mod receivers;
mod rest;
mod watch;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use carillon_checker::fault::{End, Fault};
use carillon_checker::{Evidence, Plan, Verdict, judge, time};
use serde_json::{Value, json};

use crate::chaos::{self, Class, Dice, Field, Kind, Timing, Ways};
use crate::cluster::Witness;
use crate::waiting::wait_until_within;
use caller::{Caller, now};
use faults::{Pace, Strikes};
use load::Made;
use lost_updates::Swaps;
use receivers::Receivers;
pub use watch::windows;

/// The parts of a chaos run.
#[derive(Debug, Clone)]
pub struct ChaosRun {
    /// Of the database.
    pub kind: Kind,
    /// Everything that is drawn follows from it.
    pub seed: u64,
    /// How long jobs are due.
    pub length: Duration,
    /// Of the nodes to the members of a cluster.
    pub ways: Ways,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many jobs there are.
    pub jobs: usize,
    /// The faults.
    pub classes: Vec<Class>,
    /// How hard the faults strike.
    pub pace: Pace,
    /// `[session]` of each node.
    pub session: &'static str,
    /// How long messages that are on their way at the end are waited for. A sender that was killed holds one for 330 s.
    pub last_messages: Duration,
    /// Where everything is left that the checker reads.
    pub dir: PathBuf,
}

/// The findings of a chaos run.
pub struct Told {
    /// The verdict of the checker.
    pub verdict: Verdict,
    /// The strikes.
    pub strikes: Strikes,
    /// How many processes of nodes ended, by exit status.
    pub ends: BTreeMap<String, u64>,
    /// How nodes ended that were asked to, at last.
    pub drained: Vec<String>,
    /// Lines of the nodes' logs that must not be there.
    pub bad_lines: Vec<String>,
    /// How long it took until all was at rest; what was not, if it was waited for in vain.
    pub rested: Result<Duration, String>,
    /// Of the database, as it says itself.
    pub database: String,
    /// How many nodes ended with exit code 70.
    pub fenced: usize,
    /// Those of them that had a server which took writes, each as a sentence.
    pub needless: Vec<String>,
    /// Losses of commits that the nodes said, and none was lost, each as a sentence.
    pub false_alarms: Vec<String>,
    /// Swaps that the servers acknowledged to clients of their own.
    pub swaps: usize,
    /// Those of them that the servers lost, each as a sentence.
    pub lost_updates: Vec<String>,
}

impl Told {
    /// Whether nothing was found that should not be.
    pub fn is_clean(&self) -> bool {
        let drained_well = self.drained.iter().all(|how| how == "exit status: 0");
        let well = self.bad_lines.is_empty() && self.false_alarms.is_empty() && self.rested.is_ok() && drained_well;
        self.verdict.is_clean() && well
    }
}

/// Jobs come due so long after they were created: `@every` and new jobs need a second.
const BEFORE: Duration = Duration::from_secs(5);
/// Without faults at the beginning and at the end, so that there is something to compare with.
const CALM: Duration = Duration::from_secs(8);
/// How long it may take until all has come to rest.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long a node may wait for the answer to a sign of life.
const ANSWER: Duration = Duration::from_secs(1);
/// Words that must not stand in the log of a node.
const BAD: [&str; 2] = ["panicked", "an invariant does not hold"];

impl ChaosRun {
    /// Runs it.
    pub fn run(&self) -> Told {
        fs::create_dir_all(&self.dir).expect("a directory for what is left");
        let field = Field::start(&self.plan());
        let caller = Caller::of(&field);
        // Routes stand before the first failure that they are to tell.
        let receivers = Receivers::open(self.seed);
        let routes = receivers.put_routes(&caller, &self.drawn((0, micros(self.length))));
        let from_us = now() / time::SECOND_US * time::SECOND_US + micros(BEFORE);
        let made = self.create(&caller, (from_us, from_us + micros(self.length)));
        lost_updates::prepare(&field);
        let over = AtomicBool::new(false);
        let (strikes, acts, rested, watched, swaps) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| watch::watch(&field, &over));
            let swapping = scope.spawn(|| lost_updates::swap(&field, &over));
            let (strikes, mut acts) = self.storm(&field, &caller, &made, from_us);
            let rested = rest::come_to_rest(&field, &caller, &mut acts, made[0].job.until_us, PATIENCE);
            over.store(true, Ordering::Relaxed);
            let swaps: Swaps = swapping.join().expect("the swaps end");
            (strikes, acts, rested, watching.join().expect("the watch ends"), swaps)
        });
        let windows = watch::windows(&field);
        receivers.calm_down();
        let runs = caller.all("/v1/runs?").unwrap_or_default();
        let alerts = receivers.alerts(&caller, routes, &runs, &made, self.last_messages);
        let ends = ends(&field);
        let database = rest::version(&field);
        let plan = Plan { jobs: made.into_iter().map(|made| made.job).collect(), acts };
        self.keep("jobs.json", &plan.to_json());
        self.keep("runs.json", &json!(runs));
        self.keep("alerts.json", &alerts);
        self.keep("faults.json", &Evidence::faults_json(&strikes.faults, &ends));
        self.keep("outages.json", &json!(outages::outages(&watched, &windows, from_us, now())));
        let verdict = judge(&Evidence::read(&self.dir).expect("what was just written can be read"));
        let writable: Vec<Value> = watched.iter().map(liveness::Writable::to_json).collect();
        self.keep("writable.json", &json!(writable));
        let needless = self.needless(&field, &ends, &strikes, &watched);
        let false_alarms = liveness::false_alarms(&windows, &strikes.lossy);
        let false_alarms = false_alarms.iter().map(|window| format!("{window:?}")).collect();
        let fenced = liveness::fenced(&ends);
        let lost_updates = swaps.lost(&strikes.lossy);
        let (drained, bad_lines) = self.take_down(field);
        let mut by_status = BTreeMap::new();
        for end in ends {
            *by_status.entry(end.how).or_default() += 1;
        }
        Told {
            verdict,
            strikes,
            ends: by_status,
            drained,
            bad_lines,
            rested,
            database,
            fenced,
            needless,
            false_alarms,
            swaps: swaps.wins.len(),
            lost_updates,
        }
    }

    fn plan(&self) -> chaos::Plan {
        chaos::Plan {
            kind: self.kind,
            topology: match self.kind {
                Kind::GaleraMultiWriter => Some("galera-multi-writer"),
                // A member outside of its cluster looks like a server of its own to a node that starts.
                Kind::Galera if self.classes.contains(&Class::MemberOutside) => Some("galera"),
                _ => None,
            },
            ways: self.ways,
            nodes: self.nodes,
            config: format!("{}{}{}", self.session, receivers::CONFIG, load::plugins(&self.dir)),
            small_disk: self.classes.contains(&Class::DiskFull),
            clocks: [Class::DatabaseClock, Class::NodeClock].iter().any(|class| self.classes.contains(class)),
        }
    }

    /// The nodes that ended though there was a writer.
    fn needless(&self, field: &Field, ends: &[End], strikes: &Strikes, servers: &[liveness::Writable]) -> Vec<String> {
        let faults: Vec<Fault> = strikes.faults.iter().filter_map(|fault| Fault::from_json(fault).ok()).collect();
        let Timing { heartbeat, self_kill_after, .. } = field.timing;
        // A sign of life that is lost on its way is followed by another one.
        let periods = liveness::Periods {
            heartbeat_us: micros(heartbeat),
            self_kill_us: micros(self_kill_after),
            enough_us: micros(heartbeat * 2 + ANSWER),
        };
        // A node behind a balancer reaches the one that this leads to.
        let led_to = |number: usize| -> Vec<(i64, i64)> {
            let led = field.choice.as_ref().map(|choice| choice.led_to(number)).unwrap_or_default();
            let us = |at: u64| i64::try_from(at).unwrap_or(i64::MAX);
            led.into_iter().map(|(from, until)| (us(from), us(until))).collect()
        };
        let led: Vec<_> = servers.iter().enumerate().map(|(number, server)| server.within(&led_to(number))).collect();
        let of_node = |node: &chaos::Target| {
            let ends: Vec<End> = ends.iter().filter(|end| end.node == node.name()).cloned().collect();
            let reached = if node.wires.has_balancer() { &led } else { servers };
            liveness::needless_ends(&ends, &faults, reached, periods)
        };
        let needless: Vec<_> = field.nodes.iter().flat_map(of_node).collect();
        needless.iter().map(|(end, reachable_us)| watch::told(end, *reachable_us)).collect()
    }

    fn keep(&self, name: &str, value: &Value) {
        fs::write(self.dir.join(name), value.to_string()).expect("what is left can be written");
    }

    fn drawn(&self, due: (i64, i64)) -> Vec<Made> {
        load::jobs(self.jobs, &Witness::new(&self.dir), due, &mut Dice::new(self.seed))
    }

    fn create(&self, caller: &Caller, due: (i64, i64)) -> Vec<Made> {
        let mut made = self.drawn(due);
        for part in made.chunks(1_000) {
            let items: Vec<&Value> = part.iter().map(|made| &made.definition).collect();
            let answer = caller.call(0, "POST", "/v1/jobs:batch", Some(&json!({ "items": items })));
            let (status, said) = answer.expect("a node answers");
            let refused = said["items"].as_array().and_then(|items| items.iter().find(|item| !item["error"].is_null()));
            assert!(status < 300 && refused.is_none(), "the jobs are not taken: {status} {refused:?} {said:.300}");
        }
        load::anchored(&mut made, &caller.all("/v1/jobs?").expect("a node answers"));
        made
    }

    /// Faults and people, with some calm before and after.
    fn storm(
        &self,
        field: &Field,
        caller: &Caller,
        made: &[Made],
        from_us: i64,
    ) -> (Strikes, Vec<carillon_checker::Act>) {
        let definitions: Vec<Value> = made.iter().map(|made| made.definition.clone()).collect();
        wait_until_us(from_us + micros(CALM));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let people = scope.spawn(|| operators::act(caller, &definitions, Dice::new(self.seed ^ 0xbee), &over));
            let strikes = scope.spawn(|| faults::strike_all(field, &self.classes, self.seed, self.pace, &over));
            wait_until_us(from_us + micros(self.length.saturating_sub(CALM)));
            over.store(true, Ordering::Relaxed);
            (strikes.join().expect("the strikes end"), people.join().expect("people end"))
        })
    }

    /// Drains the nodes; how they ended, and what in their logs must not be there.
    fn take_down(&self, field: Field) -> (Vec<String>, Vec<String>) {
        let logs: Vec<PathBuf> =
            field.nodes.iter().map(|node| field.cluster.dir().join(node.name()).join(crate::server::LOG)).collect();
        let names: Vec<String> = field.nodes.iter().map(|node| node.name().to_owned()).collect();
        let mut bad = field.complaints();
        let Field { nodes, servers, cluster, .. } = field;
        let drained = nodes.into_iter().map(|target| target.member.drain()).collect();
        for (name, log) in names.iter().zip(logs) {
            let text = fs::read_to_string(&log).unwrap_or_default();
            bad.extend(
                text.lines()
                    .filter(|line| BAD.iter().any(|bad| line.contains(bad)))
                    .map(|line| format!("{name}: {line}")),
            );
            let _not_vital = fs::copy(&log, self.dir.join(format!("{name}.log")));
        }
        for (number, member) in servers.members().iter().enumerate() {
            let _not_vital = fs::write(self.dir.join(format!("server-{number}.log")), member.log());
        }
        drop((cluster, servers));
        (drained, bad)
    }
}

/// How the processes of the nodes ended so far.
fn ends(field: &Field) -> Vec<End> {
    let of = |target: &chaos::Target| {
        let name = target.name().to_owned();
        let ends = target.member.ends().into_iter();
        ends.map(move |(at, how)| End { node: name.clone(), at_us: now() - micros(at.elapsed()), how })
            .collect::<Vec<_>>()
    };
    field.nodes.iter().flat_map(of).collect()
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn wait_until_us(at_us: i64) {
    let left = Duration::from_micros(u64::try_from(at_us - now()).unwrap_or(0));
    wait_until_within(left + Duration::from_secs(1), "the clock goes on", || now() >= at_us);
}
