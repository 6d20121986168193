//! The audit log: what is asked of it, and an entry as people see it.

pub(crate) mod document;
pub(crate) mod redact;
pub(crate) mod select;

use std::time::Duration;

use carillon_domain::id::{JobId, RunId};
use carillon_domain::store::{AuditDocument, AuditEntry};
use carillon_domain::time::Timestamp;

use self::document::redacted;
use crate::tables::Tables;
use crate::{JobKey, Page, StoreResult};

/// Times of entries follow their ids but for transactions that ran side by side. An entry that is older than this before the
/// time of interest has none behind it that is younger.
const NEARLY_IN_ORDER: Duration = Duration::from_secs(60 * 60);

/// Which entries of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    /// Of these namespaces only; `None` for all entries, those of the cluster included.
    pub namespaces: Option<Vec<String>>,
    /// Of jobs of this name.
    pub job: Option<String>,
    /// By the token of this name.
    pub who: Option<String>,
    /// Of this action, by its name in the API.
    pub action: Option<String>,
    /// Written at or after.
    pub since: Option<Timestamp>,
    /// Written before.
    pub until: Option<Timestamp>,
    /// Older than the entry with this id.
    pub after: Option<u64>,
    /// How many at the most; at least 1.
    pub limit: usize,
}

/// The state of what was changed, before or after, as it was stored.
#[derive(Debug, Clone, PartialEq)]
pub enum AuditState {
    /// A state that this binary knows.
    Known(AuditDocument),
    /// The JSON of a newer binary. It holds no value of a secret either.
    Unknown(String),
}

/// An entry of the audit log as people see it.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditView {
    /// Its number. Those of one job ascend in the order of their commits.
    pub id: u64,
    /// The database's time in the transaction of the change.
    pub at: Timestamp,
    /// The name of the token.
    pub who: String,
    /// The address of the peer, and its client.
    pub origin: String,
    /// The name of the action in the API, also one of a newer binary.
    pub action: String,
    /// The namespace; `None` for a change of the cluster.
    pub namespace: Option<String>,
    /// The name of the job.
    pub job: Option<String>,
    /// Its number, which no other job ever has.
    pub job_id: Option<JobId>,
    /// The job's generation after a change of the job.
    pub generation: Option<u64>,
    /// The run that was asked for or cancelled.
    pub run: Option<RunId>,
    /// The state before.
    pub before: Option<AuditState>,
    /// The state after.
    pub after: Option<AuditState>,
}

impl AuditView {
    /// An entry under its id, for databases that keep entries as they are. Values of secrets are left out.
    pub fn of(id: u64, entry: AuditEntry) -> Self {
        let (key, job_id) = entry.job.unzip();
        let (namespace, job) = key.map(|JobKey { namespace, name }| (namespace, name)).unzip();
        let state = |document: AuditDocument| AuditState::Known(redacted(document));
        Self {
            id,
            at: entry.at,
            who: entry.author.name.to_string(),
            origin: entry.author.origin.to_string(),
            action: entry.action.as_str().to_owned(),
            namespace,
            job,
            job_id,
            generation: entry.generation,
            run: entry.run,
            before: entry.before.map(state),
            after: entry.after.map(state),
        }
    }
}

/// Entries, newest first.
#[derive(Debug, Clone, Default)]
pub struct AuditRows {
    /// The entries.
    pub rows: Vec<AuditView>,
    /// Set where only the entries down to this one, with its time, were looked at.
    pub looked_until: Option<(u64, Timestamp)>,
}

/// A page of the audit log, newest first. A page of few entries out of very many may have fewer than it may, and says where the
/// next one begins.
pub(crate) async fn page<T: Tables>(tables: &mut T, query: &AuditQuery) -> StoreResult<Page<AuditView, u64>> {
    let limit = query.limit.max(1);
    let AuditRows { mut rows, looked_until } = tables.audit(&AuditQuery { limit: limit + 1, ..query.clone() }).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| more).map(|row| row.id);
    let in_time = |at: Timestamp| query.since.is_none_or(|since| at + NEARLY_IN_ORDER >= since);
    let next = last.or(looked_until.filter(|(_, at)| in_time(*at)).map(|(id, _)| id));
    Ok(Page { items: rows, next })
}
