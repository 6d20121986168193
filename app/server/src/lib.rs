//! The server `carillon`: a node put together, started and ended, and the doctor that looks at what it would start with.

pub mod doctor;
pub mod first_process;
pub mod serve;
#[cfg(debug_assertions)]
pub mod without_guard;
pub mod without_mechanism;
