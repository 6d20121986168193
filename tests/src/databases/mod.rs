//! Private database servers for tests: started by the test, durable, gone when its process is.

pub mod mariadb;
pub mod proxy;
