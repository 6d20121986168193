//! Due times without a record, and times at which the job is not due.

use carillon_domain::explain::{DueState, LiveRun, latest_due};
use carillon_domain::firing::{Firing, Held, Pause, Phase, Waiting};
use carillon_domain::job::{MisfirePolicy, Overlap};
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::run::{Status, Trigger};

use super::{World, at, executing, held, record, run};

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
    world(|world| {
        executing("01:00")(world);
        world.job.overlap = Overlap::Allow;
    })
    .says(
        "01:40",
        DueState::Waiting,
        "The manual run of 01:40 is due, and a node is about to claim it; it has waited for 0 ms.",
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
    world.says("04:00", DueState::Upcoming, "The firing of 04:00 comes up in 30 min.");
    let claimed = World::new("03:59:50", "03:00").with(|world| {
        (world.state.phase, world.state.armed) = (Phase::Prepared(held("04:00", None)), None);
        world.node = Some("n1");
    });
    claimed.says("04:00", DueState::Waiting, "The firing of 04:00 is claimed by node n1, which starts it at 04:00.");
    let nobody = claimed.with(|world| world.node = None);
    nobody.says("04:00", DueState::Waiting, "The firing of 04:00 is claimed by a node, which starts it at 04:00.");
    let late = nobody.with(|world| world.now = at("04:00:07"));
    let sentence = "The firing of 04:00 is claimed by a node, which has not started it yet, 7 s after its time.";
    late.says("04:00", DueState::Waiting, sentence);
    let now = late.with(|world| world.now = at("04:00"));
    now.says("04:00", DueState::Waiting, &sentence.replace("7 s", "0 ms"));
    let due = World::new("04:00", "03:00");
    let sentence = "The firing of 04:00 is due, and a node is about to claim it; it has waited for 0 ms.";
    due.says("04:00", DueState::Waiting, sentence);
}

/// Its start may have moved since, with another jitter or schedule.
#[test]
fn a_firing_in_the_row_is_known_whatever_the_schedule_says() {
    let moved = World::new("02:05", "02:00").with(|world| {
        (world.state.phase, world.state.armed) = (Phase::Prepared(held("02:10", None)), None);
    });
    moved.says("02:10", DueState::Waiting, "The firing of 02:10 is claimed by a node, which starts it at 02:10.");
    let armed = World::new("02:05", "02:00").with(|world| world.state.armed = Some(Firing::regular(at("02:10"))));
    armed.says("02:10", DueState::Upcoming, "The firing of 02:10 comes up in 5 min.");
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
    let now = paused(None, None).with(|world| world.now = at("04:00"));
    now.says("04:00", DueState::Paused, &sentence.replace("will not", "does not"));
    let until = paused(Some("04:30"), Some("the disk is full."));
    let sentence =
        "The firing of 04:00 will not run: the job has been paused since 02:30 until 04:30 (the disk is full).";
    until.says("04:00", DueState::Paused, sentence);
    until.says("05:00", DueState::Upcoming, "The firing of 05:00 comes up in 1 h 30 min.");
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
    let sentence = "The firing of 05:00 waits its turn in the backlog: the run of 02:00 goes first.";
    backlog(&|_| ()).says("05:00", DueState::Waiting, sentence);
    let missed = |due: &str, waited: &str| {
        format!(
            "The firing of {due} was missed: no node has claimed it for {waited}, its grace is 30 s, and the misfire \
             policy runs the latest such due time once."
        )
    };
    backlog(&|_| ()).says("02:00", DueState::Waiting, &missed("02:00", "3 h 30 min"));
    let short = backlog(&|world| world.state.catch_up_until = Some(at("03:00")));
    let sentence = "it is older than the history that is kept, or its records were lost.";
    short.says("04:00", DueState::Unrecorded, &format!("The firing of 04:00 has no record: {sentence}"));
    let none = backlog(&|world| (world.state.catch_up_until, world.state.cursor) = (None, at("02:00")));
    none.says("03:00", DueState::Waiting, &missed("03:00", "2 h 30 min"));
}

#[test]
fn a_firing_that_nobody_claims_tells_what_stands_in_its_way() {
    let due = |change: &dyn Fn(&mut World)| World::new("02:00:05", "01:00").with(|world| change(world));
    let says = |world: World, rest: &str| {
        world.says("02:00", DueState::Waiting, &format!("The firing of 02:00 {rest}."));
    };
    says(due(&|_| ()), "is due, and a node is about to claim it; it has waited for 5 s");
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
        let missed = "was missed: no node has claimed it for 1 min, its grace is 30 s, and the misfire policy";
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
    assert_eq!(latest("02:30", "02:00"), Some(at("03:00")), "a schedule begins after its change");
    assert_eq!(latest("02:30", "02:20"), Some(at("03:00")), "earlier ones were not of this schedule");
}
