//! The file: who may open it, who writes, who reads, and how errors are read.

pub(crate) mod copy_side;
pub(in crate::sqlite) mod error;
pub(in crate::sqlite) mod inspect;
pub(in crate::sqlite) mod lease;
pub(in crate::sqlite) mod names;
pub(in crate::sqlite) mod open;
pub(in crate::sqlite) mod readers;
pub(in crate::sqlite) mod writer;
