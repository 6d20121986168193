//! The runs of a node and their stages: this keeps the node correct.

pub(in crate::node) mod reactions;
pub(in crate::node) mod recovery;
pub(in crate::node) mod stage;
