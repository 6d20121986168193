//! The outside of Carillon: stores, the keeper and the executors.

pub mod dylib;
pub mod execution;
pub mod executor;
pub mod executors;
pub mod gather;
pub mod keeper;
pub mod shell;
pub mod store;
