//! Jobs and runs as people see them: read-only, and free of rules.

pub(crate) mod jobs;
pub(crate) mod runs;
