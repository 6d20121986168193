//! The node's side of the keeper: it starts the process, sends it commands and hears how its runs end.

mod awaited_runs;
pub(crate) mod handle;
