//! The model checker: every order of a bounded number of things that may happen to a small cluster.
//!
//! Nothing is modelled that production has: the nodes are [`carillon_domain::node::Node`]s, and the store is the memory store,
//! which runs the same operations over the same rules as SQLite and MySQL do. Processes, keepers
//! and children are those of the test world ([`crate::world`]). Only their schedule is made here: a network that loses and delays,
//! crashes and freezes, operators, and a database that goes back in time. `stateright` explores all its states, depth first; in each the promises of
//! [`carillon_domain::invariants`] are asked.
//!
//! To keep that finite and small: time moves only to the next moment at which something is due, and what goes wrong comes
//! only where something has changed that it can meet (`moments.rs`); calls are answered at once unless something out of a
//! [`Budget`] happens to them; while a call waits for its fate nothing else happens; of the times at which the keeper may
//! kill what outlives its node the latest is taken; once all that may go wrong has gone wrong, all runs are long or all are
//! short. Clocks do not drift, and a transaction of the store
//! is one step: that they are that, servers must show (`tests/tests/store_*.rs`).

mod actions;
mod bounds;
mod calls;
mod coverage;
mod moments;
mod narration;
mod nodes;
mod outbox;
mod outcome;
mod removed;
mod rest;
mod state;
mod steps;

pub use actions::{Action, Fate, Runs};
pub use bounds::{Bounds, Budget};
pub use coverage::{Coverage, Situation};
pub use outbox::check_outbox;
pub use outcome::{Outcome, check};
pub use removed::{Removed, run_without};
pub use state::State;
