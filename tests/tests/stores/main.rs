//! The stores inside the process: the conformance suite on each, and the files of SQLite.

mod innodb;
mod memory;
mod sqlite;
mod sqlite_files;
mod unreadable_alerts;
