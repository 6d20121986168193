//! The view of a transaction: its own writes, laid over the committed rows while it reads. Only the rows that it has touched are kept
//! and put back, so a read costs nothing that grows with the history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, FiringKey, JobState};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use super::own::Own;
use crate::alerts::Alerts;
use crate::data::{Data, Place};
use carillon_domain::store::Definition;
use carillon_store::{JobKey, Output, RecordedLoss, SessionView};

/// Reads with the transaction's own writes.
pub(super) fn read<T>(data: &mut Data, own: &Own, read: impl FnOnce(&mut Data) -> T) -> T {
    let before = Before::of(data, own);
    own.clone().apply(data);
    let answer = read(data);
    before.put_back(data);
    answer
}

/// A job's number, its row and its definition.
type OfJob = (JobId, Option<Arc<JobState>>, Option<Arc<Definition>>);

/// The committed state of all rows that a transaction has written.
struct Before {
    jobs: Vec<OfJob>,
    concurrent: Vec<(FiringKey, Option<ConcurrentRun>)>,
    names: Vec<(JobKey, Option<JobId>)>,
    new_records: Vec<Place>,
    outputs: Vec<(RunId, Option<Output>)>,
    run_params: Vec<(FiringKey, Option<Arc<str>>)>,
    sessions: BTreeMap<SessionId, SessionView>,
    spent: BTreeMap<SessionId, (u64, Timestamp)>,
    windows: Vec<RecordedLoss>,
    highest_version: u64,
    record_conflicts: usize,
    last_audit_id: u64,
    /// Copied only where they are written, because the copy holds every message.
    alerts: Option<Alerts>,
}

impl Before {
    fn of(data: &Data, own: &Own) -> Self {
        let (mut jobs, mut concurrent, mut names) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (mut new_records, mut outputs, mut run_params) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        names.extend(own.names.iter().map(|(key, _)| key.clone()));
        for changes in &own.changes {
            let rows = changes.jobs.iter().flat_map(|write| [&write.before, &write.after]).flatten();
            jobs.extend(rows.map(|row| row.id).chain(changes.definitions.iter().map(|(id, _)| *id)));
            let beside = changes.concurrent.iter().flat_map(|write| [&write.before, &write.after]).flatten();
            concurrent.extend(beside.map(|row| row.key));
            let freed = data.names.iter().filter(|(_, id)| changes.deleted.contains(id));
            names.extend(freed.map(|(key, _)| key.clone()));
            let new = changes.records.iter().filter(|record| !data.places.contains_key(&record.id));
            new_records.extend(new.map(|record| (record.due_at, record.attempt, record.id)));
            outputs.extend(changes.outputs.iter().map(|(run, _)| *run));
            // Taking a record out may take the params of its firing along.
            let firing =
                |record: &RunRecord| FiringKey { job: record.job, due_at: record.due_at, trigger: record.trigger };
            run_params.extend(changes.records.iter().map(firing));
            run_params.extend(changes.run_params.iter().map(|(firing, _)| *firing));
        }
        let of_job = |id: JobId| (id, data.states.get(&id).cloned(), data.definitions.get(&id).cloned());
        Self {
            jobs: jobs.into_iter().map(of_job).collect(),
            concurrent: concurrent.into_iter().map(|key| (key, data.concurrent.get(&key).cloned())).collect(),
            names: names.into_iter().map(|key| (key.clone(), data.names.get(&key).copied())).collect(),
            new_records,
            outputs: outputs.into_iter().map(|run| (run, data.outputs.get(&run).cloned())).collect(),
            run_params: run_params.into_iter().map(|firing| (firing, data.run_params.get(&firing).cloned())).collect(),
            sessions: data.sessions.clone(),
            spent: data.spent.clone(),
            windows: data.windows.clone(),
            highest_version: data.highest_version,
            record_conflicts: data.record_conflicts,
            last_audit_id: data.last_audit_id,
            alerts: (!own.alerts.is_empty()).then(|| data.alerts.clone()),
        }
    }

    fn put_back(self, data: &mut Data) {
        self.new_records.iter().for_each(|place| data.forget_record(place));
        for (id, state, definition) in self.jobs {
            let here = data.due_place(id);
            here.map(|place| data.due.remove(&place));
            put(&mut data.states, id, state);
            put(&mut data.definitions, id, definition);
            let back = data.due_place(id);
            data.due.extend(back);
        }
        self.concurrent.into_iter().for_each(|(key, row)| put(&mut data.concurrent, key, row));
        self.names.into_iter().for_each(|(key, id)| put(&mut data.names, key, id));
        self.outputs.into_iter().for_each(|(run, output)| put(&mut data.outputs, run, output));
        self.run_params.into_iter().for_each(|(firing, params)| put(&mut data.run_params, firing, params));
        (data.sessions, data.spent, data.windows) = (self.sessions, self.spent, self.windows);
        (data.highest_version, data.record_conflicts) = (self.highest_version, self.record_conflicts);
        data.audit.split_off(&(self.last_audit_id + 1));
        data.last_audit_id = self.last_audit_id;
        if let Some(alerts) = self.alerts {
            data.alerts = alerts;
        }
    }
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}
