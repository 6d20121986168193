//! The commands about a server as a whole: its cluster, its page, whether it is ready, and the database that it moves to.

pub mod backup;
pub mod cluster;
pub mod copy;
pub mod open;
pub mod ready;
