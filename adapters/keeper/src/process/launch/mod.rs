//! The launch of a child, from its birth in the keeper's memory to its exec.

pub(crate) mod child;
pub(crate) mod cradle;
pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod fork;
mod system;
