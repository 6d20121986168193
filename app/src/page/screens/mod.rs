//! The screens.

pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod overview;
pub(crate) mod parts;
pub(crate) mod run;
pub(crate) mod why;
