//! The content of a store at one moment: to go back to it, to read it, and to compare two stores.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::{ConcurrentRun, JobState, Phase};
use carillon_domain::id::JobId;
use carillon_domain::node::port::RowKey;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use super::data::Data;
use carillon_domain::store::still_unknown;
use carillon_store::alerts::port::DeliveryAsk;
use carillon_store::{SessionBeat, SessionView};

/// The content of a store at one moment.
///
/// Two of them hash alike if every call does the same to both. Facts that only people read (when a run
/// ended, who registered from where) how often a lock was written, and the audit log are left out.
#[derive(Clone)]
pub struct Backup(Box<Data>);

impl Backup {
    pub(super) fn of(data: &Data) -> Self {
        Self(Box::new(data.clone()))
    }

    /// The clock stays that of the store which goes back.
    pub(super) fn overwrite(&self, data: &mut Data) {
        let clock = data.clock.clone();
        *data = (*self.0).clone();
        data.clock = clock;
    }

    /// The rows of the jobs.
    pub fn jobs(&self) -> impl Iterator<Item = &JobState> {
        self.0.states.values().map(Arc::as_ref)
    }

    /// The row of one job.
    pub fn job(&self, id: JobId) -> Option<&JobState> {
        self.0.states.get(&id).map(Arc::as_ref)
    }

    /// The rows beside those of the jobs.
    pub fn concurrent(&self) -> impl Iterator<Item = &ConcurrentRun> {
        self.0.concurrent.values()
    }

    /// Every row of both kinds: which, where it stands, its version.
    pub fn rows(&self) -> impl Iterator<Item = (RowKey, &Phase, u64)> {
        let own = self.jobs().map(|row| (RowKey::Job(row.id), &row.phase, row.version));
        own.chain(self.concurrent().map(|row| (RowKey::Concurrent(row.key), &row.phase, row.version)))
    }

    /// The history.
    pub fn records(&self) -> impl Iterator<Item = &RunRecord> {
        self.0.records.values().map(|(record, _)| record)
    }

    /// How often a second record for one (job, due time, trigger, attempt) was refused.
    pub fn record_conflicts(&self) -> usize {
        self.0.record_conflicts
    }

    /// The sessions, as others see them.
    pub fn sessions(&self) -> impl Iterator<Item = SessionBeat> {
        self.0.sessions.values().map(|view| view.beat)
    }

    /// How often the lock row of each partition was written.
    pub fn epochs(&self) -> &[u64] {
        &self.0.epochs
    }

    /// The partition of a job; `None` where there is no such job.
    pub fn partition(&self, job: JobId) -> Option<u16> {
        self.0.definitions.get(&job).map(|definition| self.0.partition_of(definition))
    }

    /// Routes, facts, incidents and deliveries as a text: two that are the same go on alike.
    pub fn outbox_text(&self) -> String {
        format!("{:?}", self.0.alerts)
    }

    /// When a delivery, an incident or an expectation is due next, later than `now`.
    pub fn next_of_outbox(&self, now: Timestamp) -> Option<Timestamp> {
        self.0.alerts.looks().filter(|at| *at > now).min()
    }

    /// Whether a delivery may be claimed.
    pub fn has_due_delivery(&self, now: Timestamp) -> bool {
        !self.0.alerts.delivery_rows(&DeliveryAsk::Due(now, 1)).is_empty()
    }

    /// Whether lost commits were noticed and may be accepted at `now`.
    pub fn may_accept(&self, patience: Duration, now: Timestamp) -> bool {
        let sessions: Vec<_> = self.0.sessions.values().map(SessionView::writing).collect();
        let mut open = self.0.windows.iter().filter(|window| window.accepted_at.is_none());
        open.next().is_some_and(|loss| still_unknown(&loss.window, &sessions, patience, now).is_none())
    }

    /// Whether lost commits were noticed and nobody has accepted that.
    pub fn withholds(&self) -> bool {
        self.0.windows.iter().any(|window| window.accepted_at.is_none())
    }
}

impl Hash for Backup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let data = &*self.0;
        (data.last_id, data.highest_version, data.partitions, data.record_conflicts).hash(state);
        (&data.names, &data.states, &data.concurrent, &data.outputs, &data.live).hash(state);
        for (id, definition) in &data.definitions {
            (id, definition.generation, definition.anchor_at, &definition.job).hash(state);
        }
        for record in self.records() {
            let RunRecord { id, job, due_at, trigger, attempt, status, reason, count, first_due_at, .. } = record;
            (id, job, due_at, trigger, attempt, status, reason, count, first_due_at).hash(state);
        }
        data.sessions.values().for_each(|view| (view.beat, view.wrote_back).hash(state));
        data.spent.iter().for_each(|(session, (seq, _))| (session, seq).hash(state));
        data.windows.iter().for_each(|window| (window.window.until_at, window.accepted_at.is_some()).hash(state));
    }
}
