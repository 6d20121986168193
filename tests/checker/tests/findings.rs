//! The checker can fail: for everything that it looks for, a world that has it, and that alone.

mod world;

use carillon_checker::alerts::{Alert, Delivery};
use carillon_checker::plan::Deed;
use carillon_checker::record::Record;
use carillon_checker::witness::Life;
use carillon_checker::{Evidence, Kind, judge};
use world::{Doctor, S, T, alert, ran, well};

/// The second run of `a` failed, and its route was told.
fn tell(w: &mut Evidence) {
    w.record("a-2-1").status = "failed".into();
    w.record("a-2-1").exit_code = Some(3);
    w.life("a-2-1").end = Some(3);
    let told = alert("failed", "open", "a-2-1");
    w.alerts.routes = [("of-a".to_owned(), "a".to_owned())].into();
    w.alerts.heard = vec![told.clone()];
    w.alerts.deliveries = vec![Delivery { alert: told, state: "sent".into() }];
    assert_eq!(judge(w).findings, []);
}

type Doctored = fn(&mut Evidence);

/// One way at least for each kind.
const DOCTORED: &[(&[Kind], &str, Doctored)] = &[
    (&[Kind::StartedTwice, Kind::NoRecord], "the firing starts again under another id, which nobody recorded", |w| {
        let (life, _) = ran("a", 2, 1);
        let (first_us, last_us) = (T + 2 * S + 500_000, T + 2 * S + 600_000);
        w.lives.push(Life { run: "again".into(), token: 250, first_us, last_us, ..life });
    }),
    (&[Kind::StartedTwice, Kind::RecordedTwice], "the firing starts again under another id, made good", |w| {
        let (life, record) = ran("a", 2, 1);
        let (first_us, last_us) = (T + 2 * S + 500_000, T + 2 * S + 600_000);
        w.lives.push(Life { run: "again".into(), token: 250, first_us, last_us, ..life });
        w.records.push(Record { id: "again".into(), trigger: "misfire".into(), ..record });
    }),
    (&[Kind::AlertLost], "nobody was told of a lost run", |w| {
        tell(w);
        w.alerts.heard.clear();
        w.alerts.deliveries[0].state = "dead".into();
    }),
    (&[Kind::AlertWithoutReason], "a run is told as failed that succeeded", |w| {
        tell(w);
        w.alerts.heard[0].run = Some("a-3-1".into());
        w.alerts.heard.push(Alert { id: "again".into(), ..alert("failed", "open", "a-2-1") });
    }),
    (&[Kind::AlertWithoutReason], "commits were lost, but not the message about a run that succeeded", |w| {
        tell(w);
        w.fault(None, T + 2 * S, T + 4 * S).loses_commits = true;
        w.alerts.heard[0].run = Some("a-3-1".into());
    }),
    (&[Kind::RecoveryWithoutAlert], "an end is told and no beginning", |w| {
        tell(w);
        w.alerts.deliveries[0].alert = alert("failed", "recovered", "a-3-1");
    }),
    (&[Kind::AlertDiffers], "a repeat has another content", |w| {
        tell(w);
        w.alerts.heard.push(Alert { content: "other".into(), ..w.alerts.heard[0].clone() });
    }),
    (&[Kind::TwoProcesses], "two start lines under one run id", |w| w.life("a-2-1").starts = 2),
    (&[Kind::TwoProcesses], "one run id with two tokens", |w| {
        let (life, _) = ran("b", 2, 1);
        let (first_us, last_us) = (T + 2 * S + 500_000, T + 2 * S + 600_000);
        w.lives.push(Life { token: 250, first_us, last_us, ..life });
    }),
    (&[Kind::AttemptNotAllowed], "a second attempt after a success", |w| w.also(ran("r", 2, 2))),
    (&[Kind::AttemptNotAllowed], "a second attempt of a job that has one", |w| {
        w.record("a-2-1").status = "failed".into();
        w.record("a-2-1").exit_code = Some(3);
        w.life("a-2-1").end = Some(3);
        w.also(ran("a", 2, 2));
    }),
    (&[Kind::AttemptNotAllowed], "a lost run starts again, which was not asked for", |w| {
        lose(w, "a-2-1");
        w.also(ran("a", 2, 2));
    }),
    (&[Kind::AttemptNotAllowed], "the third attempt without a second", |w| {
        w.record("r-2-1").status = "failed".into();
        w.record("r-2-1").exit_code = Some(3);
        w.life("r-2-1").end = Some(3);
        w.also(ran("r", 2, 3));
    }),
    (&[Kind::AttemptNotAllowed], "a second attempt after a success, and commits were lost", |w| {
        w.fault(None, T + 2 * S, T + 4 * S).loses_commits = true;
        w.also(ran("r", 2, 2));
    }),
    (&[Kind::AttemptNotAllowed], "a third attempt after a success, and commits were lost", |w| {
        w.fault(None, T + 2 * S, T + 4 * S).loses_commits = true;
        w.also(ran("r", 2, 3));
    }),
    (&[Kind::AttemptNotAllowed, Kind::SilentMiss], "a second attempt without a first, and nothing was lost", |w| {
        w.record("r-3-1").attempt = 2;
        w.life("r-3-1").attempt = 2;
    }),
    (&[Kind::Overlap], "a run lives on when the next one begins", |w| w.life("a-2-1").last_us += S),
    (&[Kind::Overlap], "a run lives on until the one after the next begins", |w| {
        w.life("a-2-1").last_us += 2 * S;
        w.skipped("a-3-1", "misfire");
    }),
    (&[Kind::Overlap], "a firing of a job that may overlap lives twice", |w| {
        w.record("b-2-1").status = "lost".into();
        w.end("n", T + 3 * S);
        w.plan.jobs[1].rerun = true;
        w.also(ran("b", 2, 2));
        w.life("b-2-1").last_us += 200_000;
    }),
    (&[Kind::SilentMiss], "a due time without a record", |w| {
        w.without_life("a-3-1");
        w.without_record("a-3-1");
    }),
    (&[Kind::SilentMiss], "the last due time of all", |w| {
        w.without_life("a-5-1");
        w.without_record("a-5-1");
    }),
    (&[Kind::RecordedTwice], "ran, and skipped too", |w| {
        let mut record = w.record("a-3-1").clone();
        record.id = "other".into();
        record.status = "skipped".into();
        record.reason = "misfire".into();
        record.started_us = None;
        w.records.push(record);
    }),
    (&[Kind::NotDue, Kind::WrongCount], "the first half of a second", |w| {
        let (life, record) = ran("a", 3, 1);
        let (due_us, run) = (T + 3 * S + 500_000, "half".to_owned());
        let (first_us, last_us, token) = (life.first_us + S / 2, life.last_us + S / 2, 350);
        w.lives.push(Life { run: run.clone(), due_us, first_us, last_us, token, ..life });
        w.records.push(Record { id: run, due_us, first_due_us: due_us, ..record });
    }),
    (&[Kind::WrongCount], "a stretch that says three and is two", |w| {
        w.skipped("a-4-1", "misfire");
        w.without_life("a-3-1");
        w.without_record("a-3-1");
        w.record("a-4-1").first_due_us = T + 3 * S;
        w.record("a-4-1").count = 3;
    }),
    (&[Kind::NoRecord], "a manual run that nobody recorded", |w| {
        let (life, _) = ran("b", 3, 1);
        w.lives.push(Life { run: "ghost".into(), due_us: T + 3 * S + 1, ..life });
    }),
    (&[Kind::RecordedAsUnstarted], "lived and recorded as skipped", |w| {
        let record = w.record("a-3-1");
        record.status = "skipped".into();
        record.reason = "misfire".into();
        record.started_us = None;
    }),
    (&[Kind::RecordedAsUnstarted], "lived and recorded as cancelled before its start", |w| {
        let record = w.record("a-3-1");
        record.status = "cancelled".into();
        record.started_us = None;
        w.act("a", Deed::Cancel, T + 3 * S, Some("a-3-1"));
    }),
    (&[Kind::OtherFiring], "the environment told another attempt", |w| w.life("a-3-1").attempt = 2),
    (&[Kind::NeverStarted], "succeeded without a life", |w| w.without_life("a-3-1")),
    (&[Kind::NeverStarted], "failed with an exit code without a life", |w| {
        w.without_life("a-3-1");
        w.record("a-3-1").status = "failed".into();
        w.record("a-3-1").exit_code = Some(3);
    }),
    (&[Kind::OtherEnd], "succeeded and never ended", |w| w.life("a-3-1").end = None),
    (&[Kind::OtherEnd], "succeeded and announced to fail", |w| w.life("a-3-1").end = Some(3)),
    (&[Kind::OtherEnd], "failed and announced to succeed", |w| {
        w.record("a-3-1").status = "failed".into();
        w.record("a-3-1").exit_code = Some(3);
    }),
    (&[Kind::UnexplainedFailure], "a signal that nobody sent", |w| {
        w.record("a-3-1").status = "failed".into();
        w.record("a-3-1").exit_code = None;
        w.life("a-3-1").end = None;
        w.fault(Some("other"), T, T + 9 * S).kills_runs = true;
    }),
    (&[Kind::UnexplainedLoss], "lost while its node lived", |w| {
        w.record("a-3-1").status = "lost".into();
        w.end("other", T + 3 * S);
    }),
    (&[Kind::UnexplainedLoss], "a command was not begun, as the lease was over, and nothing hindered its node", |w| {
        w.record("a-3-1").status = "lost".into();
        w.record("a-3-1").reason = "the node did not renew its lease in time".into();
        w.record("a-3-1").exit_code = None;
        w.lives.retain(|life| life.run != "a-3-1");
        w.fault(Some("other"), T + S, T + 3 * S);
    }),
    (&[Kind::UnexplainedLoss], "a command was killed, as the lease was over, and nothing hindered its node", |w| {
        w.record("a-3-1").status = "lost".into();
        w.record("a-3-1").reason = "the node did not renew its lease in time".into();
        w.record("a-3-1").exit_code = None;
        w.life("a-3-1").end = None;
        w.fault(Some("other"), T + S, T + 3 * S);
    }),
    (&[Kind::UnexplainedLoss], "a command came to its end, and is lost as the lease was over", |w| {
        w.record("a-3-1").status = "lost".into();
        w.record("a-3-1").reason = "the node did not renew its lease in time".into();
        w.record("a-3-1").exit_code = None;
        w.fault(Some("n"), T + S, T + 3 * S);
    }),
    (&[Kind::UnexplainedLoss], "given up although no commits were lost", |w| {
        w.skipped("a-3-1", "the database went back in time");
        w.record("a-3-1").status = "lost".into();
    }),
    (&[Kind::UnaskedCancel], "cancelled by nobody", |w| w.record("a-3-1").status = "cancelled".into()),
    (&[Kind::UnaskedCancel], "the call to cancel it was refused", |w| {
        w.record("a-3-1").status = "cancelled".into();
        w.act("a", Deed::Cancel, T + 3 * S, Some("a-3-1")).status = 404;
    }),
    (&[Kind::UnaskedRun], "one manual run more than was asked for", |w| {
        w.act("b", Deed::Trigger, T + 3 * S, Some("b-man"));
        for (run, more) in [("b-man", 1), ("b-more", 2)] {
            let (mut life, mut record) = ran("b", 3, 1);
            (life.run, record.id, record.trigger) = (run.into(), run.into(), "manual".into());
            (life.due_us, record.due_us) = (life.due_us + more, record.due_us + more);
            w.also((life, record));
        }
    }),
    (&[Kind::UnexplainedSkip], "an overlap with nothing", |w| w.skipped("a-3-1", "overlap")),
    (&[Kind::UnexplainedSkip], "a pause that nobody asked for", |w| {
        w.skipped("a-3-1", "paused");
        w.act("a", Deed::Pause, T + 9 * S, None);
    }),
    (&[Kind::UnexplainedSkip], "an update at another time", |w| {
        w.skipped("a-3-1", "updated");
        w.act("a", Deed::Update, T + 9 * S, None);
    }),
    (&[Kind::ForgottenRun], "a run was promised", |w| {
        w.act("a", Deed::Trigger, T + 3 * S, Some("promised"));
    }),
    (&[Kind::StartedWhilePaused], "a pause that did not hold", |w| {
        w.act("a", Deed::Pause, T + 3 * S - 100_000, None);
        w.act("a", Deed::Resume, T + 3 * S + 500_000, None);
    }),
    (&[Kind::StartedAfterDeletion], "a deletion that did not hold", |w| {
        w.act("a", Deed::Delete, T + 5 * S - 500_000, None);
    }),
    (&[Kind::StartedAfterDeletion], "a retry after a deletion", |w| {
        w.record("r-5-1").status = "failed".into();
        w.record("r-5-1").exit_code = Some(3);
        w.life("r-5-1").end = Some(3);
        let (mut life, mut record) = ran("r", 5, 2);
        (life.first_us, life.last_us) = (T + 6 * S, T + 6 * S + 100_000);
        (record.started_us, record.finished_us) = (Some(T + 6 * S), Some(T + 6 * S + 100_000));
        w.also((life, record));
        w.act("r", Deed::Delete, T + 5 * S + 500_000, None);
    }),
    (&[Kind::SilentMiss], "a due time before a deletion is forgotten", |w| {
        w.act("a", Deed::Delete, T + 7 * S, None);
        w.without_life("a-4-1");
        w.without_record("a-4-1");
    }),
    (&[Kind::SilentMiss], "the deletion was refused", |w| {
        w.act("a", Deed::Delete, T + 2 * S, None).status = 404;
        w.without_life("a-5-1");
        w.without_record("a-5-1");
    }),
    (&[Kind::UnexplainedSkip], "a deletion that nobody asked for", |w| w.skipped("a-3-1", "deleted")),
    (&[Kind::Early], "before its time", |w| w.life("a-3-1").first_us = T + 3 * S - 2_000),
    (&[Kind::TokenWentBack], "the token of the run before", |w| w.life("a-3-1").token = 201),
    (&[Kind::Torn], "half a line", |w| w.torn.push("a-3".into())),
    (&[Kind::UnknownJob], "a job of somebody else", |w| w.also(ran("z", 3, 1))),
    (&[Kind::Unsettled], "still running", |w| w.record("a-5-1").status = "running".into()),
];

/// The node died under the run.
fn lose(w: &mut Evidence, run: &str) {
    w.record(run).status = "lost".into();
    w.record(run).exit_code = None;
    w.life(run).end = None;
    w.end("n", T + 3 * S);
}

#[test]
fn whatever_is_wrong_is_found_and_nothing_else() {
    for (kinds, what, doctored) in DOCTORED {
        let mut world = well();
        doctored(&mut world);
        let found = judge(&world).findings;
        assert_eq!(found.iter().map(|one| one.kind).collect::<Vec<_>>(), *kinds, "{what}: {found:#?}");
    }
    let shown = |kind: &&Kind| DOCTORED.iter().any(|(known, ..)| known.contains(kind));
    let missing: Vec<_> = Kind::ALL.iter().filter(|kind| !shown(kind)).collect();
    assert_eq!(missing, Vec::<&Kind>::new(), "nobody has shown that these can be found");
}
