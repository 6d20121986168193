//! Nodes on a database of their own, and jobs for them.

use std::time::Duration;

use carillon_domain::mechanism::Mechanism;
use carillon_tests::cluster::Cluster;
use carillon_tests::server::Server;
use carillon_tests::waiting::wait_until_within;
use serde_json::{Value, json};

use crate::http::Caller;
use crate::lab::{Lab, Scratch};
use crate::machine::now_ms;
use crate::records::span;

/// The longest that any load may take to end.
const PATIENCE: Duration = Duration::from_secs(180);
/// Items of one call.
const AT_ONCE: usize = 5_000;
/// A steady load comes in so many parts within a second, so that it comes due spread over each later second.
const PARTS: usize = 20;
/// How many jobs the API creates a second at the least, in the worst of times of a machine that others use as well.
const CREATED_A_SECOND: u64 = 2_500;

/// The command of the jobs of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// The plugin that does nothing.
    Noop,
    /// The plugin, saying when it began.
    NoopTime,
    /// The plugin, failing.
    Failing,
    /// `/bin/true`, without a shell.
    True,
    /// `true` in a shell.
    BashTrue,
    /// A shell that says when it began.
    BashTime,
}

impl Work {
    /// A job of it.
    pub fn job(self, name: &str, schedule: &str) -> Value {
        let (executor, params) = match self {
            Work::Noop => ("noop", json!({})),
            Work::NoopTime => ("noop", json!({"print": "time"})),
            Work::Failing => ("noop", json!({"fail": "on purpose"})),
            Work::True => ("shell", json!({"argv": ["/bin/true"]})),
            Work::BashTrue => ("shell", json!({"command": "true"})),
            Work::BashTime => ("shell", json!({"command": "echo $EPOCHREALTIME"})),
        };
        // A late firing runs all the same, one after another: a system that cannot keep up skips nothing.
        json!({"name": name, "schedule": schedule, "executor": executor, "params": params,
               "misfire": {"policy": "catch_up", "grace": "1h"}})
    }
}

/// How a node is configured; everything else is as it comes.
#[derive(Debug, Clone)]
pub struct Setting {
    /// `isolation` of `[plugins]`.
    pub isolation: &'static str,
    /// `max_in_flight` and `max_executing` of `[scheduler]`.
    pub limits: (usize, usize),
    /// `horizon` of `[scheduler]`.
    pub horizon: &'static str,
    /// `[session]`.
    pub session: &'static str,
    /// The mechanism that is switched off, if one is.
    pub without: Option<Mechanism>,
}

impl Default for Setting {
    fn default() -> Self {
        Self { isolation: "process", limits: (10_000, 1_000), horizon: "30s", session: "", without: None }
    }
}

impl Setting {
    fn text(&self, lab: &Lab) -> String {
        let Self { isolation, limits: (in_flight, executing), horizon, session, .. } = self;
        format!(
            "{session}[scheduler]\nhorizon = \"{horizon}\"\nmax_in_flight = {in_flight}\nmax_executing = {executing}\n\
             [history]\nkeep = \"36500d\"\nmax_runs_per_job = 10000000\n\
             [plugins]\ndir = \"{}\"\nisolation = \"{isolation}\"\n",
            lab.plugins.plugins().display()
        )
    }
}

/// Nodes on a database.
pub struct Site<'a> {
    /// Where they work; they end before the database does.
    pub nodes: Vec<Server>,
    cluster: Cluster,
    /// Their database.
    pub scratch: Scratch<'a>,
}

impl<'a> Site<'a> {
    /// One node.
    pub fn new(lab: &'a Lab, setting: &Setting) -> Self {
        Self::with_nodes(lab, setting, 1)
    }

    /// Several.
    pub fn with_nodes(lab: &'a Lab, setting: &Setting, count: usize) -> Self {
        let mut site = Self::empty(lab, setting);
        for _ in 0..count {
            site.start_node();
        }
        site
    }

    /// None yet.
    pub fn empty(lab: &'a Lab, setting: &Setting) -> Self {
        let scratch = lab.database();
        let cluster = Cluster::new(&scratch.url(), &setting.text(lab));
        let cluster = setting
            .without
            .iter()
            .fold(cluster, |cluster, mechanism| cluster.in_environment("CARILLON_WITHOUT_MECHANISM", mechanism.name()));
        Self { nodes: Vec::new(), cluster, scratch }
    }

    /// Starts one more node and waits until it is ready.
    pub fn start_node(&mut self) {
        let name = format!("node-{}", self.nodes.len() + 1);
        self.nodes.push(self.cluster.node(&name));
    }

    /// The first node.
    pub fn node(&self) -> &Server {
        &self.nodes[0]
    }

    /// The processes of all nodes.
    pub fn pids(&self) -> Vec<i32> {
        self.nodes.iter().map(Server::pid).collect()
    }

    /// Creates jobs, in batches; all must be accepted.
    pub fn create(&self, count: usize, item: impl Fn(usize) -> Value) {
        let items: Vec<Value> = (0..count).map(item).collect();
        let mut caller = Caller::of(self.node());
        for part in items.chunks(AT_ONCE) {
            let (status, body) = caller.call("POST", "/v1/jobs:batch", &json!({ "items": part }).to_string());
            assert!(
                status == 200 && !body.contains("\"status\":\"error\""),
                "a batch was refused: {status} {body:.500}"
            );
        }
    }

    /// Creates jobs that come due all at one instant, some time from now; answers it, in ms since 1970.
    pub fn shoot(&self, work: Work, count: usize, after: Duration, name: &str) -> i64 {
        let due_ms = (now_ms() + i64::try_from(after.as_millis()).unwrap_or(0)) / 1_000 * 1_000;
        let due = carillon_domain::time::Timestamp::from_ms(due_ms).to_rfc3339_short();
        self.create(count, |n| work.job(&format!("{name}-{n}"), &format!("@at {due}")));
        due_ms
    }

    /// Creates so many jobs that come due each second, spread over the second.
    pub fn spread(&self, work: Work, count: usize) {
        self.spread_of(count, |_| work);
    }

    /// The same where the work depends on the number of the job.
    pub fn spread_of(&self, count: usize, work: impl Fn(usize) -> Work) {
        let items: Vec<Value> = (0..count).map(|n| work(n).job(&format!("job-{n}"), "@every 1s")).collect();
        let (part, pause) = (count.div_ceil(PARTS), Duration::from_secs(1) / PARTS as u32);
        let mut caller = Caller::of(self.node());
        let began = std::time::Instant::now();
        for (number, items) in items.chunks(part).enumerate() {
            let body = json!({ "items": items }).to_string();
            // A part that took long leaves its turn to the same moment of a later second.
            let turn = pause * number as u32;
            let late = began.elapsed().saturating_sub(turn).as_secs_f64().ceil();
            pause_until(began + turn + Duration::from_secs_f64(late));
            let (status, body) = caller.call("POST", "/v1/jobs:batch", &body);
            assert!(
                status == 200 && !body.contains("\"status\":\"error\""),
                "a batch was refused: {status} {body:.500}"
            );
        }
    }

    /// How many runs have ended on all nodes.
    pub fn finished(&self) -> u64 {
        self.nodes.iter().map(|node| metric(node, "carillon_runs_finished_total")).sum()
    }

    /// Waits until so many runs have ended well, and that is recorded: a node counts them a little earlier.
    pub fn wait_for_finished(&self, count: usize) {
        let wait = |what: &str, done: &mut dyn FnMut() -> u64| {
            wait_until_within(PATIENCE, &format!("{count} runs {what}"), || {
                std::thread::park_timeout(Duration::from_millis(100));
                done() >= count as u64
            });
        };
        wait("have ended", &mut || self.finished());
        wait("are recorded as succeeded", &mut || span(&self.scratch).2);
    }
}

/// How long before they are due so many jobs are begun to be created.
pub fn time_to_create(count: usize) -> Duration {
    Duration::from_millis(2_000 + count as u64 * 1_000 / CREATED_A_SECOND)
}

/// A number of `/metrics`, all its labels together.
pub fn metric(node: &Server, name: &str) -> u64 {
    let text = node.call_raw("GET", "/metrics", &[], None).2;
    let of_name = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let is_name = rest.starts_with(['{', ' ']);
        is_name.then(|| rest.rsplit(' ').next()?.parse::<u64>().ok()).flatten()
    };
    text.lines().filter_map(of_name).sum()
}

/// Waits for a moment.
pub fn pause_until(moment: std::time::Instant) {
    loop {
        let left = moment.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(left);
    }
}
