//! Copies of a database file: a backup beside a running server, and the way back.
//!
//! Both write under a temporary name, check and sync the copy, and only then give it its name. A crash before that leaves the old
//! state and a file that the next call throws away.

mod backup;
mod error;
mod pages;
mod restore;

pub use backup::{Backup, backup};
pub use error::CopyError;
pub use restore::{Restored, restore};
