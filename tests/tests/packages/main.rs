//! How Carillon is installed and run by others: service manager, container, packages.

mod manager;
mod process_one;
