//! The routes, a file each.

pub(in crate::http) mod actions;
pub(crate) mod alerts;
pub(in crate::http) mod audit;
pub(in crate::http) mod batch;
pub(in crate::http) mod cluster;
pub(in crate::http) mod events;
pub(in crate::http) mod health;
pub(in crate::http) mod jobs;
pub(in crate::http) mod listing;
pub(in crate::http) mod metrics;
pub(crate) mod output;
pub(in crate::http) mod plan;
pub(in crate::http) mod runs;
