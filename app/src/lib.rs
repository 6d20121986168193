//! The server `carillon`: configuration, engine, HTTP API and command line around the domain's machines.

pub mod engine;
