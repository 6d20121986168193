//! The rules of Carillon, and nothing else.
//!
//! This crate has no async, no I/O, no clock, no randomness and no SQL: time and identifiers are arguments, results are
//! values. Every rule of the scheduler stands here once; stores, the engine, the simulator and the model checker all call
//! the same functions.

pub mod crontab;
pub mod duration;
pub mod firing;
pub mod guard;
pub mod id;
pub mod invariants;
pub mod job;
pub mod lease;
pub mod lost_commits;
pub mod matrix;
pub mod mechanism;
pub mod name;
pub mod node;
pub mod partition;
pub mod policy;
pub mod run;
pub mod schedule;
pub mod store;
pub mod time;
pub mod wheel;
