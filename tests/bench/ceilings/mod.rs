//! What the machine can do at the most, without Carillon. That changes within an hour, so each scenario measures what it is
//! compared with right before it begins.

mod disk;
mod spawn;
mod sql;

pub use disk::synced_appends;
pub use spawn::{PROGRAM, SHELL, SPAWNER, Spawns, spawn_for_a_while};
pub use sql::Sql;
