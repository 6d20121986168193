//! What the machine can do at the most, without Carillon. That changes within minutes, so what a load is compared with is
//! measured right before it and right after.

mod disk;
mod spawn;
mod sql;

pub use disk::synced_appends;
pub use spawn::{PROGRAM, SHELL, SPAWNER, Spawns, spawn_for_a_while};
pub use sql::Sql;

/// What the machine could do around a load.
#[derive(Debug, Clone, Copy)]
pub struct Around {
    /// Right before it.
    pub before: f64,
    /// Right after it.
    pub after: f64,
}

impl Around {
    /// What it could do meanwhile, as far as can be told.
    pub fn mean(self) -> f64 {
        f64::midpoint(self.before, self.after)
    }
}
