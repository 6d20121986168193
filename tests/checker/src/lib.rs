//! Judges a scheduler from outside: what became of every due time.
//!
//! It depends on no crate of Carillon's, so it shares none of its mistakes. It reads four things: the jobs as they were
//! asked for, with due times that it computes itself ([`plan`]); what the jobs wrote about their own lives ([`witness`]);
//! the records as the API told them ([`record`]); and what was done to the cluster meanwhile ([`fault`]). Where there were receivers of
//! alerts, it reads what they heard ([`alerts`]). It answers, for
//! each due time, whether it ran, was skipped or was lost, and everything that should not be ([`finding`]).

pub mod alerts;
pub mod evidence;
pub mod fault;
pub mod finding;
pub mod lateness;
pub mod percentiles;
pub mod plan;
pub mod record;
pub mod takeover;
pub mod time;
pub mod verdict;
pub mod witness;

mod judge;

pub use evidence::Evidence;
pub use finding::{Finding, Group, Kind};
pub use judge::judge;
pub use plan::{Act, Job, Overlap, Plan};
pub use verdict::Verdict;
