//! The command line as a process: commands that need no server, commands against a fake one, and the server itself.

mod alerts;
mod client;
mod definitions;
mod fake;
mod import;
mod mcp;
mod schedule;
mod server;
mod shell;
mod terminal;
