//! Calls to a store in memory: they are answered at once, and its content shows what each has written.

use std::sync::Arc;

use carillon_domain::firing::Phase;
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::invariants::{self as must, Invariant, Verdict, Violation};
use carillon_domain::node::call::{Answer, Call, CallFailure};
use carillon_domain::node::port::RowKey;
use carillon_domain::time::Timestamp;
use carillon_doubles::innodb::{self, Commit};
use carillon_doubles::{Backup, MemoryStore};
use carillon_store::tables::at_once;
use carillon_store::{SessionState, perform};

use super::{World, Writer};

impl<Own> World<Own> {
    /// A call of a node reaches the store, whose content is `before`; also answers the content after it.
    pub fn perform(
        &mut self,
        (store, before): (&MemoryStore, &Backup),
        session: SessionId,
        call: &Call,
        now: Timestamp,
    ) -> (Result<Answer, CallFailure>, Backup) {
        let writer = match call {
            Call::Start { .. } => Writer { call: "start", of: Some(session) },
            Call::Release { .. } => Writer { call: "release", of: Some(session) },
            Call::Sweep { session, .. } => Writer { call: "sweep", of: Some(*session) },
            Call::WriteBack(_) => Writer { call: "write_back", of: None },
            Call::Claim(_) => Writer { call: "claim", of: Some(session) },
            _ => Writer { call: "", of: Some(session) },
        };
        if let Call::Sweep { session, .. } = call {
            let verdict = self.none_lives(*session);
            self.must(verdict);
        }
        let answer = at_once(perform(store, call)).map_err(CallFailure::from);
        let after = store.back_up();
        self.wrote(before, &after, writer, now);
        (answer, after)
    }

    /// Judges what a call has written, from the content before it and after it.
    pub fn wrote(&mut self, before: &Backup, after: &Backup, writer: Writer, now: Timestamp) {
        self.committed(&difference(before, after, writer.call, now), writer);
        let verdict = sequences_go_forward(before, after)
            .and_then(|()| sets_are_locked(before, after, writer))
            .and_then(|()| recorded_once(after));
        self.must(verdict);
    }

    /// S3 of every child of a process that is awake and whose session the others let live.
    pub fn children_have_rows(&self, store: &Backup) -> Verdict {
        if self.excused.children {
            return Ok(());
        }
        for process in self.processes.iter().filter(|process| process.is_awake(self.now_us)) {
            let session = process.session;
            if process.children.is_empty() || !lives(store, session) {
                continue;
            }
            for run in process.children.keys() {
                let carries = |phase: &&Phase| phase.held().is_some_and(|held| held.run == *run);
                let row = store.rows().map(|(_, phase, _)| phase).find(carries);
                must::child_has_its_row(session, *run, row)?;
            }
        }
        Ok(())
    }
}

/// A row before and after.
type Change<'a, T> = (Option<&'a T>, Option<&'a T>);

/// The rows that a call has written, as a commit.
fn difference(before: &Backup, after: &Backup, by: &'static str, now: Timestamp) -> Commit {
    let own = before.jobs().map(|row| (Some(row), after.job(row.id)));
    let own = own.chain(after.jobs().filter(|row| before.job(row.id).is_none()).map(|row| (None, Some(row))));
    let find = |store, key| Backup::concurrent(store).find(move |row| row.key == key);
    let beside = before.concurrent().map(|row| (Some(row), find(after, row.key)));
    let new = after.concurrent().filter(|row| find(before, row.key).is_none());
    let beside = beside.chain(new.map(|row| (None, Some(row))));
    let ended = before.sessions().map(|beat| beat.id).filter(|id| lives(before, *id) && !lives(after, *id));
    Commit {
        by,
        now,
        jobs: changed(own),
        concurrent: changed(beside),
        defined: Vec::new(),
        deleted: Vec::new(),
        records: Vec::new(),
        ended: ended.collect(),
        judged: Vec::new(),
    }
}

fn changed<'a, T: PartialEq + Clone + 'a>(rows: impl Iterator<Item = Change<'a, T>>) -> Vec<innodb::Change<T>> {
    let kept = |row: Option<&T>| row.cloned().map(Arc::new);
    rows.filter(|(before, after)| before != after).map(|(before, after)| (kept(before), kept(after))).collect()
}

/// Whether the others let a session live.
fn lives(store: &Backup, id: SessionId) -> bool {
    store.sessions().any(|beat| beat.id == id && beat.state != SessionState::Ended)
}

/// The job whose row, or whose row beside, that is.
pub fn job_of(key: &RowKey) -> JobId {
    match key {
        RowKey::Job(id) => *id,
        RowKey::Concurrent(key) => key.job,
    }
}

fn sequences_go_forward(before: &Backup, after: &Backup) -> Verdict {
    for beat in before.sessions() {
        if let Some(now) = after.sessions().find(|now| now.id == beat.id) {
            must::never_decreases("a heartbeat's sequence", beat.seq, now.seq)?;
            let revived = beat.state == SessionState::Ended && now.state != SessionState::Ended;
            must::never_decreases("the life of a session that was ended", revived, false)?;
        }
    }
    Ok(())
}

/// S7 of the locks: what changes a set of rows has moved the epoch of each of their partitions on.
fn sets_are_locked(before: &Backup, after: &Backup, writer: Writer) -> Verdict {
    for (partition, (epoch, now)) in before.epochs().iter().zip(after.epochs()).enumerate() {
        must::never_decreases("a lock's epoch", epoch, now)?;
        let here = |key: &RowKey| before.partition(job_of(key)).map(usize::from) == Some(partition);
        let changed = || after.rows().any(|row| here(&row.0) && !before.rows().any(|known| known == row));
        if matches!(writer.call, "claim" | "sweep") && epoch == now && changed() {
            return broken(Invariant::S7, format!("rows of partition {partition} were written without its lock"));
        }
    }
    Ok(())
}

fn recorded_once(after: &Backup) -> Verdict {
    must::recorded_once(after.records())?;
    match after.record_conflicts() {
        0 => Ok(()),
        more => broken(Invariant::S6, format!("{more} records of a firing that has one already")),
    }
}

fn broken(invariant: Invariant, sentence: String) -> Verdict {
    Err(Violation { invariant, sentence })
}
