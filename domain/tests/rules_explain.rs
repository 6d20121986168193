//! Why a due time ran, did not, or has not yet: a sentence for every way in which that can be.

use std::time::Duration;

use carillon_domain::explain::{DueState, Explanation, Facts, LiveRun, Nodes, explain, latest_due};
use carillon_domain::firing::{Firing, Held, JobState, Pause, Phase, Waiting};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::{Job, MisfirePolicy, OnLost, Overlap};
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::run::{DueRange, Reason, RunRecord, Status, Trigger};
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

#[test]
fn a_run_that_ended_tells_how() {
    let said = Some(Reason::Said("it went\nwrong.".into()));
    for (record, sentence) in [
        (record(Status::Succeeded, None), "The firing of 02:00 started and succeeded after 3s."),
        (
            RunRecord { lag_ms: Some(40_200), ..record(Status::Succeeded, None) },
            "The firing of 02:00 started 40s late and succeeded after 3s.",
        ),
        (
            RunRecord { trigger: Trigger::Misfire, ..record(Status::Succeeded, None) },
            "The missed firing of 02:00 started and succeeded after 3s.",
        ),
        (
            RunRecord { trigger: Trigger::Manual, ..record(Status::Succeeded, None) },
            "The manual run of 02:00 started and succeeded after 3s.",
        ),
        (
            RunRecord { exit_code: Some(1), ..record(Status::Failed, None) },
            "The firing of 02:00 started and failed after 3s with exit code 1.",
        ),
        (
            RunRecord { signal: Some(9), ..record(Status::Failed, None) },
            "The firing of 02:00 started and failed after 3s by signal 9.",
        ),
        (record(Status::Failed, said.clone()), "The firing of 02:00 started and failed after 3s: it went wrong."),
        (record(Status::TimedOut, None), "The firing of 02:00 started and was ended after 3s, as its timeout passed."),
        (
            record(Status::Cancelled, Some(Reason::Cancelled)),
            "The firing of 02:00 started and was cancelled by a person after 3s.",
        ),
        (
            record(Status::Cancelled, Some(Reason::Replaced)),
            "The firing of 02:00 started and was ended after 3s: a newer firing took its place.",
        ),
    ] {
        let world = recorded(record);
        world.says("02:00", DueState::Ran, sentence);
        assert_eq!(world.why("02:00").run, Some(run(7)));
    }
    let timeout =
        recorded(record(Status::TimedOut, None)).with(|world| world.job.timeout = Some(Duration::from_secs(3)));
    timeout.says("02:00", DueState::Ran, "The firing of 02:00 started and was ended after 3s, as its timeout is 3s.");
}

#[test]
fn the_last_attempt_speaks_for_the_firing() {
    let second = RunRecord { attempt: 2, ..record(Status::Succeeded, None) };
    let retried = World::new("05:30", "05:00").with(|world| {
        world.job.retry.max_attempts = 3;
        world.records = vec![second, record(Status::Failed, None)];
    });
    let sentence = "The firing of 02:00 started and succeeded after 3s, in attempt 2 of 3.";
    retried.says("02:00", DueState::Ran, sentence);
}

#[test]
fn a_run_of_unknown_outcome_is_lost() {
    let never = "; it does not start again, as on_lost is skip.";
    let killed = Some(Reason::Said("the keeper died".into()));
    let forgotten = RunRecord { started_at: None, ..record(Status::Lost, Some(Reason::CommitsLost)) };
    for (record, sentence) in [
        (
            record(Status::Lost, Some(Reason::SessionEnded)),
            "The firing of 02:00 started at 02:00 and is lost: the session of its node ended before it told the outcome",
        ),
        (record(Status::Lost, killed), "The firing of 02:00 started at 02:00 and is lost: the keeper died"),
        (forgotten, "The firing of 02:00 may have run: the database went back in time and forgot it"),
        (
            RunRecord { started_at: None, ..record(Status::Lost, None) },
            "The firing of 02:00 is lost: the session of its node ended",
        ),
    ] {
        let rerun = recorded(record.clone()).with(|world| world.job.on_lost = OnLost::Rerun);
        rerun.says("02:00", DueState::Lost, &format!("{sentence}."));
        recorded(record).says("02:00", DueState::Lost, &format!("{sentence}{never}"));
    }
}

#[test]
fn every_reason_of_a_skipped_due_time_has_a_sentence() {
    for (reason, sentence) in [
        (Some(Reason::Overlap), "was skipped: the previous run was still alive"),
        (
            Some(Reason::Misfire),
            "was skipped: no node started it within its grace of 30s, and the misfire policy does not run it",
        ),
        (Some(Reason::Paused), "was skipped: the job was paused"),
        (Some(Reason::Updated), "was skipped: the job got a new definition before it started"),
        (Some(Reason::Deleted), "was skipped: the job was deleted before it started"),
        (Some(Reason::Replaced), "did not start: a newer firing took its place"),
        (Some(Reason::Cancelled), "did not start: a person cancelled it"),
        (Some(Reason::SessionEnded), "did not start: the session of its node ended"),
        (Some(Reason::CommitsLost), "may have run: the database went back in time and forgot it"),
        (Some(Reason::Said("no such program.".into())), "did not start: no such program"),
        (None, "did not start"),
    ] {
        recorded(unstarted(reason)).says("02:00", DueState::Skipped, &format!("The firing of 02:00 {sentence}."));
    }
}

#[test]
fn an_overlap_names_the_run_that_lived() {
    let first = RunRecord { due_at: at("01:00"), started_at: Some(at("01:00")), ..record(Status::Succeeded, None) };
    let overlap = recorded(unstarted(Some(Reason::Overlap))).with(|world| world.previous = Some(first.clone()));
    overlap.says("02:00", DueState::Skipped, "The firing of 02:00 was skipped: the run of 01:00 was still alive.");
    let by_hand = RunRecord { trigger: Trigger::Manual, due_at: at("01:50"), ..first.clone() };
    let overlap = recorded(unstarted(Some(Reason::Overlap))).with(|world| world.previous = Some(by_hand));
    let sentence = "The firing of 02:00 was skipped: the manual run of 01:50 was still alive.";
    overlap.says("02:00", DueState::Skipped, sentence);
    let over = RunRecord { finished_at: at("01:10"), ..first };
    let overlap = recorded(unstarted(Some(Reason::Overlap))).with(|world| world.previous = Some(over));
    overlap.says("02:00", DueState::Skipped, "The firing of 02:00 was skipped: the previous run was still alive.");
    let alive = recorded(unstarted(Some(Reason::Overlap))).with(executing("01:00"));
    alive.says("02:00", DueState::Skipped, "The firing of 02:00 was skipped: the run of 01:00 was still alive.");
}

#[test]
fn a_record_of_many_due_times_speaks_for_each() {
    let many =
        RunRecord { count: 3, first_due_at: at("02:00"), due_at: at("04:00"), ..unstarted(Some(Reason::Paused)) };
    let sentence = "The firing of 03:00 was skipped: the job was paused; so were all 3 due times from 02:00 to 04:00.";
    recorded(many).says("03:00", DueState::Skipped, sentence);
}

#[test]
fn a_run_that_executes_tells_since_when_and_where() {
    let live = |cancelling| LiveRun {
        run: run(3),
        trigger: Trigger::Schedule,
        attempt: 1,
        started_at: Some(at("02:00:01")),
        node: Some("n1".into()),
        cancelling,
    };
    for (cancelling, end) in [(false, "."), (true, ", and was asked to end.")] {
        let world = World::new("02:10", "02:00").with(|world| world.live = vec![live(cancelling)]);
        let sentence = format!("The firing of 02:00 has been running since 02:00:01 at node n1{end}");
        world.says("02:00", DueState::Running, &sentence);
        assert_eq!(world.why("02:00").run, Some(run(3)));
    }
    let again = LiveRun { attempt: 2, node: None, ..live(false) };
    let world = World::new("02:10", "02:00").with(|world| {
        world.job.retry.max_attempts = 3;
        (world.live, world.records) = (vec![again], vec![record(Status::Failed, None)]);
    });
    let sentence = "The firing of 02:00 has been running since 02:00:01, in attempt 2 of 3.";
    world.says("02:00", DueState::Running, sentence);
}

#[test]
fn a_run_that_was_asked_for_waits() {
    let waiting =
        LiveRun { run: run(3), trigger: Trigger::Manual, attempt: 1, started_at: None, node: None, cancelling: false };
    let world = |change: fn(&mut World)| {
        let live = waiting.clone();
        World::new("01:40", "01:00").with(|world| world.live = vec![live]).with(change)
    };
    world(|world| executing("01:00")(world)).says(
        "01:40",
        DueState::Waiting,
        "The manual run of 01:40 waits: the run of 01:00 is still alive.",
    );
    world(|world| world.live[0].node = Some("n2".into())).says(
        "01:40",
        DueState::Waiting,
        "The manual run of 01:40 is claimed by node n2, which is about to start it.",
    );
    world(|world| world.nodes.claiming = 0).says(
        "01:40",
        DueState::Waiting,
        "The manual run of 01:40 waits: no node claims firings now.",
    );
}

#[test]
fn a_retry_tells_when_it_starts() {
    let retry = Firing::regular(at("02:00")).next_attempt(at("02:00:13"));
    let sentence = "of 02:00 is tried again: attempt 1 did not succeed, and attempt 2 of 3 starts at 02:00:13.";
    let world = |change: &dyn Fn(&mut World)| {
        World::new("02:00:05", "02:00").with(|world| {
            world.job.retry.max_attempts = 3;
            world.records = vec![record(Status::Failed, None)];
            change(world);
        })
    };
    let armed = world(&|world| world.state.armed = Some(retry));
    armed.says("02:00", DueState::Waiting, &format!("The firing {sentence}"));
    let claimed = world(&|world| world.state.phase = Phase::Prepared(Held { firing: retry, ..held("02:00", None) }));
    claimed.says("02:00", DueState::Waiting, &format!("The firing {sentence}"));
    let by_hand = Firing::manual(at("02:00")).next_attempt(at("02:00:13"));
    let manual = world(&|world| world.state.manual = Some(Waiting { run: None, firing: by_hand }));
    manual.says("02:00", DueState::Waiting, &format!("The manual run {sentence}"));
}

#[test]
fn a_time_that_is_not_due_has_neighbours() {
    let not_due = |world: &World, due, sentence: &str| world.says(due, DueState::NotDue, sentence);
    let hourly = World::new("03:30", "03:00");
    not_due(&hourly, "02:10", "02:10 is not a due time of this schedule: the nearest ones are 02:00 and 03:00.");
    not_due(&hourly, "00:00", "The job did not exist at 00:00: it was created at 00:30.");
    let changed = World::new("03:30", "03:00").with(|world| world.state.anchor_at = at("02:30"));
    not_due(&changed, "02:00", "The schedule of the job was another one at 02:00: it was changed at 02:30.");
    let bounded = |start: Option<&str>, end: Option<&str>| {
        World::new("03:30", "03:00").with(|world| {
            (world.timeline.start_at, world.timeline.end_at) = (start.map(at), end.map(at));
            world.state.armed = None;
        })
    };
    not_due(
        &bounded(Some("02:00"), None),
        "01:00",
        "01:00 is not a due time of this schedule: its first one is 02:00.",
    );
    not_due(&bounded(None, Some("03:00")), "04:00", "04:00 is not a due time of this schedule: its last one is 03:00.");
    let none = bounded(Some("02:10"), Some("02:20"));
    not_due(&none, "04:00", "04:00 is not a due time of this schedule: it has none.");
}

#[test]
fn a_due_time_that_comes_tells_in_how_long() {
    let world = World::new("03:30", "03:00");
    world.says("04:00", DueState::Upcoming, "The firing of 04:00 comes up in 30m.");
    let claimed = World::new("03:59:50", "03:00").with(|world| {
        (world.state.phase, world.state.armed) = (Phase::Prepared(held("04:00", None)), None);
        world.node = Some("n1");
    });
    claimed.says("04:00", DueState::Waiting, "The firing of 04:00 is claimed by node n1, which starts it at 04:00.");
    let nobody = claimed.with(|world| world.node = None);
    nobody.says("04:00", DueState::Waiting, "The firing of 04:00 is claimed by a node, which starts it at 04:00.");
    let late = nobody.with(|world| world.now = at("04:00:07"));
    let sentence = "The firing of 04:00 is claimed by a node, which has not started it yet, 7s after its time.";
    late.says("04:00", DueState::Waiting, sentence);
}

#[test]
fn a_pause_holds_up_what_passed_and_what_comes() {
    let paused = |until: Option<&str>, reason: Option<&str>| {
        let pause = Pause { since: at("02:30"), until: until.map(at), reason: reason.map(str::to_owned) };
        World::new("03:30", "02:00").with(|world| world.state.pause = Some(pause))
    };
    let forever = paused(None, None);
    let sentence = "The firing of 03:00 does not run: the job has been paused since 02:30.";
    forever.says("03:00", DueState::Paused, sentence);
    let sentence = "The firing of 04:00 will not run: the job has been paused since 02:30.";
    forever.says("04:00", DueState::Paused, sentence);
    let until = paused(Some("04:30"), Some("the disk is full."));
    let sentence =
        "The firing of 04:00 will not run: the job has been paused since 02:30 until 04:30 (the disk is full).";
    until.says("04:00", DueState::Paused, sentence);
    until.says("05:00", DueState::Upcoming, "The firing of 05:00 comes up in 1h30m.");
    until.says(
        "02:00",
        DueState::Unrecorded,
        "The firing of 02:00 has no record: it is older than the history that is kept, or its records were lost.",
    );
}

#[test]
fn the_overlap_policy_tells_of_what_comes_while_a_run_lives() {
    let alive = |due: &str, then: &str| {
        format!("The firing of {due} does not start yet: the run of 01:00 is still alive, and {then}.")
    };
    let skipped = "it is recorded as skipped when that ends";
    for (overlap, due, then) in [
        (Overlap::Skip, "02:00", skipped),
        (Overlap::Delay, "02:00", "it starts when that ends"),
        (Overlap::Delay, "03:00", skipped),
        (Overlap::Replace, "02:00", skipped),
        (Overlap::Replace, "03:00", "it starts when that has ended, which was asked to"),
        (Overlap::Allow, "02:00", "it starts when that ends, as the runs of a backlog go one by one"),
    ] {
        let world = World::new("03:30", "01:00").with(executing("01:00")).with(|world| world.job.overlap = overlap);
        world.says(due, DueState::Waiting, &alive(due, then));
    }
    let retry = Firing::regular(at("01:00")).next_attempt(at("03:31"));
    let backoff = World::new("03:30", "01:00").with(|world| world.state.armed = Some(retry));
    backoff.says("02:00", DueState::Waiting, &alive("02:00", skipped));
}

#[test]
fn a_backlog_goes_in_turn() {
    let backlog = |change: &dyn Fn(&mut World)| {
        World::new("05:30", "05:00").with(|world| {
            world.state.armed = Some(Firing::misfired(at("02:00")));
            world.state.catch_up_until = Some(at("05:00"));
            change(world);
        })
    };
    let sentence = "The firing of 04:00 waits its turn in the backlog: the run of 02:00 goes first.";
    backlog(&|_| ()).says("04:00", DueState::Waiting, sentence);
    let sentence = "The firing of 04:00 waits its turn in the backlog: the run of 02:00 is still alive.";
    backlog(&|world| executing("02:00")(world)).says("04:00", DueState::Waiting, sentence);
}

#[test]
fn a_firing_that_nobody_claims_tells_what_stands_in_its_way() {
    let due = |change: &dyn Fn(&mut World)| World::new("02:00:05", "01:00").with(|world| change(world));
    let says = |world: World, rest: &str| {
        world.says("02:00", DueState::Waiting, &format!("The firing of 02:00 {rest}."));
    };
    says(due(&|_| ()), "is due, and a node is about to claim it; it has waited for 5s");
    says(due(&|world| world.nodes.claiming = 0), "waits: no node claims firings now");
    let no_executor = "waits: the node that was asked has no executor shell";
    says(due(&|world| world.nodes.has_executor = false), no_executor);
    let full = "waits: its node executes 4 runs, and at most 4 at once are allowed";
    says(due(&|world| world.nodes.full = Some((4, 4))), full);
    let window = LossWindow { from_at: at("01:50"), until_at: at("01:55"), noticed_at: at("01:55") };
    let lost = "waits: the database went back in time, as was noticed at 01:55, and nothing starts before a person \
                accepts that with carillon cluster accept";
    says(due(&|world| world.loss = Some(window)), lost);
    let prepared = Phase::Prepared(held("02:00", None));
    says(due(&|world| (world.loss, world.state.phase) = (Some(window), prepared)), lost);
    for (policy, then) in [
        (MisfirePolicy::Skip, "records it as skipped"),
        (MisfirePolicy::FireOnce, "runs the latest such due time once"),
        (MisfirePolicy::CatchUp, "runs each such due time in turn"),
    ] {
        let missed = "was missed: no node has claimed it for 1m, its grace is 30s, and the misfire policy";
        says(due(&|world| (world.now, world.job.misfire.policy) = (at("02:01"), policy)), &format!("{missed} {then}"));
    }
}

#[test]
fn without_a_time_the_latest_that_passed_is_meant() {
    let latest = |now, anchor| {
        let world = World::new(now, "00:30").with(|world| world.state.anchor_at = at(anchor));
        latest_due(&world.timeline, &world.state, world.now)
    };
    assert_eq!(latest("02:30", "00:30"), Some(at("02:00")));
    assert_eq!(latest("00:40", "00:30"), Some(at("01:00")), "none has passed, so the first is meant");
    assert_eq!(latest("02:30", "02:20"), Some(at("03:00")), "earlier ones were not of this schedule");
}
