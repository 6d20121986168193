//! The commands about a server as a whole: its cluster, its page, and whether it is ready.

pub mod backup;
pub mod cluster;
pub mod open;
pub mod ready;
