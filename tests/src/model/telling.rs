//! What happens, in words for people: notes are taken only when a path is told.

use carillon_domain::firing::{Held, Phase};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::{RowKey, RunRef, Seen, StartAnswer};
use carillon_domain::node::{BeatAnswer, Effect, Input};

use super::calls::{Call, Outcome};
use super::world::{UTC0_MS, World};

/// Lines with their moments, if anybody wants them.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes(Option<Vec<String>>);

impl World {
    /// From now on notes are taken.
    pub(super) fn take_notes(&mut self) {
        self.notes = Notes(Some(Vec::new()));
    }

    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.notes.0 {
            lines.push(format!("{:>6} ms  {}", self.now, line()));
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

/// What a node asks for.
pub(super) fn call(call: &Call) -> String {
    let what = match &call.effect {
        Effect::Heartbeat { seq, .. } => format!("heartbeat {seq}"),
        Effect::Peek { .. } => "look".to_owned(),
        Effect::Claim { runs, only, .. } => {
            let theft = if only.is_some() { " from others" } else { "" };
            format!("claim{theft} as {}", runs.iter().map(|one| run(*one)).collect::<Vec<_>>().join(", "))
        }
        Effect::Start { runs, .. } => format!("start {}", refs(runs)),
        Effect::Settle(runs) => format!("settle {}", refs(runs)),
        Effect::Reset(runs) => format!("give back {}", refs(runs)),
        Effect::Finish { runs, .. } => format!("finish {}", refs(&runs.iter().map(|one| one.at).collect::<Vec<_>>())),
        Effect::ListHeld => "list what is mine".to_owned(),
        Effect::Expire { session: silent, seq } => format!("expire {} if at heartbeat {seq}", session(*silent)),
        Effect::Sweep { session: ended } => format!("sweep {}", session(*ended)),
        other => format!("{other:?}"),
    };
    format!("{}: {what}", session(call.session))
}

/// What the store answers.
pub(super) fn answer(outcome: &Outcome) -> String {
    let Outcome::Answered(input) = outcome else { return format!("{outcome:?}") };
    match input {
        Input::Beat { answer: Ok(BeatAnswer::Alive { window, .. }), .. } => {
            format!("alive{}", if window.is_some() { ", commits were lost" } else { "" })
        }
        Input::Beat { answer, .. } => format!("{answer:?}"),
        Input::Peeked(Ok(peek)) => format!(
            "mine {}, of others {}",
            if peek.earliest_claim_at.is_some() { "something" } else { "nothing" },
            peek.unclaimed.len()
        ),
        Input::Claimed(Ok(claimed)) => {
            format!("[{}]", claimed.iter().map(|one| held(&one.held)).collect::<Vec<_>>().join(", "))
        }
        Input::Started { answer: Ok(answers), .. } => answers.iter().map(start_answer).collect::<Vec<_>>().join(", "),
        Input::Settled(Ok(seen)) => seen.iter().map(seen_row).collect::<Vec<_>>().join(", "),
        Input::Held(Ok(rows)) => format!("[{}]", refs(rows)),
        Input::Reset(Ok(())) => "done".to_owned(),
        other => format!("{other:?}"),
    }
}

fn start_answer(answer: &StartAnswer) -> String {
    match answer {
        StartAnswer::Started { at, held, .. } => format!("{} started, now v{}", run(held.run), at.version % 1_000),
        other => format!("{other:?}"),
    }
}

fn seen_row(seen: &Seen) -> String {
    match seen {
        Seen::Prepared(claimed) => format!("{} is prepared", run(claimed.at.run)),
        Seen::Executing { held, withdrawn, .. } => {
            format!("{} executes{}", run(held.run), if *withdrawn { ", withdrawn" } else { "" })
        }
        Seen::Gone => "gone".to_owned(),
    }
}
