//! Statements about sessions and lost commits, and those of a peek.

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::{RunRef, Unclaimed, WantedOutput};
use carillon_domain::time::Timestamp;

use crate::{NewSession, PeekRequest, RecordedLoss, SessionState, SessionView, StoreResult};

/// Sessions, those that are over, and loss windows.
pub trait Sessions {
    /// Inserts a session.
    fn insert_session(&mut self, new: &NewSession, now: Timestamp) -> impl Future<Output = StoreResult<()>> + Send;

    /// The state of a session, if it is there.
    fn session_state(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Option<SessionState>>> + Send;

    /// All sessions; `with_counts` also how many rows each holds.
    fn sessions(&mut self, with_counts: bool) -> impl Future<Output = StoreResult<Vec<SessionView>>> + Send;

    /// Writes a heartbeat, unless the session is ended or `seq` is not newer.
    fn write_heartbeat(
        &mut self,
        session: SessionId,
        seq: u64,
        state: SessionState,
        now: Timestamp,
    ) -> impl Future<Output = StoreResult<()>> + Send;

    /// Ends a session whose heartbeat sequence is still `seen_seq`.
    fn end_session(&mut self, session: SessionId, seen_seq: u64) -> impl Future<Output = StoreResult<()>> + Send;

    /// Notes that a session has written back every run that it knows, unless it did so for a later loss.
    fn note_written_back(
        &mut self,
        session: SessionId,
        until: Timestamp,
    ) -> impl Future<Output = StoreResult<()>> + Send;

    /// Removes a session and keeps its last sequence.
    fn spend_session(&mut self, session: SessionId, now: Timestamp) -> impl Future<Output = StoreResult<()>> + Send;

    /// The last heartbeat sequence of a session that is over.
    fn spent_seq(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Option<u64>>> + Send;

    /// The newest end of a session that is over and remembered.
    fn last_spent_at(&mut self) -> impl Future<Output = StoreResult<Option<Timestamp>>> + Send;

    /// Opens a loss window, or extends the open one.
    fn note_window(&mut self, loss: &RecordedLoss) -> impl Future<Output = StoreResult<()>> + Send;

    /// The open window and those accepted since then, oldest first.
    fn windows(&mut self, accepted_since: Timestamp) -> impl Future<Output = StoreResult<Vec<RecordedLoss>>> + Send;

    /// Accepts the open window that ends then; answers whether there was one.
    fn accept_windows(&mut self, until: Timestamp, now: Timestamp) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// The lock-free reads of a node.
pub trait Peeking {
    /// The first rows of each partition that may be claimed, of both tables.
    fn unclaimed(
        &mut self,
        request: &PeekRequest,
        partitions: u16,
    ) -> impl Future<Output = StoreResult<Vec<Unclaimed>>> + Send;

    /// The live sessions, and the runs of `session` that somebody asked to end.
    fn news(&mut self, session: SessionId) -> impl Future<Output = StoreResult<(Vec<SessionId>, Vec<RunId>)>> + Send;

    /// The runs of a session whose output somebody reads at another node.
    fn wanted_outputs(
        &mut self,
        session: SessionId,
        now: Timestamp,
    ) -> impl Future<Output = StoreResult<Vec<WantedOutput>>> + Send;

    /// Every row that a session holds.
    fn rows_held_by(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Vec<RunRef>>> + Send;
}
