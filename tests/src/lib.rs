//! Support for the tests: real servers as real processes, their API, and the accounting of due times.

pub mod accounting;
pub mod markdown;
pub mod server;
