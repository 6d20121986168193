//! The transitions that nodes ask for: claim, start, finish, release, settle.
//!
//! Start and release apply only at the version that the caller saw, so a stray one that arrives after a settling write
//! matches nothing. Finish is guarded by its run id alone: a run ends once, whatever was written to its row before.

mod claim;
mod finish;
mod settle;
mod split;
mod start;
mod write_back;

pub use claim::claim;
pub use finish::finish;
pub use settle::{release, settle};
pub use split::{AfterRefusal, SplitFinish};
pub use start::{optimistic_start, start};
pub(in crate::store) use write_back::reconcile_changed;
pub use write_back::write_back;

use super::unit_of_work::UnitOfWork;
use super::{Need, Rows};
use crate::node::port::{RowKey, RunRef};

/// The row that carries the run: the one that was named, or the concurrent run that it became at its start.
fn located(rows: &Rows, work: &UnitOfWork, at: &RunRef) -> Result<RowKey, Need> {
    if work.carries(at) || matches!(at.row, RowKey::Concurrent(_)) {
        return Ok(at.row);
    }
    let found = rows.runs.get(&at.run).ok_or(Need::ConcurrentRun(at.run))?;
    Ok(found.unwrap_or(at.row))
}
