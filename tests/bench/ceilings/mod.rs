//! What the machine can do at the most, without Carillon.

mod disk;
mod spawn;
mod sql;

pub use disk::synced_appends;
pub use spawn::{SPAWNER, Spawning, spawn_for_a_while};
pub use sql::Sql;
