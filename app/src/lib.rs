//! The server `carillon`: configuration, engine, HTTP API and command line around the domain's machines.

pub mod alerts;
pub mod config;
pub mod doctor;
pub mod engine;
pub mod events;
pub mod first_process;
pub mod http;
mod losses;
mod page;
pub mod serve;
pub mod service_manager;
pub mod telemetry;
pub mod why;
#[cfg(debug_assertions)]
pub mod without_guard;
pub mod without_mechanism;
