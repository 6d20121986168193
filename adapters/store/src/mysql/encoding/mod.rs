//! Batches of rows as parameters, and columns as values.

pub(in crate::mysql) mod batch;
pub(in crate::mysql) mod list;
pub(in crate::mysql) mod multi_insert;
pub(in crate::mysql) mod parts;
pub(in crate::mysql) mod prefix_encoding;
pub(in crate::mysql) mod rows;
