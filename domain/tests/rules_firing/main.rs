//! The rules of one job, told as tables and proved by an accounting of its due times.

mod accounting;
mod concurrent;
mod control;
mod desk;
mod happenings;
mod holding;
mod lost_commits;
mod manual;
mod overlapping;
mod policies;
mod reading;
mod table;
