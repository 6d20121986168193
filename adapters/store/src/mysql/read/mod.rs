//! Statements that read.

pub(in crate::mysql) mod history;
pub(in crate::mysql) mod job_loader;
pub(in crate::mysql) mod page;
pub(in crate::mysql) mod select;
