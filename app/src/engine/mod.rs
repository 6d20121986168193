//! The engine: the one loop that performs what the node machine decides.

mod handle;

pub use handle::{Ask, Counts, EngineHandle, LiveOutput, Readiness};
