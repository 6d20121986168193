//! Facts that a process keeps so that it need not ask: rows, definitions, and the time.

pub(crate) mod clock_estimate;
pub(crate) mod definition_cache;
pub(crate) mod row_cache;
pub(crate) mod two_gen_map;
