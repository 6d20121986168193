//! Support for the tests: real servers as real processes, their API, and the accounting of due times.

pub mod accounting;
pub mod fixture;
pub mod jobs;
pub mod processes;
pub mod server;
pub mod stranger;
