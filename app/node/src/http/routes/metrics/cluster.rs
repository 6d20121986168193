//! The cluster's figures, which are read from the database. While that is away they are left out.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::time::Timestamp;
use carillon_store::alerts::DeliveryCounts;
use carillon_store::{
    JobList, JobListQuery, NamespaceScope, Overview, OverviewQuery, SessionState, SessionView, Store, StoreError,
};

use super::text::{gauge, labelled};
use crate::http::state::ApiState;

/// How long the database is waited for.
const READ_WITHIN: Duration = Duration::from_secs(1);
/// How long an answer is good: many scrapers cost the database what one does.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// How far jobs are counted.
const COUNTED: usize = 100;

struct Seen {
    deliveries: DeliveryCounts,
    troubled: usize,
    overdue: usize,
    live: usize,
    draining: usize,
    silent: usize,
    ended: usize,
    is_loss_open: bool,
}

pub(super) async fn write(api: &ApiState, text: &mut String) {
    let read = async || read(&api.store).await;
    let seen = tokio::time::timeout(READ_WITHIN, api.reads.kept(GOOD_FOR, "metrics".to_owned(), read)).await;
    if let Ok(Ok(seen)) = seen {
        show(&seen, text);
    }
}

async fn read(store: &Arc<dyn Store>) -> Result<Seen, StoreError> {
    let deliveries = store.delivery_counts().await?;
    let now = store.now().await?;
    let lists = [JobList::Troubled, JobList::overdue(now)].map(|list| JobListQuery { list, limit: COUNTED });
    let found = store.job_lists(&NamespaceScope::All, &lists).await?;
    let count = |list: usize| found.get(list).map_or(0, |list| list.items.len());
    let query = OverviewQuery { scope: NamespaceScope::All, running: 0, since: now };
    let Overview { sessions, losses, .. } = store.overview(&query).await?;
    let in_state = |state: State| sessions.iter().filter(|session| state_of(session, now) == state).count();
    Ok(Seen {
        deliveries,
        troubled: count(0),
        overdue: count(1),
        live: in_state(State::Live),
        draining: in_state(State::Draining),
        silent: in_state(State::Silent),
        ended: in_state(State::Ended),
        is_loss_open: losses.iter().any(|loss| loss.is_open()),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Live,
    Draining,
    Silent,
    Ended,
}

fn state_of(session: &SessionView, now: Timestamp) -> State {
    match session.beat.state {
        SessionState::Ended => State::Ended,
        _ if session.is_silent(now) => State::Silent,
        SessionState::Draining => State::Draining,
        SessionState::Live => State::Live,
    }
}

fn show(seen: &Seen, text: &mut String) {
    let help = "Messages that the database keeps, by state, each counted up to 1000.";
    let DeliveryCounts { waiting, sending, sent, dead } = seen.deliveries;
    let states = [("waiting", waiting), ("sending", sending), ("sent", sent), ("dead", dead)];
    labelled(text, ("carillon_alert_deliveries", "gauge", help), "state", states);
    let troubled = "Jobs of the cluster whose last run failed, timed out or was lost, counted up to 100.";
    gauge(text, "carillon_jobs_troubled", troubled, seen.troubled);
    let overdue = "Jobs of the cluster that are due for 30 seconds and that no node holds, counted up to 100.";
    gauge(text, "carillon_jobs_overdue", overdue, seen.overdue);
    let help =
        "Sessions of nodes: live, draining, silent for 15 seconds, or ended with rows that nobody has taken over yet.";
    let states = [("live", seen.live), ("draining", seen.draining), ("silent", seen.silent), ("ended", seen.ended)];
    labelled(text, ("carillon_sessions", "gauge", help), "state", states);
    let open = u8::from(seen.is_loss_open);
    gauge(text, "carillon_commits_lost_open", "Whether a loss of commits waits for its acceptance.", open);
}
