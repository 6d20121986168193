//! The server as a process, from outside: the HTTP API, the command line, signals, crashes, and what README shows.

mod abuse;
mod alerts;
mod alerts_of_a_node;
mod audit;
mod backup;
mod base_path;
mod control;
mod copy;
mod crash;
mod disk;
mod doctor;
mod drain;
mod follow;
mod hostile;
mod listing;
mod metrics;
mod misfire;
mod overlap;
mod readme;
mod refusals;
mod runs;
mod soak;
mod tls;
mod tls_clients;
mod traces;
mod without_guard;
