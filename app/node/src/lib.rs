//! The parts of a node: configuration, engine, events, alerts, HTTP API and page around the domain's machines.

pub mod alerts;
pub mod config;
pub mod engine;
pub mod events;
pub mod http;
mod losses;
mod page;
pub mod service_manager;
pub mod telemetry;
pub mod why;
