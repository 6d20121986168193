//! The runs of a node, their stages, and the calls in flight: this keeps the node correct.

pub(in crate::node) mod flight;
pub(in crate::node) mod reactions;
pub(in crate::node) mod recovery;
pub(in crate::node) mod stage;
pub(in crate::node) mod stealing;
pub(in crate::node) mod write_back;
