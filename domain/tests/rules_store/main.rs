//! The decisions of a store, on plain rows: no database, no test double.

mod audit;
mod people;
mod rows;
mod runs;
mod sessions;
mod write_back;
