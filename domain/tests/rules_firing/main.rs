//! The rules of one job, told as tables and proved by an accounting of its due times.

mod accounting;
mod active;
mod control;
mod desk;
mod happenings;
mod holding;
mod manual;
mod overlapping;
mod policies;
mod reading;
mod table;
mod uncertain;
