//! The answers of a database inside the process beside its rows: peeks, live output, sign-in links, purges.

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::{Peek, RunRef};
use carillon_domain::time::Timestamp;
use carillon_store::live_output::LiveRow;
use carillon_store::local::port::LocalTransaction;
use carillon_store::purge_cursor::{Counted, Purge, PurgePosition, PurgePositions};
use carillon_store::{LinkDigest, LivePart, PeekRequest, SigningKey, StoreResult};

use super::tables::Transaction;

impl LocalTransaction for Transaction<'_> {
    /// A write checks everything before it changes anything, so a part that fails has changed nothing.
    fn part<T>(&mut self, run: impl FnOnce(&mut Self) -> StoreResult<T>) -> StoreResult<T> {
        run(self)
    }

    fn peek(&mut self, request: &PeekRequest) -> StoreResult<Peek> {
        Ok(self.data.peek(request))
    }

    fn rows_held_by(&mut self, session: SessionId) -> StoreResult<Vec<RunRef>> {
        Ok(self.data.held(session))
    }

    fn live_output(&mut self, run: RunId) -> StoreResult<Option<LiveRow>> {
        Ok(self.data.live.get(&run).cloned())
    }

    fn ask_live_output(&mut self, run: RunId) -> StoreResult<()> {
        self.data.ask_output(run);
        Ok(())
    }

    fn publish_live_output(&mut self, outputs: &[(RunId, LivePart)]) -> StoreResult<()> {
        self.data.publish_output(outputs.to_vec());
        Ok(())
    }

    fn signing_key(&mut self, offered: SigningKey) -> StoreResult<SigningKey> {
        Ok(self.data.signing_key(offered))
    }

    fn insert_link(&mut self, link: LinkDigest, expires_at: Timestamp) -> StoreResult<()> {
        self.data.insert_link(link, expires_at);
        Ok(())
    }

    fn has_link(&mut self, link: LinkDigest) -> StoreResult<bool> {
        Ok(self.data.has_link(link))
    }

    fn delete_link(&mut self, link: LinkDigest) -> StoreResult<bool> {
        Ok(self.data.delete_link(link))
    }

    fn crowded_jobs(&mut self, _purge: &Purge, _from: PurgePosition) -> StoreResult<Counted> {
        Ok(Counted::default())
    }

    fn purge_audit(&mut self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        Ok(self.data.purge_audit(before, limit))
    }

    fn purge(
        &mut self,
        purge: &Purge,
        _counted: &Counted,
        from: PurgePositions,
    ) -> StoreResult<(usize, PurgePositions)> {
        Ok((self.data.purge(purge.before, purge.max_runs_per_job, purge.limit), from))
    }
}
