//! Facts that calls of nodes and people write down in their own commits. They tell of jobs to watch and jobs that are gone, of lost nodes
//! and lost commits.

use carillon_domain::alert::{Fact, NoticeId, Part, Subject, Trouble, What, When};
use carillon_domain::id::JobId;
use carillon_domain::job::Job;
use carillon_domain::store::{SessionWrite, WriteSet};
use carillon_domain::time::Timestamp;

use super::document::{Cursor, StoredFact, StoredSubject, StoredWhat};
use super::port::{AlertRows, AlertWrite, FactRow, WatchRow};
use super::routes::{awake, lock_cursor, write_all};
use crate::tables::Tables;
use crate::{SessionState, SessionView, StoreError, StoreResult};

/// The meaning of a call's writes for those who are to be told.
#[derive(Debug, Default)]
pub(crate) struct Consequences {
    watch: Vec<WatchRow>,
    gone: Vec<JobId>,
    /// Jobs with another definition: they may have left a route, or expect less.
    changed: Vec<JobId>,
    facts: Vec<FactRow>,
}

impl Consequences {
    /// Those of these writes. A firing has none.
    pub fn of(writes: &WriteSet, now: Timestamp) -> Self {
        let mut found = Self::default();
        for write in &writes.jobs {
            if let (None, Some(after)) = (&write.before, &write.after) {
                found.watch.extend(watched(after.id, &write.definition.job, now));
            }
        }
        for (id, definition) in &writes.definitions {
            found.changed.push(*id);
            match watched(*id, &definition.job, now) {
                Some(row) => found.watch.push(row),
                None => found.gone.push(*id),
            }
        }
        for id in &writes.deleted {
            found.facts.push(row(None, now, StoredSubject::Job(*id), StoredWhat::Gone));
        }
        if let Some(loss) = &writes.loss {
            let trouble = Trouble::CommitsLost(loss.window);
            let part = Part::default();
            found.facts.push(row(Some(key_of(&part, &trouble)), now, StoredSubject::Cluster(part), trouble.into()));
        }
        for session in &writes.sessions {
            if let SessionWrite::Register(new) = session {
                let part = StoredSubject::Cluster(Part::node(&new.node));
                found.facts.push(row(None, now, part, StoredWhat::Over(When::NodeLost)));
            }
        }
        found
    }

    /// Writes them down, in the commit of the call.
    pub async fn write<T: Tables>(self, tables: &mut T) -> StoreResult<()> {
        let mut writes = Vec::new();
        if !self.watch.is_empty() {
            // The cursor is locked, so a step that saw nothing to watch is over, and has said so.
            if lock_cursor(tables).await?.is_none() {
                let cursor = awake(tables, None).await?;
                writes.push(AlertWrite::Cursor(Cursor::text(Some(&cursor))));
            }
            writes.push(AlertWrite::Watch(self.watch));
        }
        if !self.gone.is_empty() {
            writes.push(AlertWrite::WatchGone(self.gone));
        }
        if !self.facts.is_empty() {
            writes.push(AlertWrite::Facts(self.facts));
        }
        // While nobody is told of anything there is no incident.
        let cursor = if self.changed.is_empty() { None } else { tables.alerts().cursor(false).await? };
        if let Ok(Some(_)) = Cursor::read(cursor.as_deref()) {
            // A step that still judges by the old definition is over then, and its incidents are seen.
            tables.alerts_to_write().cursor(true).await?;
            writes.push(AlertWrite::LookAtJobs(self.changed, tables.now()));
        }
        write_all(tables, writes).await
    }
}

fn watched(job: JobId, definition: &Job, now: Timestamp) -> Option<WatchRow> {
    let (look_at, pings) = (definition.expect.map(|_| now), definition.ping.is_some());
    (look_at.is_some() || pings).then_some(WatchRow { job, starts: now, ends: now, look_at, pings })
}

/// A session that is about to be ended because it was silent.
pub(crate) struct Silent {
    view: SessionView,
    /// Whether a node of that name has registered since.
    is_back: bool,
}

/// The session that is about to be ended because it was silent; `None` if it is over already.
pub(crate) async fn silent<T: Tables>(
    tables: &mut T,
    session: carillon_domain::id::SessionId,
) -> StoreResult<Option<Silent>> {
    let mut sessions = tables.sessions(true).await?;
    sessions.retain(|view| view.beat.state != SessionState::Ended);
    let Some(place) = sessions.iter().position(|view| view.beat.id == session) else { return Ok(None) };
    let view = sessions.swap_remove(place);
    let is_back = sessions.iter().any(|other| other.node == view.node && other.started_at >= view.started_at);
    Ok(Some(Silent { view, is_back }))
}

/// Notes that a node went silent, once for each session. The return of one that is back already was noted before anybody missed it, so
/// it is noted again.
pub(crate) async fn node_lost<T: Tables>(tables: &mut T, Silent { view, is_back }: Silent) -> StoreResult<()> {
    let trouble = Trouble::NodeLost { last_heard_at: view.heartbeat_at, runs: view.executing };
    let key = NoticeId::derived(&["node_lost", &view.beat.id.to_string()]).to_string();
    let (now, part) = (tables.now(), StoredSubject::Cluster(Part::node(&view.node)));
    let mut facts = vec![row(Some((key, false)), now, part.clone(), trouble.into())];
    facts.extend(is_back.then(|| row(None, now, part, StoredWhat::Over(When::NodeLost))));
    write_all(tables, vec![AlertWrite::Facts(facts)]).await
}

/// Notes that the loss of commits is accepted.
pub(crate) async fn commits_are_accepted<T: Tables>(tables: &mut T) -> StoreResult<()> {
    let (at, subject) = (tables.now(), Subject::Cluster(Part::default()));
    tell(tables, &Fact { at, subject, what: What::Over(When::CommitsLost) }).await.map(|_| ())
}

/// See [`super::AlertStore::tell_fact`].
pub(crate) async fn tell<T: Tables>(tables: &mut T, fact: &Fact) -> StoreResult<bool> {
    let refused = || StoreError::Permanent("only troubles of the cluster are told by themselves".to_owned());
    let Subject::Cluster(part) = &fact.subject else { return Err(refused()) };
    let rows = tables.alerts_to_write();
    let (key, what) = match &fact.what {
        What::Trouble(trouble) => (Some(key_of(part, trouble)), trouble.clone().into()),
        What::Over(when) => {
            // Where no trouble is known, none is over.
            if rows.write_alert(&AlertWrite::FreeKey(open_key(part, *when))).await? == 0 {
                return Ok(false);
            }
            (None, StoredWhat::Over(*when))
        }
        What::Ended(_) | What::Judged(_) | What::RetryDropped(_) | What::Gone | What::Seen { .. } => {
            return Err(refused());
        }
    };
    let row = row(key, fact.at, StoredSubject::Cluster(part.clone()), what);
    Ok(rows.write_alert(&AlertWrite::Facts(vec![row])).await? > 0)
}

/// The key of a trouble, and whether it stays until the trouble is over.
fn key_of(part: &Part, trouble: &Trouble) -> (String, bool) {
    match trouble {
        // It is over when it is told.
        Trouble::DatabaseAway { from, until } => {
            let (from, until) = (from.to_string(), until.to_string());
            (NoticeId::derived(&["away", &part.to_string(), &from, &until]).to_string(), false)
        }
        _ => (open_key(part, trouble.when()), true),
    }
}

fn open_key(part: &Part, when: When) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    NoticeId::derived(&["open", when.as_str(), &text(&part.node), &text(&part.thing)]).to_string()
}

fn row(key: Option<(String, bool)>, at: Timestamp, subject: StoredSubject, what: StoredWhat) -> FactRow {
    let (key, open) = key.map_or((None, false), |(key, open)| (Some(key), open));
    FactRow { key, open, at, document: StoredFact { subject, what }.text() }
}

impl From<Trouble> for StoredWhat {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}
