//! The calls of nodes and people, each inside one transaction of a database: lock, then let the domain decide
//! ([`carillon_domain::store`]).

pub(crate) mod control;
mod decide;
pub(crate) mod node;
pub mod run_params;
pub(crate) mod sign_in;
