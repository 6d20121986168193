//! The rules of Carillon, and nothing else.
//!
//! This crate has no async, no I/O, no clock, no randomness and no SQL. Time and identifiers are arguments, and results
//! are values. Every rule of the scheduler is here, once: stores, the engine, the simulator and the model checker call
//! the same functions.
//!
//! Where to begin: [`job`] defines a job, [`schedule`] computes its due times, and [`firing`] is the state machine of
//! its row. [`policy`] decides on due times that passed, and [`node`] decides when a server claims and starts.
//! [`alert`] decides who is told. The words are explained in `docs/glossary.md`.

pub mod alert;
pub mod crontab;
pub mod explain;
pub mod firing;
pub mod guard;
pub mod invariants;
pub mod job;
pub mod lease;
pub mod lost_commits;
pub mod matrix;
pub mod mechanism;
pub mod node;
pub mod partition;
pub mod policy;
pub mod run;
pub mod schedule;
pub mod store;
mod values;
pub mod wheel;

pub use values::{duration, id, measured, name, time};
