//! Statements that write.

pub(in crate::mysql) mod audit;
mod change;
pub(in crate::mysql) mod live_output;
pub(in crate::mysql) mod purge;
pub(in crate::mysql) mod record;
pub(in crate::mysql) mod roll_up;
pub(in crate::mysql) mod sessions;
pub(in crate::mysql) mod sign_in;
pub(in crate::mysql) mod single_start;
pub(in crate::mysql) mod update;
