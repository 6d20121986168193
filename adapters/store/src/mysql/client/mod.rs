//! Connections to the server that takes writes: its address, the pools, and how its errors are read.

pub(in crate::mysql) mod address;
pub(in crate::mysql) mod agreement;
mod chosen;
pub(in crate::mysql) mod connection;
pub(in crate::mysql) mod error;
pub(in crate::mysql) mod inspect;
pub(in crate::mysql) mod open;
pub(in crate::mysql) mod pool;
pub(in crate::mysql) mod server;
pub(in crate::mysql) mod tls;
pub(in crate::mysql) mod writer;
