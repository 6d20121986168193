//! Private database servers for tests: started by the test, durable, gone when its process is.

mod brand;
mod database;
pub mod proxy;
mod server;

pub use brand::Brand;
pub use database::Database;
pub use server::Server;
