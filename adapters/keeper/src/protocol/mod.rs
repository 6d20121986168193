//! The frames between the node and the keeper.

pub mod fields;
pub(crate) mod frames;
