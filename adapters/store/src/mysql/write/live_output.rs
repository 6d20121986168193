//! The output of runs that run, between the node that runs them and readers at other nodes.

use carillon_domain::guard::Guard;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::WantedOutput;

use crate::codec::run_bytes;
use crate::guarded::guarded;
use crate::live_output::{LiveRow, kept_since, wanted_since};
use crate::mysql::encoding::rows::Columns;
use crate::mysql::transaction::Transaction;
use crate::{LivePart, StoreResult};

impl Transaction {
    pub(in crate::mysql) async fn select_live(&mut self, run: RunId) -> StoreResult<Option<LiveRow>> {
        let sql = "SELECT asked_at, written, tail FROM live_output WHERE run = ?";
        let Some(row) = self.line.select(sql, (run_bytes(run).to_vec(),)).await?.pop() else { return Ok(None) };
        let mut from = Columns::of(row);
        let (asked_at, written, tail): (_, Option<u64>, Option<Vec<u8>>) = (from.time()?, from.next()?, from.next()?);
        let published = written.zip(tail).map(|(written, tail)| LivePart { written, tail });
        Ok(Some(LiveRow { asked_at, published }))
    }

    /// Writes down that somebody reads; what was published for readers who have long gone goes.
    pub(in crate::mysql) async fn ask_live(&mut self, run: RunId) -> StoreResult<()> {
        let sql = "INSERT INTO live_output (run, asked_at) VALUES (?, ?) ON DUPLICATE KEY UPDATE \
                   written = IF(asked_at < ?, NULL, written), tail = IF(asked_at < ?, NULL, tail), asked_at = ?";
        let (now, since) = (self.now().as_ms(), wanted_since(self.now()).as_ms());
        self.wrote = true;
        self.line.exec(sql, (run_bytes(run).to_vec(), now, since, since, now)).await.map(|_| ())
    }

    /// The table is nearly always empty: it is read first.
    pub(in crate::mysql) async fn wanted_outputs(&mut self, session: SessionId) -> StoreResult<Vec<WantedOutput>> {
        let (session, since) = (session.as_u64(), wanted_since(self.now()).as_ms());
        let sql = format!(
            "SELECT l.run, l.written FROM live_output l WHERE l.asked_at >= {since} AND (\
             EXISTS (SELECT 1 FROM job_state s FORCE INDEX (job_state_held) \
             WHERE s.held_session = {session} AND s.held_run = l.run) OR \
             EXISTS (SELECT 1 FROM concurrent_run a FORCE INDEX (concurrent_run_held) \
             WHERE a.held_session = {session} AND a.held_run = l.run))"
        );
        let rows = self.line.query(&sql).await?.into_iter();
        let wanted = rows.map(|row| {
            let mut from = Columns::of(row);
            Ok(WantedOutput { run: from.run()?, published: from.next()? })
        });
        wanted.collect()
    }

    /// Only where it is asked for, and never back to an older state.
    pub(in crate::mysql) async fn write_live(&mut self, outputs: &[(RunId, LivePart)]) -> StoreResult<()> {
        let sql = "UPDATE live_output SET written = ?, tail = ? WHERE run = ? AND (written IS NULL OR written < ?)";
        let sql = guarded(Guard::LiveForward, sql, "written < ?", "0 <= ?");
        for (run, LivePart { written, tail }) in outputs {
            self.wrote = true;
            self.line.exec(&sql, (written, tail.as_slice(), run_bytes(*run).to_vec(), written)).await?;
        }
        Ok(())
    }

    pub(in crate::mysql) async fn purge_live(&mut self) -> StoreResult<()> {
        let sql = format!("DELETE FROM live_output WHERE asked_at < {}", kept_since(self.now()).as_ms());
        self.wrote |= self.line.run(&sql).await?.matched > 0;
        Ok(())
    }
}
