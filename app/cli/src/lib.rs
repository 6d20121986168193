//! The client commands of `carillon`: arguments in, calls of the HTTP API or of the domain, tables or JSON out.
//!
//! `next` and `explain` need no server. All others are clients of the HTTP API and know nothing that it does not tell: no database, no
//! configuration file. Everything here is blocking; a command has one thing to do at a time. The commands that are the server itself
//! stand in the binary, which has the list of all.

pub mod alert;
pub mod args;
pub mod audit;
mod client;
mod document;
pub mod export;
pub mod failure;
pub mod import;
pub mod job;
pub mod mcp;
pub mod out;
pub mod plugin;
pub mod progress;
pub mod run;
pub mod schedule;
pub mod server;
pub mod shell;
pub mod table;
mod watch;
pub mod why;
