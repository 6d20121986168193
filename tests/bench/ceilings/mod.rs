//! The machine's ceiling, without Carillon. It changes within minutes. So it is measured right before and right after each load that is
//! compared with it.

mod disk;
mod spawn;
mod sql;

pub use disk::synced_appends;
pub use spawn::{PROGRAM, SHELL, SPAWNER, Spawns, spawn_for_a_while};
pub use sql::Sql;

/// The ceiling around a load.
#[derive(Debug, Clone, Copy)]
pub struct Around {
    /// Right before it.
    pub before: f64,
    /// Right after it.
    pub after: f64,
}

impl Around {
    /// The ceiling during the load, as far as can be told.
    pub fn mean(self) -> f64 {
        f64::midpoint(self.before, self.after)
    }
}
