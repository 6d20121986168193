//! The output of runs that run, between the node that runs them and readers at other nodes.

use carillon_domain::guard::Guard;
use carillon_domain::id::RunId;
use carillon_domain::time::Timestamp;

use crate::cluster::port::LiveOutputs;
use crate::codec::run_bytes;
use crate::guarded::guarded;
use crate::live_output::{LiveRow, wanted_since};
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::Columns;
use crate::{LivePart, StoreResult};

impl LiveOutputs for MySqlConnection {
    async fn live_output(&mut self, run: RunId) -> StoreResult<Option<LiveRow>> {
        let sql = "SELECT asked_at, written, tail FROM live_output WHERE run = ?";
        let Some(row) = self.select(sql, (run_bytes(run).to_vec(),)).await?.pop() else { return Ok(None) };
        let mut from = Columns::of(row);
        let (asked_at, written, tail): (_, Option<u64>, Option<Vec<u8>>) = (from.time()?, from.next()?, from.next()?);
        let published = written.zip(tail).map(|(written, tail)| LivePart { written, tail });
        Ok(Some(LiveRow { asked_at, published }))
    }

    /// Writes down that somebody reads; what was published for readers who have long gone goes.
    async fn ask_live_output(&mut self, run: RunId, now: Timestamp) -> StoreResult<()> {
        let sql = "INSERT INTO live_output (run, asked_at) VALUES (?, ?) ON DUPLICATE KEY UPDATE \
                   written = IF(asked_at < ?, NULL, written), tail = IF(asked_at < ?, NULL, tail), asked_at = ?";
        let (now, since) = (now.as_ms(), wanted_since(now).as_ms());
        self.exec(sql, (run_bytes(run).to_vec(), now, since, since, now)).await.map(|_| ())
    }

    /// Only where it is asked for, and never back to an older state.
    async fn publish_live_output(&mut self, outputs: &[(RunId, LivePart)]) -> StoreResult<()> {
        let sql = "UPDATE live_output SET written = ?, tail = ? WHERE run = ? AND (written IS NULL OR written < ?)";
        let sql = guarded(Guard::LiveForward, sql, "written < ?", "0 <= ?");
        for (run, LivePart { written, tail }) in outputs {
            self.exec(&sql, (written, tail.as_slice(), run_bytes(*run).to_vec(), written)).await?;
        }
        Ok(())
    }
}
