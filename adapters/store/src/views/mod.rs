//! Jobs and runs as people see them: read-only, and free of rules.

pub(crate) mod feed;
pub(crate) mod jobs;
pub(crate) mod runs;
pub(crate) mod select;
