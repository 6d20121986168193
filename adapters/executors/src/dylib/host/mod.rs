//! The running host of a plugin: the node's side, and the host process itself.

pub(crate) mod node_side;
pub(crate) mod process;
