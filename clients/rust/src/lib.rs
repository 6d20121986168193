//! A client of the HTTP API of Carillon, a distributed crontab server.
//!
//! [`Client`] has a method for each call of the API, and [`models`] the types that they take and answer. Both are written from the OpenAPI
//! document of the server. The client blocks: a call has a thread of its own where others must go on meanwhile.
//!
//! ```no_run
//! use carillon_client::models::JobDefinition;
//! use carillon_client::{Client, Error};
//!
//! # fn main() -> Result<(), Error> {
//! let client = Client::from_environment()?;
//! let params = [("command".to_owned(), "pg_dump app > /backup/app.sql".into())].into_iter().collect();
//! let job = JobDefinition { schedule: "0 3 * * *".into(), params, ..JobDefinition::default() };
//! let job = client.put_job("nightly-backup", &Default::default(), &job)?;
//! println!("next due at {:?}", job.next_due_at);
//! # Ok(())
//! # }
//! ```

mod call;
mod calls;
mod client;
mod error;
mod events;
pub mod models;
mod output;
mod pages;

pub use calls::*;
pub use client::{Client, Settings};
pub use error::Error;
pub use events::{Event, Events};
pub use output::Output;
pub use pages::{Page, Pages, pages};

/// The entity tag of a generation, for `if_match`.
pub fn etag(generation: i64) -> String {
    format!("\"{generation}\"")
}
