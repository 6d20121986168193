//! The rules of one job, as tables of cases and as an accounting of its due times under random events.

mod accounting;
mod concurrent;
mod control;
mod events;
mod fixture;
mod lost_commits;
mod manual;
mod overlapping;
mod ownership;
mod policies;
mod reading;
mod table;
