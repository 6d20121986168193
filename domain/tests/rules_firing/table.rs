//! Every event in every phase, as one table.

use carillon_domain::firing::{Event, Phase, Rejected, TransitionKind};
use carillon_domain::job::{OnLost, Overlap};
use carillon_domain::run::Status;

use super::fixture::{JobFixture, at, ending, every, me, retrying};

/// A job that is due every 60 s, in one of its phases. The event comes in second 65.
fn in_phase(phase: &str) -> JobFixture {
    let mut fixture = JobFixture::new(retrying(Overlap::Skip, 2, 30));
    match phase {
        "idle" => {}
        "prepared" => drop(fixture.claim(60)),
        "prepared manual" => {
            fixture.trigger(50).unwrap();
            fixture.claim(50).unwrap();
        }
        "prepared retry" => {
            fixture.run(60);
            fixture.finish(61, Status::Failed).unwrap();
            fixture.claim_ahead(64, 30).unwrap();
        }
        "executing" => drop(fixture.run(60)),
        "executing deleted" => {
            fixture.run(60);
            fixture.delete(61).unwrap();
        }
        "paused" => drop(fixture.pause(10, None)),
        "paused executing" => {
            fixture.run(60);
            fixture.pause(61, None).unwrap();
        }
        "completed" => {
            fixture = JobFixture::new(carillon_domain::job::Job { end_at: Some(at(60)), ..every(60) });
            fixture.run(60);
            fixture.finish(61, Status::Succeeded).unwrap();
            assert!(fixture.row().is_completed());
        }
        _ => unreachable!("{phase}"),
    }
    fixture.records.clear();
    fixture
}

/// The result: `kind -> phase[ armed second]; records`, or the rejection.
fn outcome(fixture: &JobFixture, answer: Result<TransitionKind, Rejected>) -> String {
    let kind = match answer {
        Ok(kind) => format!("{kind:?}"),
        Err(refused) => return format!("{refused:?}").split(['(', ' ']).next().unwrap().to_owned(),
    };
    let row = match &fixture.state {
        None => "gone".to_owned(),
        Some(row) => match (row.phase, row.armed) {
            (Phase::Idle, Some(armed)) => format!("idle {}", armed.start_at.as_ms() / 1_000 - super::fixture::ZERO),
            (phase, _) => phase.as_str().to_owned(),
        },
    };
    if fixture.records.is_empty() {
        format!("{kind} -> {row}")
    } else {
        format!("{kind} -> {row}; {}", fixture.history().join(", "))
    }
}

fn after(phase: &str, event: &str) -> String {
    let mut fixture = in_phase(phase);
    let now = 65;
    fixture.now = at(now);
    let drawn = fixture.draw();
    let run = fixture.row().phase.held().map_or(drawn, |held| held.run);
    let session = me();
    let finished = |status| Event::Finish { session, run, ending: ending(status, at(now)) };
    let answer = match event {
        "claim" => fixture.claim(now),
        "start" => fixture.apply(&Event::Start { session, run }),
        "succeed" => fixture.apply(&finished(Status::Succeeded)),
        "fail" => fixture.apply(&finished(Status::Failed)),
        "time out" => fixture.apply(&finished(Status::TimedOut)),
        "end cancelled" => fixture.apply(&finished(Status::Cancelled)),
        "reset" => fixture.apply(&Event::Reset { session, run }),
        "sweep" => fixture.sweep(now),
        "pause" => fixture.pause(now, None),
        "resume" => fixture.resume(now),
        "update" => fixture.update(now, carillon_domain::job::Job { params: "new".into(), ..fixture.job.clone() }),
        "retime" => fixture.update(now, every(10)),
        "delete" => fixture.delete(now),
        "trigger" => fixture.trigger(now).map(|(kind, _)| kind),
        "cancel" => fixture.cancel(now, run),
        _ => unreachable!("{event}"),
    };
    outcome(&fixture, answer)
}

#[test]
fn every_event_in_every_phase() {
    let table = include_str!("table.txt");
    let (mut phase, mut rows, mut wrong) = ("", 0, Vec::new());
    for line in table.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("  ") {
            None => phase = line,
            Some(row) => {
                let (event, expected) = row.split_once(": ").unwrap();
                let found = after(phase, event);
                rows += 1;
                if found != expected {
                    wrong.push(format!("{phase} + {event}\n  expected {expected}\n  found    {found}"));
                }
            }
        }
    }
    assert_eq!(rows, 9 * 15, "each of nine phases meets each of fifteen events");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_lost_run_follows_on_lost() {
    for (on_lost, expected) in [
        (OnLost::Skip, "SweptLost -> idle 120; schedule 60 lost(the node's session ended while it ran)"),
        (OnLost::Rerun, "SweptLost -> idle 65; schedule 60 lost(the node's session ended while it ran)"),
    ] {
        let mut fixture = JobFixture::new(carillon_domain::job::Job { on_lost, ..every(60) });
        fixture.run(60);
        let answer = fixture.sweep(65);
        assert_eq!(outcome(&fixture, answer), expected, "{on_lost:?}");
    }
}
