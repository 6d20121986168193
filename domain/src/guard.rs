//! The guards that keep what must always hold, each with a switch, so that it can be shown that none of them is idle.
//!
//! In a release build a guard always stands and its switch is compiled away. In a build with debug assertions one of them can
//! be removed for the life of the process; then the model checker, the simulator or the conformance suite must find the
//! invariant that it kept ([`Guard::keeps`]) broken. `tests/tests/guards.rs` does that with every guard.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::invariants::Number;

/// A condition that keeps something from going wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Guard {
    /// A start matches only the version of the row that its sender was told.
    StartVersion = 1,
}

impl Guard {
    /// All of them.
    pub const ALL: [Guard; 1] = [Guard::StartVersion];

    /// Its name on command lines and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Guard::StartVersion => "start-version",
        }
    }

    /// The guard of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|guard| guard.name() == name)
    }

    /// What breaks without it.
    pub const fn keeps(self) -> Number {
        match self {
            Guard::StartVersion => Number::S2,
        }
    }
}

/// Which guard is removed: its number, or 0.
static REMOVED: AtomicU8 = AtomicU8::new(0);

/// Whether a guard does its work.
#[inline]
pub fn stands(guard: Guard) -> bool {
    !cfg!(debug_assertions) || REMOVED.load(Ordering::Relaxed) != guard as u8
}

/// Removes a guard, and puts back any other, for this process. `false` in a build without debug assertions, where none can
/// be removed.
pub fn remove(guard: Guard) -> bool {
    if cfg!(debug_assertions) {
        REMOVED.store(guard as u8, Ordering::Relaxed);
    }
    cfg!(debug_assertions)
}
