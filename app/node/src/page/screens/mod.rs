//! The screens.

pub(crate) mod alerts;
pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod overview;
pub(crate) mod parts;
pub(crate) mod run;
pub(crate) mod schedules;
pub(crate) mod search;
pub(crate) mod timeline;
pub(crate) mod why;
