//! Whole clusters in one process and in virtual time: the [model checker](model) tries every order of what may happen, the
//! [`simulator`] takes one by a seed. Both, and the scripts of the guards, run on one test [`world`].

pub mod model;
pub mod simulator;
pub mod world;
