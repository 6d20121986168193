//! Why a due time ran, did not, or has not yet: a sentence for every way in which that can be.

mod pending;
mod recorded;

use carillon_domain::explain::{DueState, Explanation, Facts, LiveRun, Nodes, explain};
use carillon_domain::firing::{Firing, Held, JobState, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::run::{DueRange, Reason, RunRecord, Status};
use carillon_domain::schedule::Timeline;
use carillon_domain::time::Timestamp;

/// A time of the first day of 2027.
fn at(clock: &str) -> Timestamp {
    let seconds = if clock.len() == 5 { ":00" } else { "" };
    Timestamp::parse_rfc3339(&format!("2027-01-01T{clock}{seconds}Z")).unwrap()
}

fn session() -> SessionId {
    SessionId::from_random(1)
}

fn run(number: u64) -> RunId {
    RunId::drawn(session(), number)
}

/// An hourly job that was created at 00:30, and what is known of it.
struct World {
    job: Job,
    timeline: Timeline,
    state: JobState,
    now: Timestamp,
    node: Option<&'static str>,
    records: Vec<RunRecord>,
    live: Vec<LiveRun>,
    previous: Option<RunRecord>,
    nodes: Nodes,
    loss: Option<LossWindow>,
}

impl World {
    /// At `now` everything up to `cursor` is done, and the next due time is armed.
    fn new(now: &str, cursor: &str) -> Self {
        let job = Job::new(("default", "report"), "0 * * * *", "{}");
        let timeline = job.timeline(at("00:30")).unwrap();
        let new = JobState::new(JobId(1), &timeline, 1, at("00:30")).unwrap();
        let armed = timeline.next_after(at(cursor)).map(Firing::regular);
        let state = JobState { cursor: at(cursor), armed, ..new };
        Self {
            job,
            timeline,
            state,
            now: at(now),
            node: None,
            records: Vec::new(),
            live: Vec::new(),
            previous: None,
            nodes: Nodes { claiming: 2, has_executor: true, full: None },
            loss: None,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn why(&self, due: &str) -> Explanation {
        let facts = Facts {
            job: &self.job,
            timeline: &self.timeline,
            state: &self.state,
            created_at: at("00:30"),
            now: self.now,
            node: self.node,
            records: &self.records,
            live: &self.live,
            previous: self.previous.as_ref(),
            nodes: self.nodes,
            loss: self.loss,
        };
        explain(&facts, at(due))
    }

    #[track_caller]
    fn says(&self, due: &str, state: DueState, sentence: &str) {
        let why = self.why(due);
        assert_eq!((why.sentence.as_str(), why.state), (sentence, state));
        assert_eq!((why.due_at, why.next_due_at), (at(due), self.timeline.next_after(self.now)));
    }
}

fn held(due: &str, started: Option<&str>) -> Held {
    let firing = Firing::regular(at(due));
    Held { firing, run: run(1), session: session(), started_at: started.map(at), fencing_token: 1 }
}

fn executing(due: &str) -> impl FnOnce(&mut World) {
    let held = held(due, Some(due));
    move |world| (world.state.phase, world.state.armed) = (Phase::Executing(held), None)
}

/// A run of 02:00 that started then and ended 3 s later.
fn record(status: Status, reason: Option<Reason>) -> RunRecord {
    let due = at("02:00");
    let due_range = DueRange { count: 1, first: due, last: due };
    let skipped = RunRecord::skipped(JobId(1), due_range, Reason::Overlap, at("02:00:03"));
    RunRecord { id: run(7), status, reason, started_at: Some(due), lag_ms: Some(0), ..skipped }
}

fn unstarted(reason: Option<Reason>) -> RunRecord {
    let status =
        if matches!(reason, Some(Reason::Cancelled | Reason::Replaced)) { Status::Cancelled } else { Status::Skipped };
    RunRecord { started_at: None, lag_ms: None, ..record(status, reason) }
}

fn recorded(record: RunRecord) -> World {
    World::new("05:30", "05:00").with(|world| world.records = vec![record])
}
