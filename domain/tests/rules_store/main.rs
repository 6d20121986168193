//! The decisions of a store, on plain rows: no database, no test double.

mod audit;
mod changed_after_loss;
mod concurrent;
mod people;
mod reading;
mod rows;
mod runs;
mod sessions;
mod write_back;
mod written_attempts;
