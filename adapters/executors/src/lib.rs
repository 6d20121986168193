//! The executors: what runs a job, from a shell command to a plugin.

pub mod dylib;
pub mod execution;
pub mod executor;
pub mod registry;
pub mod shell;
