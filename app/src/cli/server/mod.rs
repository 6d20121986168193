//! The commands about a server as a whole: its cluster, and its page.

pub mod backup;
pub mod cluster;
pub mod open;
