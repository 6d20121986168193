//! The commands about a server as a whole: its cluster, its page, whether it is ready, and the database that it moves to.

pub mod cluster;
pub mod open;
pub mod ready;
