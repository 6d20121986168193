//! How it stands beside the lists of jobs, as one statement.

use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::client::error::unreadable;
use crate::mysql::encoding::parts::Parts;
use crate::mysql::encoding::rows::{Columns, SESSION};
use crate::mysql::read::activity::{bucket, buckets, buckets_since};
use crate::mysql::read::reports::in_scope;
use crate::mysql::read::runs::{HELD, held};
use crate::mysql::read::select::limit_of;
use crate::mysql::write::sessions::{WINDOW, counted_session, window_of, windows_since};
use crate::{Bounded, NamespaceScope, Overview, OverviewQuery, RunStage, StoreResult};

/// Kinds of rows.
const RUNNING: u8 = 0;
const ACTIVITY: u8 = 1;
const NODE: u8 = 2;
const LOSS: u8 = 3;
const JOB: u8 = 4;

/// So many columns has the longest of them.
const WIDTH: usize = 14;

fn statement(OverviewQuery { scope, running, since }: &OverviewQuery) -> String {
    let (mut parts, condition) = (Parts::of(WIDTH), in_scope(scope));
    // A session's rows stand in the index in the order in which their runs were drawn. Those that execute come before those that are
    // prepared, so the limit is soon reached.
    let tables = [("job_state", "id"), ("concurrent_run", "job_id")];
    for (table, job) in tables.into_iter().filter(|_| *running > 0) {
        let executing = format!(
            "FROM session n STRAIGHT_JOIN {table} s FORCE INDEX ({table}_held) ON s.held_session = n.id \
             STRAIGHT_JOIN job j ON j.id = s.{job} WHERE s.started_at <> 0{condition} LIMIT {}",
            limit_of(running + 1)
        );
        parts.add(RUNNING, HELD, &executing);
    }
    parts.add(ACTIVITY, &buckets(), &buckets_since(scope, *since));
    parts.add(NODE, &format!("{SESSION}, 0, 0"), "FROM session n");
    parts.add(LOSS, WINDOW, &windows_since(*since));
    let any_job = match scope {
        NamespaceScope::All => "FROM job_state j LIMIT 1".to_owned(),
        NamespaceScope::Only(_) => format!("FROM job j FORCE INDEX (job_name) WHERE j.living = 1{condition} LIMIT 1"),
    };
    parts.add(JOB, "j.id", &any_job);
    parts.sql()
}

impl MySqlConnection {
    pub(in crate::mysql) async fn select_overview(&mut self, query: &OverviewQuery) -> StoreResult<Overview> {
        let (mut found, mut running) = (Overview::default(), Vec::new());
        for row in self.query(&statement(query)).await? {
            let mut from = Columns::of(row);
            match from.next::<u8>()? {
                RUNNING => running.extend(held(&mut from)?),
                ACTIVITY => found.activity.push(bucket(&mut from)?),
                NODE => found.sessions.push(counted_session(&mut from)?),
                LOSS => found.losses.push(window_of(&mut from)?),
                JOB => found.any_job = true,
                other => return Err(unreadable(format!("a row of the unknown kind {other}"))),
            }
        }
        running.retain(|run| matches!(run.stage, RunStage::Running { .. }));
        found.sessions.sort_by_key(|session| session.beat.id);
        found.activity.sort_by_key(|bucket| bucket.begins_at);
        found.losses.sort_by_key(|loss| loss.window.noticed_at);
        Ok(Overview { running: Bounded::of_running(running, query.running), ..found })
    }
}
