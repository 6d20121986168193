//! Sessions, and the facts that reveal lost commits: loss windows, and sessions that are over.

use std::collections::BTreeSet;

use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::time::Timestamp;
use mysql_async::Value;

use crate::cluster::port::{ConcurrentRuns, Sessions};
use crate::codec::named;
use crate::guarded::guarded;
use crate::mysql::client::agreement::{OTHERS, other_of, terms_in_ms};
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::client::error::unreadable;
use crate::mysql::encoding::rows::{self, Columns, SESSION};
use crate::mysql::topology::BeatOfServer;
use crate::mysql::write::update::NOT_STARTED;
use crate::tables::{KnownSession, Standing};
use crate::{NewSession, RecordedLoss, SessionBeat, SessionState, SessionView, StoreError, StoreResult};

/// The time, the jobs that have concurrent runs, and whether one of these waits for a claim. Then the session that asks, the open loss
/// window, and the end of the newest one.
pub(in crate::mysql) const STANDING: &str = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), \
     (SELECT GROUP_CONCAT(job_id) FROM (SELECT DISTINCT job_id FROM concurrent_run LIMIT 33) c), \
     EXISTS (SELECT 1 FROM concurrent_run FORCE INDEX (concurrent_run_due) WHERE claim_at IS NOT NULL), s.state, s.seq, s.node, s.heartbeat_at, w.from_at, w.until_at, w.noticed_at, \
     (SELECT MAX(until_at) FROM loss_window) FROM (SELECT 1) one LEFT JOIN session s ON s.id = ? \
     LEFT JOIN loss_window w ON w.is_open = 1";

/// The largest number of jobs with concurrent runs that [`STANDING`] lists, well within the server's limit on the length of such
/// a list.
const LISTED: usize = 32;

/// The second and third column of [`STANDING`].
pub(in crate::mysql) fn read_concurrent_runs(from: &mut Columns) -> StoreResult<ConcurrentRuns> {
    let listed: Option<String> = from.next()?;
    let ids = listed.iter().flat_map(|list| list.split(','));
    let jobs: BTreeSet<JobId> =
        ids.map(|id| id.parse().map(JobId)).collect::<Result<_, _>>().map_err(|_| unreadable("a list of jobs"))?;
    Ok(ConcurrentRuns { jobs: (jobs.len() <= LISTED).then_some(jobs), claimable: from.next()? })
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

/// How many rows a session holds, and how many of these have started: columns behind [`SESSION`] in [`counted_sessions`].
const HELD_ROWS: &str = "n.held, n.begun";

/// Sessions with [`HELD_ROWS`], from FROM on. The rows of each session are counted in the order of the index.
fn counted_sessions() -> String {
    let counts = |table: &str| {
        format!(
            "(SELECT held_session, COUNT(*) AS held, COUNT(NULLIF(started_at, {NOT_STARTED})) AS begun FROM {table} \
             FORCE INDEX ({table}_held) WHERE held_session IS NOT NULL GROUP BY held_session)"
        )
    };
    format!(
        "FROM (SELECT s.*, COALESCE(o.held, 0) + COALESCE(c.held, 0) AS held, COALESCE(o.begun, 0) + COALESCE(c.begun, 0) AS begun \
         FROM session s LEFT JOIN {} o ON o.held_session = s.id LEFT JOIN {} c ON c.held_session = s.id) n",
        counts("job_state"),
        counts("concurrent_run")
    )
}

/// The columns of [`SESSION`] and [`HELD_ROWS`].
pub(in crate::mysql) fn counted_session(from: &mut Columns) -> StoreResult<SessionView> {
    let view = rows::session_of(from)?;
    let (held, executing): (u64, u64) = (from.next()?, from.next()?);
    Ok(SessionView { prepared: held.saturating_sub(executing), executing, ..view })
}

/// The columns of a loss window.
pub(in crate::mysql) const WINDOW: &str = "from_at, until_at, noticed_at, session, node, accepted_at";

/// The open window and those accepted since then, from FROM on.
pub(in crate::mysql) fn windows_since(accepted_since: Timestamp) -> String {
    format!("FROM loss_window WHERE is_open = 1 OR accepted_at >= {} ORDER BY id", accepted_since.as_ms())
}

/// The columns of [`WINDOW`].
pub(in crate::mysql) fn window_of(from: &mut Columns) -> StoreResult<RecordedLoss> {
    let times: [i64; 3] = [from.next()?, from.next()?, from.next()?];
    let [from_at, until_at, noticed_at] = times.map(Timestamp::from_ms);
    let session = SessionId::from_random(from.next()?);
    let (node, accepted_at) = (from.next()?, from.maybe_time()?);
    Ok(RecordedLoss { window: LossWindow { from_at, until_at, noticed_at }, session, node, accepted_at })
}

impl MySqlConnection {
    async fn select_sessions(&mut self, with_counts: bool) -> StoreResult<Vec<SessionView>> {
        let sql = match with_counts {
            true => format!("SELECT {SESSION}, {HELD_ROWS} {} ORDER BY n.id", counted_sessions()),
            false => format!("SELECT {SESSION}, 0, 0 FROM session n ORDER BY n.id"),
        };
        let rows = self.query(&sql).await?;
        let views: Vec<SessionView> =
            rows.into_iter().map(|row| counted_session(&mut Columns::of(row))).collect::<StoreResult<_>>()?;
        let live = views.iter().filter(|view| view.beat.state != SessionState::Ended);
        let beats = live.map(|view| BeatOfServer {
            node: &view.node,
            server: view.server.as_deref(),
            terms: view.terms,
            at: view.heartbeat_at,
        });
        self.see_sessions(&beats.collect::<Vec<_>>());
        Ok(views)
    }

    async fn refuse_other_terms(&mut self, me: SessionId) -> StoreResult<()> {
        let Some(chosen) = self.timing() else { return Ok(()) };
        let rows = self.query(OTHERS).await?;
        let read: Vec<_> = rows.into_iter().map(other_of).collect::<StoreResult<_>>()?;
        let others: Vec<_> = read.into_iter().filter(|(id, _)| *id != me).map(|(_, other)| other).collect();
        chosen.disagreement(&others).map_or(Ok(()), |why| Err(StoreError::Permanent(why)))
    }

    async fn write_session(&mut self, sql: &str, params: Vec<Value>) -> StoreResult<()> {
        self.exec(sql, params).await.map(|_| ())
    }
}

impl Sessions for MySqlConnection {
    /// The session tells the server to which this very statement goes. The lock of the sessions is held, so of two nodes that start together
    /// one sees the other's terms.
    async fn insert_session(&mut self, new: &NewSession, now: Timestamp) -> StoreResult<()> {
        self.refuse_other_terms(new.id).await?;
        let sql = "INSERT INTO session (id, node, address, version, state, seq, started_at, heartbeat_at, server, dead_after_ms, \
                   expire_after_ms, wrote_back) VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, 0)";
        let NewSession { id, node, address, version } = new;
        let (id, now, state) = (id.as_u64(), now.as_ms(), SessionState::Live.as_str());
        let texts: [Value; 3] = [node.into(), address.into(), version.into()];
        let params = std::iter::once(id.into()).chain(texts).chain([
            state.into(),
            now.into(),
            now.into(),
            self.server_identity().into(),
        ]);
        let terms = terms_in_ms(self.timing().as_ref()).map(Value::from);
        self.write_session(sql, params.chain(terms).collect()).await
    }

    async fn session_state(&mut self, session: SessionId) -> StoreResult<Option<SessionState>> {
        let sql = "SELECT state FROM session WHERE id = ?";
        let row = self.select(sql, (session.as_u64(),)).await?.pop();
        row.map(rows::session_state).transpose()
    }

    async fn sessions(&mut self, with_counts: bool) -> StoreResult<Vec<SessionView>> {
        self.select_sessions(with_counts).await
    }

    async fn write_heartbeat(
        &mut self,
        session: SessionId,
        seq: u64,
        state: SessionState,
        now: Timestamp,
    ) -> StoreResult<()> {
        let sql = "UPDATE session SET seq = ?, state = ?, heartbeat_at = ?, server = ? WHERE id = ? AND state <> 'ended' AND seq < ?";
        let sql = match enabled(Guard::HeartbeatNotEnded) {
            true => guarded(Guard::HeartbeatNewer, sql, "seq < ?", "0 <= ?"),
            false => guarded(Guard::HeartbeatNotEnded, sql, "state <> 'ended'", "TRUE"),
        };
        let (now, id) = (now.as_ms(), session.as_u64());
        let server: Value = self.server_identity().into();
        let params = vec![seq.into(), state.as_str().into(), now.into(), server, id.into(), seq.into()];
        self.write_session(&sql, params).await
    }

    async fn end_session(&mut self, session: SessionId, seen_seq: u64) -> StoreResult<()> {
        let sql = "UPDATE session SET state = 'ended' WHERE id = ? AND seq = ? AND state <> 'ended'";
        let sql = guarded(Guard::EndSeen, sql, "seq = ?", "0 <= ?");
        self.write_session(&sql, vec![session.as_u64().into(), seen_seq.into()]).await
    }

    async fn note_written_back(&mut self, session: SessionId, until: Timestamp) -> StoreResult<()> {
        let sql = "UPDATE session SET wrote_back = ? WHERE id = ? AND wrote_back < ?";
        self.write_session(sql, vec![until.as_ms().into(), session.as_u64().into(), until.as_ms().into()]).await
    }

    /// Its row is locked first: a heartbeat that comes between would have a later sequence.
    async fn spend_session(&mut self, session: SessionId, now: Timestamp) -> StoreResult<()> {
        let keep = "REPLACE INTO spent_session (id, seq, ended_at) \
                    SELECT id, seq, ? FROM session WHERE id = ? FOR UPDATE";
        let (id, now) = (session.as_u64(), now.as_ms());
        self.write_session(keep, vec![now.into(), id.into()]).await?;
        self.write_session("DELETE FROM session WHERE id = ?", vec![id.into()]).await
    }

    async fn spent_seq(&mut self, session: SessionId) -> StoreResult<Option<u64>> {
        let row = self.select("SELECT seq FROM spent_session WHERE id = ?", (session.as_u64(),)).await?.pop();
        row.map(|row| Columns::of(row).next()).transpose()
    }

    async fn last_spent_at(&mut self) -> StoreResult<Option<Timestamp>> {
        let row = self.select("SELECT MAX(ended_at) FROM spent_session", ()).await?.pop();
        row.map_or(Ok(None), |row| Columns::of(row).maybe_time())
    }

    async fn note_window(&mut self, loss: &RecordedLoss) -> StoreResult<()> {
        let sql = "INSERT INTO loss_window (is_open, session, node, from_at, until_at, noticed_at) \
                   VALUES (1, ?, ?, ?, ?, ?) \
                   ON DUPLICATE KEY UPDATE from_at = LEAST(from_at, ?), until_at = GREATEST(until_at, ?)";
        let RecordedLoss { window, session, node, .. } = loss;
        let [from, until, at] = [window.from_at, window.until_at, window.noticed_at].map(|at| Value::from(at.as_ms()));
        let (id, node) = (session.as_u64().into(), node.into());
        self.write_session(sql, vec![id, node, from.clone(), until.clone(), at, from, until]).await
    }

    async fn windows(&mut self, accepted_since: Timestamp) -> StoreResult<Vec<RecordedLoss>> {
        let found = self.query(&format!("SELECT {WINDOW} {}", windows_since(accepted_since))).await?;
        found.into_iter().map(|row| window_of(&mut Columns::of(row))).collect()
    }

    async fn accept_windows(&mut self, until: Timestamp, now: Timestamp) -> StoreResult<bool> {
        let sql = "UPDATE loss_window SET is_open = NULL, accepted_at = ? WHERE is_open = 1 AND until_at = ?";
        Ok(self.exec(sql, vec![Value::from(now.as_ms()), Value::from(until.as_ms())]).await?.matched > 0)
    }
}
