//! Due times that have a record.

use std::time::Duration;

use carillon_domain::explain::DueState;
use carillon_domain::job::OnLost;
use carillon_domain::run::{Reason, RunRecord, Status, Trigger};

use super::{World, at, executing, record, recorded, run, unstarted};

#[test]
fn a_run_that_ended_tells_how() {
    let said = Some(Reason::Said("it went\nwrong.".into()));
    for (record, sentence) in [
        (record(Status::Succeeded, None), "The firing of 02:00 started and succeeded after 3 s."),
        (
            RunRecord { lag_ms: Some(40_200), ..record(Status::Succeeded, None) },
            "The firing of 02:00 started 40.2 s late and succeeded after 3 s.",
        ),
        (
            RunRecord { lag_ms: Some(1_000), ..record(Status::Succeeded, None) },
            "The firing of 02:00 started and succeeded after 3 s.",
        ),
        (
            RunRecord { trigger: Trigger::Misfire, ..record(Status::Succeeded, None) },
            "The missed firing of 02:00 started and succeeded after 3 s.",
        ),
        (
            RunRecord { trigger: Trigger::Manual, ..record(Status::Succeeded, None) },
            "The manual run of 02:00 started and succeeded after 3 s.",
        ),
        (
            RunRecord { exit_code: Some(1), ..record(Status::Failed, None) },
            "The firing of 02:00 started and failed after 3 s with exit code 1.",
        ),
        (
            RunRecord { signal: Some(9), ..record(Status::Failed, None) },
            "The firing of 02:00 started and failed after 3 s by signal 9.",
        ),
        (record(Status::Failed, said.clone()), "The firing of 02:00 started and failed after 3 s: it went wrong."),
        (record(Status::TimedOut, None), "The firing of 02:00 started and was ended after 3 s, as its timeout passed."),
        (
            record(Status::Cancelled, Some(Reason::Cancelled)),
            "The firing of 02:00 started and was cancelled by a person after 3 s.",
        ),
        (
            record(Status::Cancelled, Some(Reason::Replaced)),
            "The firing of 02:00 started and was ended after 3 s: a newer firing took its place.",
        ),
    ] {
        let world = recorded(record);
        world.says("02:00", DueState::Ran, sentence);
        assert_eq!(world.why("02:00").run, Some(run(7)));
    }
    let timeout =
        recorded(record(Status::TimedOut, None)).with(|world| world.job.timeout = Some(Duration::from_secs(3)));
    timeout.says("02:00", DueState::Ran, "The firing of 02:00 started and was ended after 3 s, as its timeout is 3 s.");
}

#[test]
fn the_last_attempt_speaks_for_the_firing() {
    let second = RunRecord { attempt: 2, ..record(Status::Succeeded, None) };
    let retried = World::new("05:30", "05:00").with(|world| {
        world.job.retry.max_attempts = 3;
        world.records = vec![second, record(Status::Failed, None)];
    });
    let sentence = "The firing of 02:00 started and succeeded after 3 s, in attempt 2 of 3.";
    retried.says("02:00", DueState::Ran, sentence);
}

#[test]
fn the_run_of_the_schedule_speaks_before_a_manual_one() {
    let manual = RunRecord { trigger: Trigger::Manual, attempt: 2, ..record(Status::Succeeded, None) };
    let failed = RunRecord { signal: Some(9), ..record(Status::Failed, None) };
    let both = recorded(manual).with(|world| world.records.push(failed));
    both.says("02:00", DueState::Ran, "The firing of 02:00 started and failed after 3 s by signal 9.");
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
            "was skipped: no node started it within its grace of 30 s, and the misfire policy does not run it",
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
    let unknown = "The firing of 02:00 was skipped: the previous run was still alive.";
    let same = RunRecord { due_at: at("02:00"), finished_at: at("02:10"), ..record(Status::Succeeded, None) };
    let overlap = recorded(unstarted(Some(Reason::Overlap))).with(|world| world.previous = Some(same));
    overlap.says("02:00", DueState::Skipped, unknown);
    let itself = recorded(unstarted(Some(Reason::Overlap))).with(executing("02:00"));
    itself.says("02:00", DueState::Skipped, unknown);
    let alive = recorded(unstarted(Some(Reason::Overlap))).with(executing("01:00"));
    alive.says("02:00", DueState::Skipped, "The firing of 02:00 was skipped: the run of 01:00 was still alive.");
}

#[test]
fn a_record_of_many_due_times_speaks_for_each() {
    let many =
        RunRecord { count: 3, first_due_at: at("02:00"), due_at: at("04:00"), ..unstarted(Some(Reason::Paused)) };
    let sentence = "The firing of 03:00 was skipped: the job was paused; so were all 3 due times from 02:00 to 04:00.";
    recorded(many.clone()).says("03:00", DueState::Skipped, sentence);
    let between = "03:10 is not a due time of this schedule: the nearest ones are 03:00 and 04:00.";
    recorded(many.clone()).says("03:10", DueState::NotDue, between);
    let odd = RunRecord { first_due_at: at("02:10"), due_at: at("04:10"), ..many.clone() };
    for due in ["02:10", "04:10"] {
        let sentence = format!(
            "The firing of {due} was skipped: the job was paused; so were all 3 due times from 02:10 to 04:10."
        );
        recorded(odd.clone()).says(due, DueState::Skipped, &sentence);
    }
    let retimed = recorded(many).with(|world| world.state.anchor_at = at("04:30"));
    let sentence = sentence.replace("of 03:00", "of 03:10");
    retimed.says("03:10", DueState::Skipped, &sentence);
}
