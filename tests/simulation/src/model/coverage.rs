//! The situations that explorations come across: one that never meets its subject proves nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// A situation that an exploration should come across, or it proves little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Situation {
    /// A run was started.
    Started,
    /// A run was started because a settling write had found its row Executing.
    StartedBySettling,
    /// A request was applied after its sender had given up.
    StrayApplied,
    /// A session that still held rows was swept by another one.
    Swept,
    /// A run was recorded as lost.
    Lost,
    /// A firing was started again by another attempt.
    FurtherAttempt,
    /// A firing was taken from a node that left it lying.
    Stolen,
    /// A node ended itself because its lease was over.
    LeaseOver,
    /// Lost commits were noticed.
    WindowOpened,
}

impl Situation {
    /// All of them.
    pub const ALL: [Situation; 9] = [
        Situation::Started,
        Situation::StartedBySettling,
        Situation::StrayApplied,
        Situation::Swept,
        Situation::Lost,
        Situation::FurtherAttempt,
        Situation::Stolen,
        Situation::LeaseOver,
        Situation::WindowOpened,
    ];
}

/// How often each was come across.
#[derive(Debug, Default)]
pub struct Coverage([AtomicU64; Situation::ALL.len()]);

impl Coverage {
    pub(super) fn count(&self, sight: Situation) {
        self.0[sight as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often this was come across.
    pub fn of(&self, sight: Situation) -> u64 {
        self.0[sight as usize].load(Ordering::Relaxed)
    }
}
