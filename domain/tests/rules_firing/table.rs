//! State x event: what each event does in each phase, as one table.

use carillon_domain::firing::{Event, Phase, Rejected, TransitionKind};
use carillon_domain::job::{OnLost, Overlap};
use carillon_domain::run::Status;

use super::desk::{Desk, at, ending, every, me, retrying};

/// A job due every 60 s in each of its phases, looked at in second 65.
fn in_phase(phase: &str) -> Desk {
    let mut desk = Desk::new(retrying(Overlap::Skip, 2, 30));
    match phase {
        "idle" => {}
        "prepared" => drop(desk.claim(60)),
        "prepared manual" => {
            desk.trigger(50).unwrap();
            desk.claim(50).unwrap();
        }
        "prepared retry" => {
            desk.run(60);
            desk.finish(61, Status::Failed).unwrap();
            desk.claim_ahead(64, 30).unwrap();
        }
        "executing" => drop(desk.run(60)),
        "executing deleted" => {
            desk.run(60);
            desk.delete(61).unwrap();
        }
        "paused" => drop(desk.pause(10, None)),
        "paused executing" => {
            desk.run(60);
            desk.pause(61, None).unwrap();
        }
        "completed" => {
            desk = Desk::new(carillon_domain::job::Job { end_at: Some(at(60)), ..every(60) });
            desk.run(60);
            desk.finish(61, Status::Succeeded).unwrap();
            assert!(desk.row().is_completed());
        }
        _ => unreachable!("{phase}"),
    }
    desk.records.clear();
    desk
}

/// What came of it: `why -> phase[, armed second]; records`, or the refusal.
fn told(desk: &Desk, answer: Result<TransitionKind, Rejected>) -> String {
    let kind = match answer {
        Ok(kind) => format!("{kind:?}"),
        Err(refused) => return format!("{refused:?}").split(['(', ' ']).next().unwrap().to_owned(),
    };
    let row = match &desk.state {
        None => "gone".to_owned(),
        Some(row) => match (row.phase, row.armed) {
            (Phase::Idle, Some(armed)) => format!("idle {}", armed.start_at.as_ms() / 1_000 - super::desk::ZERO),
            (phase, _) => phase.as_str().to_owned(),
        },
    };
    if desk.records.is_empty() {
        format!("{kind} -> {row}")
    } else {
        format!("{kind} -> {row}; {}", desk.history().join(", "))
    }
}

fn after(phase: &str, event: &str) -> String {
    let mut desk = in_phase(phase);
    let now = 65;
    desk.now = at(now);
    let drawn = desk.draw();
    let run = desk.row().phase.held().map_or(drawn, |held| held.run);
    let session = me();
    let finished = |status| Event::Finish { session, run, ending: ending(status, at(now)) };
    let answer = match event {
        "claim" => desk.claim(now),
        "start" => desk.apply(&Event::Start { session, run }),
        "succeed" => desk.apply(&finished(Status::Succeeded)),
        "fail" => desk.apply(&finished(Status::Failed)),
        "time out" => desk.apply(&finished(Status::TimedOut)),
        "end cancelled" => desk.apply(&finished(Status::Cancelled)),
        "reset" => desk.apply(&Event::Reset { session, run }),
        "sweep" => desk.sweep(now),
        "pause" => desk.pause(now, None),
        "resume" => desk.resume(now),
        "update" => desk.update(now, carillon_domain::job::Job { params: "new".into(), ..desk.job.clone() }),
        "retime" => desk.update(now, every(10)),
        "delete" => desk.delete(now),
        "trigger" => desk.trigger(now).map(|(kind, _)| kind),
        "cancel" => desk.cancel(now, run),
        _ => unreachable!("{event}"),
    };
    told(&desk, answer)
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
        let mut desk = Desk::new(carillon_domain::job::Job { on_lost, ..every(60) });
        desk.run(60);
        let answer = desk.sweep(65);
        assert_eq!(told(&desk, answer), expected, "{on_lost:?}");
    }
}
