//! Every call of the API as a method of [`Client`](crate::Client), and the parameters of those that take several.
//!
//! The files below are written from the OpenAPI document.

#[rustfmt::skip]
mod alerts;
#[rustfmt::skip]
mod cluster;
#[rustfmt::skip]
mod jobs;
#[rustfmt::skip]
mod runs;

pub use alerts::*;
pub use cluster::*;
pub use jobs::*;
pub use runs::*;
