//! Events in words for people: notes are taken only when a path is told.

use carillon_domain::firing::{Held, Phase};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::call::{self, Answer, BeatAnswer, CallFailure};
use carillon_domain::node::port::{RowKey, RunRef, SettleAnswer, StartAnswer};

use super::calls::Call;
use super::state::{State, UTC0_MS};

/// Lines with their moments, if anybody wants them.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes(Option<Vec<String>>);

impl State {
    /// From now on notes are taken.
    pub(super) fn take_notes(&mut self) {
        self.notes = Notes(Some(Vec::new()));
    }

    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.notes.0 {
            lines.push(format!("{:>6} ms  {}", self.world.now_us / 1_000, line()));
        }
    }

    /// How every row stands, if notes are taken.
    pub(super) fn note_rows(&mut self) {
        let row = |(key, phase, version): (RowKey, &Phase, u64)| {
            let held = phase.held().map(held).unwrap_or_default();
            format!("{}: {} {held} v{}", row_name(key), phase.as_str(), version % 1_000)
        };
        if self.notes.0.is_some() {
            let rows: Vec<String> = self.store.rows().map(row).collect();
            self.note(|| format!("  [{}]", rows.join("; ")));
        }
    }

    pub(super) fn into_notes(self) -> Vec<String> {
        self.notes.0.unwrap_or_default()
    }
}

pub(super) fn session(session: SessionId) -> String {
    format!("node {}", session.as_u64() & !(1 << 63))
}

pub(super) fn run(run: RunId) -> String {
    let (of, number) = run.parts();
    format!("run {number} of {:x}", of & !(1 << 63))
}

pub(super) fn held(held: &Held) -> String {
    let due_ms = held.firing.due_at.as_ms() - UTC0_MS;
    format!("{} (due at {due_ms} ms, attempt {})", run(held.run), held.firing.attempt)
}

fn row_name(key: RowKey) -> String {
    match key {
        RowKey::Job(id) => format!("job {id}"),
        RowKey::Concurrent(key) => format!("beside job {} (due at {} ms)", key.job, key.due_at.as_ms() - UTC0_MS),
    }
}

fn refs(refs: &[RunRef]) -> String {
    refs.iter().map(|at| format!("{} v{}", run(at.run), at.version % 1_000)).collect::<Vec<_>>().join(", ")
}

/// A call of a node.
pub(super) fn call(call: &Call) -> String {
    let what = match &call.call {
        call::Call::Heartbeat { seq, .. } => format!("heartbeat {seq}"),
        call::Call::Peek(_) => "peek".to_owned(),
        call::Call::Claim(request) => {
            let runs: Vec<String> = request.runs.iter().map(|one| run(*one)).collect();
            format!("claim in {:?} as {}", request.partitions, runs.join(", "))
        }
        call::Call::Start { runs, .. } => format!("start {}", refs(runs)),
        call::Call::Settle { runs, .. } => format!("settle {}", refs(runs)),
        call::Call::Release { runs, .. } => format!("release {}", refs(runs)),
        call::Call::Finish { runs, .. } => {
            format!("finish {}", refs(&runs.iter().map(|one| one.at).collect::<Vec<_>>()))
        }
        call::Call::WriteBack(request) => {
            let runs: Vec<_> = request.runs.iter().map(|known| known.at).collect();
            format!("write back {}{}", refs(&runs), if request.last { ", which is all" } else { "" })
        }
        call::Call::ListHeld { .. } => "list what is mine".to_owned(),
        call::Call::Expire { session: silent, seq, .. } => {
            format!("expire {} if at heartbeat {seq}", session(*silent))
        }
        call::Call::Sweep { session: ended, .. } => format!("sweep {}", session(*ended)),
        call::Call::Close { .. } => "close".to_owned(),
    };
    format!("{}: {what}", session(call.session))
}

/// An answer of the store.
pub(super) fn answer(answer: &Result<Answer, CallFailure>) -> String {
    match answer {
        Ok(Answer::Heartbeat(BeatAnswer::Alive { window, .. })) => {
            format!("alive{}", if window.is_some() { ", commits were lost" } else { "" })
        }
        Ok(Answer::Peek(peek)) => format!(
            "mine {}, of others {}",
            if peek.earliest_claim_at.is_some() { "something" } else { "nothing" },
            peek.unclaimed.len()
        ),
        Ok(Answer::Claim(claimed)) => {
            format!("[{}]", claimed.iter().map(|one| held(&one.held)).collect::<Vec<_>>().join(", "))
        }
        Ok(Answer::Start(answers)) => answers.iter().map(start_answer).collect::<Vec<_>>().join(", "),
        Ok(Answer::Settle(answers)) => answers.iter().map(settle_answer).collect::<Vec<_>>().join(", "),
        Ok(Answer::Held(rows)) => format!("[{}]", refs(rows)),
        Ok(other) => format!("{other:?}"),
        Err(failure) => format!("{failure:?}"),
    }
}

fn start_answer(answer: &StartAnswer) -> String {
    match answer {
        StartAnswer::Started { at, held, .. } => format!("{} started, now v{}", run(held.run), at.version % 1_000),
        other => format!("{other:?}"),
    }
}

fn settle_answer(answer: &SettleAnswer) -> String {
    match answer {
        SettleAnswer::Prepared(claimed) => format!("{} is prepared", run(claimed.at.run)),
        SettleAnswer::Executing { held, withdrawn, .. } => {
            format!("{} executes{}", run(held.run), if *withdrawn { ", withdrawn" } else { "" })
        }
        SettleAnswer::Gone => "gone".to_owned(),
    }
}
