//! When and how much to send: this makes the node fast. None of it is needed for correctness.

pub(in crate::node) mod agenda;
pub(in crate::node) mod flight;
pub(in crate::node) mod linger;
pub(in crate::node) mod start_rate;
pub(in crate::node) mod stealing;
