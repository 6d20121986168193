//! Every predicate of the invariants with cases that hold and cases that do not.

use carillon_domain::alert::{Delivery, DeliveryState, Notice, NoticeId, Route, Selection, State, Target, When, watch};
use carillon_domain::firing::{Firing, FiringKey, Held, JobState, Pause, Phase, TransitionKind};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::invariants::{
    Invariant, Verdict, all_idle, child_has_its_row, dead_before_sweep, has_arrived, is_told, never_decreases,
    not_live_yet, nothing_overdue, nothing_wedged, one_live_run, prepared_is_kept, recorded_once, recoveries_follow,
    row_goes_forward, starts_in_time, starts_once, starts_where_allowed, starts_within_lease, told_once,
    told_with_reason,
};
use carillon_domain::job::{Job, OnLost, Retry};
use carillon_domain::lease::Timing;
use carillon_domain::node::call::{Answer, CallKind};
use carillon_domain::node::port::{RowKey, RunRef};
use carillon_domain::node::{Config, Effect, Input, Node};
use carillon_domain::run::{DueRange, Reason, RunRecord, Status, Trigger};
use carillon_domain::time::{BootTime, Timestamp};

const JOB: JobId = JobId(1);

fn session(n: u64) -> SessionId {
    SessionId::from_random(n)
}

fn run(n: u64) -> RunId {
    RunId::drawn(session(1), n)
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

fn held(n: u64) -> Held {
    let firing = Firing::regular(at(60));
    Held { firing, run: run(n), session: session(1), started_at: None, fencing_token: 0 }
}

fn job() -> Job {
    Job::new(("default", "job"), "@every 60s", "{}")
}

fn state() -> JobState {
    JobState::new(JOB, &job().timeline(at(0)).unwrap(), 1_000, at(0)).unwrap()
}

#[track_caller]
fn violates(invariant: Invariant, verdict: Verdict) {
    let violation = verdict.expect_err("a violation");
    assert_eq!(violation.invariant, invariant);
    assert!(violation.to_string().starts_with(&format!("{invariant:?}: ")), "{violation}");
}

#[test]
fn s1_one_live_run() {
    let two = [(JOB, run(1)), (JOB, run(2))];
    assert_eq!(one_live_run([(JOB, run(1)), (JobId(2), run(2))], |_| false), Ok(()));
    assert_eq!(one_live_run(two, |_| true), Ok(()));
    violates(Invariant::S1, one_live_run(two, |_| false));
    assert_eq!(not_live_yet(run(1), false), Ok(()));
    violates(Invariant::S1, not_live_yet(run(1), true));
}

#[test]
fn s2_a_firing_starts_once() {
    let key = FiringKey { job: JOB, due_at: at(60), trigger: Trigger::Schedule };
    assert_eq!(starts_once(&job(), [(key, 1), (FiringKey { due_at: at(120), ..key }, 1)]), Ok(()));
    violates(Invariant::S2, starts_once(&job(), [(key, 1), (key, 1)]));
    violates(Invariant::S2, starts_once(&job(), [(key, 1), (key, 2)]));
    let rerun = Job { on_lost: OnLost::Rerun, ..job() };
    assert_eq!(starts_once(&rerun, [(key, 1), (key, 2)]), Ok(()));
    violates(Invariant::S2, starts_once(&rerun, [(key, 2), (key, 2)]));
    let retry = Job { retry: Retry { max_attempts: 2, ..Retry::default() }, ..job() };
    assert_eq!(starts_once(&retry, [(key, 1), (key, 2)]), Ok(()));
}

#[test]
fn s3_a_child_has_its_row() {
    assert_eq!(child_has_its_row(session(1), run(1), Some(&Phase::Executing(held(1)))), Ok(()));
    for row in [None, Some(&Phase::Idle), Some(&Phase::Prepared(held(1))), Some(&Phase::Executing(held(2)))] {
        violates(Invariant::S3, child_has_its_row(session(1), run(1), row));
    }
    violates(Invariant::S3, child_has_its_row(session(2), run(1), Some(&Phase::Executing(held(1)))));
}

#[test]
fn s4_a_prepared_firing_is_kept() {
    let before = Phase::Prepared(held(1));
    assert_eq!(prepared_is_kept(&before, Some(&before), TransitionKind::Resumed), Ok(()));
    assert_eq!(prepared_is_kept(&before, Some(&Phase::Idle), TransitionKind::Paused), Ok(()));
    assert_eq!(prepared_is_kept(&before, None, TransitionKind::Deleted), Ok(()));
    assert_eq!(prepared_is_kept(&Phase::Idle, Some(&before), TransitionKind::Claimed), Ok(()));
    violates(Invariant::S4, prepared_is_kept(&before, Some(&Phase::Prepared(held(2))), TransitionKind::Claimed));
    violates(Invariant::S4, prepared_is_kept(&before, Some(&Phase::Idle), TransitionKind::Resumed));
    let by_its_holder = [
        TransitionKind::Started,
        TransitionKind::StartedConcurrently,
        TransitionKind::Misfired,
        TransitionKind::Deferred,
        TransitionKind::Reset,
    ];
    let by_a_call = [
        TransitionKind::Paused,
        TransitionKind::Updated,
        TransitionKind::Deleted,
        TransitionKind::CancelledUnstarted,
        TransitionKind::Triggered,
    ];
    let may: Vec<TransitionKind> = by_its_holder
        .into_iter()
        .chain(by_a_call)
        .chain([TransitionKind::SweptUnstarted, TransitionKind::WrittenBack, TransitionKind::WrittenBackBeside])
        .collect();
    for kind in TransitionKind::ALL {
        assert_eq!(prepared_is_kept(&before, Some(&Phase::Idle), kind).is_ok(), may.contains(&kind), "{kind:?}");
        assert_eq!(prepared_is_kept(&before, Some(&before), kind), Ok(()), "{kind:?}");
    }
}

#[test]
fn s5_no_run_starts_after_a_pause_or_a_deletion() {
    let pause = |until| Some(Pause { since: at(1), until, reason: None });
    let paused = JobState { pause: pause(None), ..state() };
    assert_eq!(starts_where_allowed(&state(), Trigger::Schedule, at(60)), Ok(()));
    assert_eq!(starts_where_allowed(&paused, Trigger::Manual, at(60)), Ok(()));
    violates(Invariant::S5, starts_where_allowed(&paused, Trigger::Schedule, at(60)));
    let lapsed = JobState { pause: pause(Some(at(60))), ..state() };
    assert_eq!(starts_where_allowed(&lapsed, Trigger::Schedule, at(60)), Ok(()));
    violates(Invariant::S5, starts_where_allowed(&lapsed, Trigger::Misfire, at(59)));
    violates(Invariant::S5, starts_where_allowed(&JobState { deleted: true, ..state() }, Trigger::Manual, at(60)));
}

#[test]
fn s6_one_record_per_run() {
    let due_range = |count, first, last| DueRange { count, first: at(first), last: at(last) };
    let skipped = |due_range| RunRecord::skipped(JOB, due_range, Reason::Overlap, at(999));
    let (one, many) = (skipped(due_range(1, 60, 60)), skipped(due_range(3, 120, 240)));
    assert_eq!(recorded_once([&one, &many]), Ok(()));
    violates(Invariant::S6, recorded_once([&one, &one]));
    let same_firing = RunRecord { id: run(9), ..one.clone() };
    violates(Invariant::S6, recorded_once([&one, &same_firing]));
    violates(Invariant::S6, recorded_once([&skipped(due_range(1, 60, 120))]));
    violates(Invariant::S6, recorded_once([&skipped(due_range(0, 60, 60))]));
    violates(Invariant::S6, recorded_once([&skipped(due_range(0, 60, 120))]));
    violates(Invariant::S6, recorded_once([&skipped(due_range(2, 60, 60))]));
    let of_status = |status, due_range| RunRecord { status, ..skipped(due_range) };
    assert_eq!(recorded_once([&of_status(Status::Lost, due_range(2, 60, 120))]), Ok(()));
    assert_eq!(recorded_once([&of_status(Status::Succeeded, due_range(1, 60, 60))]), Ok(()));
    violates(Invariant::S6, recorded_once([&of_status(Status::Succeeded, due_range(2, 60, 120))]));
    violates(Invariant::S6, recorded_once([&of_status(Status::Running, due_range(1, 60, 60))]));
    let other_firings = [
        RunRecord { id: run(1), due_at: at(61), first_due_at: at(61), ..one.clone() },
        RunRecord { id: run(2), trigger: Trigger::Manual, ..one.clone() },
        RunRecord { id: run(3), attempt: 2, ..one.clone() },
        RunRecord { id: run(4), job: JobId(2), ..one.clone() },
    ];
    assert_eq!(recorded_once(other_firings.iter().chain([&one])), Ok(()));
}

#[test]
fn s7_counters_never_decrease() {
    let before = state();
    let after = JobState { version: before.version + 1, ..before.clone() };
    assert_eq!(row_goes_forward(&before, &after), Ok(()));
    violates(Invariant::S7, row_goes_forward(&before, &before));
    violates(Invariant::S7, row_goes_forward(&before, &JobState { generation: 0, ..after.clone() }));
    violates(Invariant::S7, row_goes_forward(&before, &JobState { cursor: at(-1), ..after.clone() }));
    let beyond = Held { fencing_token: 9_999, ..held(1) };
    violates(Invariant::S7, row_goes_forward(&before, &JobState { phase: Phase::Executing(beyond), ..after.clone() }));
    let newest = Held { fencing_token: after.version, ..held(1) };
    assert_eq!(row_goes_forward(&before, &JobState { phase: Phase::Executing(newest), ..after }), Ok(()));
    assert_eq!(never_decreases("the epoch", 3, 3), Ok(()));
    violates(Invariant::S7, never_decreases("the epoch", 3, 2));
}

#[test]
fn s8_a_node_past_its_lease_is_dead() {
    let ms = BootTime::from_ms;
    assert_eq!(starts_within_lease(ms(10), ms(9)), Ok(()));
    violates(Invariant::S8, starts_within_lease(ms(10), ms(10)));
    assert_eq!(dead_before_sweep(session(1), [(session(2), run(1))]), Ok(()));
    violates(Invariant::S8, dead_before_sweep(session(1), [(session(1), run(1))]));
}

/// A message about the incident `thread`, as far as the predicates look at it.
fn notice(id: u128, state: State, thread: u128) -> Notice {
    let to = vec![Target::Slack { url: "https://hooks.slack.com/x".into() }];
    let (name, when, only) = ("ops".into(), [When::Failed].into(), Selection::default());
    let route = Route { name, when, only, after: 1, repeat: None, to };
    Notice { id: NoticeId(id), state, thread: NoticeId(thread), ..watch::test(&route, at(1)) }
}

#[test]
fn s9_an_alert_has_one_reason_and_one_end() {
    use State::{Open, Recovered};
    let open = notice(1, Open, 7);
    assert_eq!(told_with_reason(&open, true), Ok(()));
    violates(Invariant::S9, told_with_reason(&open, false));
    assert_eq!(told_once(&"a failure", 1), Ok(()));
    violates(Invariant::S9, told_once(&"a failure", 2));

    let (again, over) = (notice(2, Open, 7), notice(3, Recovered, 7));
    assert_eq!(recoveries_follow([&open, &again, &over]), Ok(()));
    for wrong in [
        vec![over.clone()],
        vec![over.clone(), open.clone()],
        vec![open.clone(), notice(3, Recovered, 8)],
        vec![open.clone(), over.clone(), notice(4, Recovered, 7)],
        vec![open.clone(), open.clone()],
    ] {
        violates(Invariant::S9, recoveries_follow(&wrong));
    }
    let storm = Notice { folded: 30, ..notice(5, Open, 9) };
    assert_eq!(recoveries_follow([&storm, &over]), Ok(()), "it may have been among the many");
    violates(Invariant::S9, recoveries_follow([&over, &storm]));
}

#[test]
fn l3_each_fact_reaches_its_receivers() {
    assert_eq!(is_told(&"a failure", true), Ok(()));
    violates(Invariant::L3, is_told(&"a failure", false));
    let [sent, dead] = [DeliveryState::Sent { at: at(1) }, DeliveryState::Dead { at: at(1) }];
    assert_eq!(has_arrived(1, sent, 2, 0), Ok(()));
    assert_eq!(has_arrived(1, dead, 0, Delivery::MOST_REFUSALS), Ok(()));
    violates(Invariant::L3, has_arrived(1, sent, 0, Delivery::MOST_REFUSALS));
    violates(Invariant::L3, has_arrived(1, dead, 1, Delivery::MOST_REFUSALS - 1));
    violates(Invariant::L3, has_arrived(1, DeliveryState::Waiting { next_at: at(1) }, 1, Delivery::MOST_REFUSALS));
}

#[test]
fn l1_every_row_returns_to_idle() {
    assert_eq!(all_idle([&Phase::Idle, &Phase::Idle]), Ok(()));
    violates(Invariant::L1, all_idle([&Phase::Idle, &Phase::Prepared(held(1))]));
}

#[test]
fn l2_no_run_is_stuck_in_a_node() {
    let now = BootTime::from_ms(0);
    let mut node = Node::new(config(), session(1), at(0), now);
    assert_eq!(nothing_wedged(&node), Ok(()));
    let stray = RunRef { row: RowKey::Job(JOB), run: run(1), version: 7 };
    node.handle(Input::Tick, now);
    answer(&mut node, CallKind::ListHeld, Answer::Held(vec![stray]));
    violates(Invariant::L2, nothing_wedged(&node));
    answer(&mut node, CallKind::Release, Answer::Released);
    assert_eq!(nothing_wedged(&node), Ok(()));
}

/// Answers the call of a kind that was sent last.
fn answer(node: &mut Node, kind: CallKind, answer: Answer) {
    let mut sent = None;
    while let Some(effect) = node.poll() {
        if let Effect::Call { id, call } = effect {
            sent = (call.kind() == kind).then_some(id).or(sent);
        }
    }
    let id = sent.expect("a call of this kind is in flight");
    node.handle(Input::Answered { id, answer: Ok(answer) }, BootTime::from_ms(0));
}

fn config() -> Config {
    let secs = std::time::Duration::from_secs;
    Config {
        timing: Timing::default(),
        self_kill: true,
        partitions: 1,
        horizon: secs(30),
        max_in_flight: 10,
        max_executing: 10,
        max_batch: 10,
        peek_every: secs(1),
        peek_every_at_rest: secs(1),
        steal_after: secs(5),
        recover_every: secs(10),
        remembered_ends: 10,
        flow: carillon_domain::node::FlowKind::Tuned,
        drain_timeout: secs(60),
    }
}

#[test]
fn s5_a_run_starts_in_time() {
    let (job, regular) = (job(), Firing::regular(at(60)));
    let grace = job.misfire.grace;
    assert_eq!(starts_in_time(&job, &regular, at(60)), Ok(()));
    assert_eq!(starts_in_time(&job, &regular, at(60) + grace), Ok(()));
    assert_eq!(starts_in_time(&job, &Firing::misfired(at(60)), at(600)), Ok(()), "a misfire run is exempt");
    violates(Invariant::S5, starts_in_time(&job, &regular, at(59)));
    violates(Invariant::S5, starts_in_time(&job, &regular, at(600)));
}

#[test]
fn l1_no_row_is_overdue() {
    let patience = std::time::Duration::from_secs(10);
    let held = JobState { phase: Phase::Prepared(held(1)), ..state() };
    assert_eq!(nothing_overdue([&state(), &held], patience, at(70)), Ok(()));
    assert_eq!(nothing_overdue([&held], patience, at(71)), Ok(()), "a session holds it");
    violates(Invariant::L1, nothing_overdue([&state()], patience, at(71)));
}
