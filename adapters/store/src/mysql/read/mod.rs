//! Statements that read.

pub(in crate::mysql) mod history;
pub(in crate::mysql) mod jobs_by_name;
pub(in crate::mysql) mod page;
pub(in crate::mysql) mod peek;
pub(in crate::mysql) mod select;
