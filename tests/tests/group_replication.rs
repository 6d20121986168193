//! The MySQL store on Group Replication.

mod on_group;
