//! Support for the tests: real servers as real processes, their API, the accounting of due times, and what every store
//! must do.

pub mod accounting;
pub mod browser;
pub mod chaos;
pub mod chaos_run;
pub mod clients;
pub mod cluster;
pub mod collector;
pub mod conformance;
pub mod databases;
pub mod ear;
pub mod events;
pub mod fixture;
pub mod follower;
pub mod guards;
pub mod jobs;
pub mod markdown;
pub mod model;
pub mod page_site;
pub mod plugins;
pub mod processes;
pub mod raw_client;
pub mod report;
pub mod server;
pub mod settings;
pub mod simulator;
pub mod skipped;
pub mod sql_in_sources;
pub mod tidb_parser;
pub mod tls_site;
pub mod waiting;
mod world;
