//! Plugins on a real server: shipped ones, broken ones, one in C, and what their README shows.

mod broken;
mod c;
mod e2e;
mod http;
mod own_readme;
