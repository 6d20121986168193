//! Kept for a database that goes back in time: loss windows, and sessions that are over.

use std::collections::BTreeSet;

use carillon_domain::id::{JobId, SessionId};
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::time::Timestamp;
use mysql_async::{Row, Value};

use crate::codec::named;
use crate::mysql::client::error::unreadable;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::transaction::Transaction;
use crate::tables::{KnownSession, Standing};
use crate::{RecordedLoss, SessionBeat, SessionState, StoreResult};
use carillon_domain::store::SPENT_KEPT;

/// The time, the jobs that have concurrent runs, whether one of these runs waits for a claim, the session that asks, the open
/// loss window and the end of the newest one.
pub(in crate::mysql) const STANDING: &str = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), \
     (SELECT GROUP_CONCAT(job_id) FROM (SELECT DISTINCT job_id FROM concurrent_run LIMIT 33) c), \
     EXISTS (SELECT 1 FROM concurrent_run FORCE INDEX (concurrent_run_due) WHERE claim_at IS NOT NULL), s.state, s.seq, s.node, s.heartbeat_at, w.from_at, w.until_at, w.noticed_at, \
     (SELECT MAX(until_at) FROM loss_window) FROM (SELECT 1) one LEFT JOIN session s ON s.id = ? \
     LEFT JOIN loss_window w ON w.is_open = 1";

/// The largest number of jobs with concurrent runs that [`STANDING`] lists, well within the server's limit on the length of such
/// a list.
const LISTED: usize = 32;

/// The concurrent runs of the cluster, as far as [`STANDING`] tells.
#[derive(Debug, Clone, Default)]
pub(in crate::mysql) struct ConcurrentRuns {
    /// The jobs that have some; `None` where they are unknown or too many to list.
    jobs: Option<BTreeSet<JobId>>,
    /// Whether one of them may be claimed, now or later.
    claimable: bool,
}

impl ConcurrentRuns {
    /// The second and third column of [`STANDING`].
    pub fn read(from: &mut Columns) -> StoreResult<Self> {
        let listed: Option<String> = from.next()?;
        let ids = listed.iter().flat_map(|list| list.split(','));
        let jobs: BTreeSet<JobId> =
            ids.map(|id| id.parse().map(JobId)).collect::<Result<_, _>>().map_err(|_| unreadable("a list of jobs"))?;
        Ok(Self { jobs: (jobs.len() <= LISTED).then_some(jobs), claimable: from.next()? })
    }

    /// Those of `jobs` that may have some.
    pub fn of(&self, jobs: &[JobId]) -> Vec<JobId> {
        let may_have = |id: &JobId| self.jobs.as_ref().is_none_or(|known| known.contains(id));
        jobs.iter().copied().filter(may_have).collect()
    }

    /// Whether a claim may find one.
    pub const fn may_be_claimed(&self) -> bool {
        self.claimable || self.jobs.is_none()
    }
}

/// The columns of [`STANDING`] from the fourth on.
pub(in crate::mysql) fn read_standing(mut from: Columns, id: SessionId) -> StoreResult<Standing> {
    let (state, seq, node): (Option<String>, Option<u64>, Option<String>) = (from.next()?, from.next()?, from.next()?);
    let heartbeat_at = from.maybe_time()?;
    let session = match (state, seq, node, heartbeat_at) {
        (Some(state), Some(seq), Some(node), Some(heartbeat_at)) => {
            let state = named(&SessionState::ALL, SessionState::as_str, &state).map_err(unreadable)?;
            Some(KnownSession { beat: SessionBeat { id, seq, state }, node, heartbeat_at })
        }
        _ => None,
    };
    let times = [from.maybe_time()?, from.maybe_time()?, from.maybe_time()?];
    let open = match times {
        [Some(from_at), Some(until_at), Some(noticed_at)] => Some(LossWindow { from_at, until_at, noticed_at }),
        _ => None,
    };
    Ok(Standing { session, open, losses_until: from.maybe_time()? })
}

fn read_window(row: Row) -> StoreResult<RecordedLoss> {
    let mut from = Columns::of(row);
    let times: [i64; 3] = [from.next()?, from.next()?, from.next()?];
    let [from_at, until_at, noticed_at] = times.map(Timestamp::from_ms);
    let session = SessionId::from_random(from.next()?);
    let (node, accepted_at) = (from.next()?, from.maybe_time()?);
    Ok(RecordedLoss { window: LossWindow { from_at, until_at, noticed_at }, session, node, accepted_at })
}

impl Transaction {
    pub(in crate::mysql) async fn select_standing(&mut self, session: SessionId) -> StoreResult<Standing> {
        let standing = match self.standing.take() {
            Some((asked, standing)) if asked == session => standing,
            _ => {
                let row = self.line.select(STANDING, (session.as_u64(),)).await?.pop();
                let mut from = Columns::of(row.ok_or_else(|| unreadable("a session has no standing"))?);
                let _time: i64 = from.next()?;
                self.concurrent_runs = ConcurrentRuns::read(&mut from)?;
                read_standing(from, session)?
            }
        };
        self.context.forget_lost(standing.losses_until);
        Ok(standing)
    }

    pub(in crate::mysql) async fn upsert_window(&mut self, noticed: &RecordedLoss) -> StoreResult<()> {
        let sql = "INSERT INTO loss_window (is_open, session, node, from_at, until_at, noticed_at) \
                   VALUES (1, ?, ?, ?, ?, ?) \
                   ON DUPLICATE KEY UPDATE from_at = LEAST(from_at, ?), until_at = GREATEST(until_at, ?)";
        let RecordedLoss { window, session, node, .. } = noticed;
        let until_at = Some(window.until_at);
        self.context.forget_lost(until_at);
        let [from, until, at] = [window.from_at, window.until_at, window.noticed_at].map(|at| Value::from(at.as_ms()));
        let (id, node) = (session.as_u64().into(), node.into());
        self.change_session(sql, vec![id, node, from.clone(), until.clone(), at, from, until]).await
    }

    pub(in crate::mysql) async fn select_windows(
        &mut self,
        accepted_since: Timestamp,
    ) -> StoreResult<Vec<RecordedLoss>> {
        let sql = "SELECT from_at, until_at, noticed_at, session, node, accepted_at FROM loss_window \
                   WHERE is_open = 1 OR accepted_at >= ? ORDER BY id";
        self.line.select(sql, (accepted_since.as_ms(),)).await?.into_iter().map(read_window).collect()
    }

    /// Its row is locked first: a heartbeat that comes between would have a later sequence.
    pub(in crate::mysql) async fn move_to_spent(&mut self, session: SessionId) -> StoreResult<()> {
        let keep = "REPLACE INTO spent_session (id, seq, ended_at) \
                    SELECT id, seq, ? FROM session WHERE id = ? FOR UPDATE";
        let (id, now) = (session.as_u64(), self.now().as_ms());
        self.change_session(keep, vec![now.into(), id.into()]).await?;
        self.change_session("DELETE FROM session WHERE id = ?", vec![id.into()]).await
    }

    pub(in crate::mysql) async fn select_spent_seq(&mut self, session: SessionId) -> StoreResult<Option<u64>> {
        let row = self.line.select("SELECT seq FROM spent_session WHERE id = ?", (session.as_u64(),)).await?.pop();
        row.map(|row| Columns::of(row).next()).transpose()
    }

    pub(in crate::mysql) async fn select_last_spent_at(&mut self) -> StoreResult<Option<Timestamp>> {
        let row = self.line.select("SELECT MAX(ended_at) FROM spent_session", ()).await?.pop();
        row.map_or(Ok(None), |row| Columns::of(row).maybe_time())
    }

    /// Forgets sessions that ended long ago.
    pub(in crate::mysql) async fn purge_spent(&mut self) -> StoreResult<()> {
        let oldest = (self.now() - SPENT_KEPT).as_ms();
        self.change_session("DELETE FROM spent_session WHERE ended_at < ?", vec![oldest.into()]).await
    }
}
