//! The rows of a store as values, and the writes that a commit makes of them.

mod job;
mod rows;
mod session;
mod write_set;

pub use job::{Change, ConcurrentJob, Definition, JobKey, JobRow, PutIf, PutJob};
pub use rows::Rows;
pub use session::{KnownSession, NewSession, RecordedLoss, SessionBeat, SessionState, Standing, WritingSession};
pub use write_set::{SessionWrite, Write, WriteSet};
