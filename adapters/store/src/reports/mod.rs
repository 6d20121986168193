//! The reports that the web page shows: their arguments and answers, the rows that they are made of, and how far history is counted.

pub mod counting;
pub mod namespaces;
pub mod port;
pub mod tally;
mod types;

pub use types::{
    ActivityBucket, Bounded, JobDay, JobList, JobListQuery, ListedJob, NamespaceScope, OutcomeCounts, Overview,
    OverviewQuery, RolledUp,
};
