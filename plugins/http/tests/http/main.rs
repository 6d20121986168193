//! The executor `http` against real servers on this machine, some of them hostile.

mod answers;
mod hostile;
mod redirects;
mod requests;
mod schema;
mod server;
mod tls;
