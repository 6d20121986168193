//! Statements that read.

pub(in crate::mysql) mod activity;
pub(in crate::mysql) mod audit;
pub(in crate::mysql) mod history;
pub(in crate::mysql) mod jobs_by_name;
pub(in crate::mysql) mod overview;
pub(in crate::mysql) mod page;
pub(in crate::mysql) mod page_next;
pub(in crate::mysql) mod peek;
pub(in crate::mysql) mod reports;
pub(in crate::mysql) mod runs;
pub(in crate::mysql) mod select;
