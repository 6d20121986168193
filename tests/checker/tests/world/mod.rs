//! A small world in which all is well, and how it is doctored.

use carillon_checker::alerts::Alert;
use carillon_checker::fault::{End, Fault};
use carillon_checker::plan::{Act, Deed, Job, Overlap, Plan};
use carillon_checker::record::Record;
use carillon_checker::witness::Life;
use carillon_checker::{Evidence, judge};

/// Where time begins.
pub const T: i64 = 1_800_000_000_000_000;
/// A second.
pub const S: i64 = 1_000_000;

/// Jobs `a` (may not overlap), `b` (may, and replaces nothing), `r` (replace, three attempts), `l` (runs again when lost) come due
/// each second from T + 1 s to T + 5 s, and all of it ran.
pub fn well() -> Evidence {
    let job = |name: &str| Job::every(name, 1, T, (T + S, T + 5 * S));
    let jobs = vec![
        job("a"),
        Job { overlap: Overlap::Allow, ..job("b") },
        Job { overlap: Overlap::Replace, max_attempts: 3, ..job("r") },
        Job { rerun: true, ..job("l") },
    ];
    let mut world = Evidence { plan: Plan { jobs, acts: Vec::new() }, ..Evidence::default() };
    for job in ["a", "b", "r", "l"] {
        for n in 1..=5 {
            let (life, record) = ran(job, n, 1);
            world.lives.push(life);
            world.records.push(record);
        }
    }
    assert_eq!(judge(&world).findings, []);
    world
}

/// A message to the route of job `a`.
pub fn alert(when: &str, state: &str, run: &str) -> Alert {
    let [id, route, when, state, content] = ["m", "of-a", when, state, "text"].map(str::to_owned);
    Alert { id, route, when, state, run: Some(run.to_owned()), content }
}

/// A run of the firing T + `n` s that lived from 10 ms to 110 ms after its time, for each attempt before it 200 ms later.
pub fn ran(job: &str, n: i64, attempt: u64) -> (Life, Record) {
    let due_us = T + n * S;
    let first_us = due_us + 10_000 + 200_000 * (i64::try_from(attempt).unwrap() - 1);
    let run = format!("{job}-{n}-{attempt}");
    let life = Life {
        run: run.clone(),
        job: job.to_owned(),
        due_us,
        attempt,
        token: u64::try_from(n).unwrap() * 100 + attempt,
        starts: 1,
        first_us,
        last_us: first_us + 100_000,
        end: Some(0),
    };
    let record = Record {
        id: run,
        job: job.to_owned(),
        due_us,
        first_due_us: due_us,
        count: 1,
        attempt,
        trigger: "schedule".to_owned(),
        status: "succeeded".to_owned(),
        reason: String::new(),
        exit_code: Some(0),
        started_us: Some(first_us - 5_000),
        finished_us: Some(first_us + 105_000),
        lag_ms: Some(5),
        node: Some("n".to_owned()),
        session: Some("s".to_owned()),
    };
    (life, record)
}

/// How the world is doctored. Each test crate uses its part.
#[allow(dead_code)]
pub trait Doctor {
    fn life(&mut self, run: &str) -> &mut Life;
    fn record(&mut self, run: &str) -> &mut Record;
    fn without_life(&mut self, run: &str);
    fn without_record(&mut self, run: &str);
    fn also(&mut self, run: (Life, Record));
    fn act(&mut self, job: &str, deed: Deed, at_us: i64, run: Option<&str>) -> &mut Act;
    fn end(&mut self, node: &str, at_us: i64);
    fn fault(&mut self, node: Option<&str>, from_us: i64, until_us: i64) -> &mut Fault;
    fn skipped(&mut self, run: &str, reason: &str);
}

impl Doctor for Evidence {
    fn life(&mut self, run: &str) -> &mut Life {
        self.lives.iter_mut().find(|life| life.run == run).expect("a life")
    }

    fn record(&mut self, run: &str) -> &mut Record {
        self.records.iter_mut().find(|record| record.id == run).expect("a record")
    }

    fn without_life(&mut self, run: &str) {
        self.lives.retain(|life| life.run != run);
    }

    fn without_record(&mut self, run: &str) {
        self.records.retain(|record| record.id != run);
    }

    fn also(&mut self, (life, record): (Life, Record)) {
        self.lives.push(life);
        self.records.push(record);
    }

    fn act(&mut self, job: &str, deed: Deed, at_us: i64, run: Option<&str>) -> &mut Act {
        let run = run.map(str::to_owned);
        let answered_us = Some(at_us + 1_000);
        self.plan.acts.push(Act { job: job.to_owned(), deed, run, asked_us: at_us, answered_us, status: 200 });
        self.plan.acts.last_mut().unwrap()
    }

    fn end(&mut self, node: &str, at_us: i64) {
        self.ends.push(End { node: node.to_owned(), at_us, how: "signal: 9 (SIGKILL)".to_owned() });
    }

    fn fault(&mut self, node: Option<&str>, from_us: i64, until_us: i64) -> &mut Fault {
        let (class, node) = ("test".to_owned(), node.map(str::to_owned));
        let fault =
            Fault { class, node, from_us, until_us, kills_runs: false, moves_clock: false, loses_commits: false };
        self.faults.push(fault);
        self.faults.last_mut().unwrap()
    }

    /// The run never was; its due time was skipped.
    fn skipped(&mut self, run: &str, reason: &str) {
        self.without_life(run);
        let record = self.record(run);
        let skipped = Record {
            status: "skipped".to_owned(),
            reason: reason.to_owned(),
            started_us: None,
            exit_code: None,
            node: None,
            session: None,
            ..record.clone()
        };
        *record = skipped;
    }
}
