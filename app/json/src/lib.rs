//! HTTP's representation of jobs and runs, and its translation to and from the domain's.
//!
//! Two representations of a job exist, the domain's and this one. What comes in is checked here completely, and every
//! fault of a body is told at once; what goes out carries no secret. Nothing here is asynchronous or asks a database.

mod alerts;
mod audit;
pub mod crontab_jobs;
mod cursor;
mod definition;
mod diff;
mod fields;
mod job;
mod parse;
mod run;
pub mod schema;
mod secret;
mod timing;
mod why;

pub use alerts::{delivery_json, incident_json, route_json, route_of, stored_route_json};
pub use audit::{audit_json, window_json};
pub use cursor::{
    audit_cursor, delivery_cursor, job_cursor, read_audit_cursor, read_delivery_cursor, read_job_cursor,
    read_run_cursor, run_cursor,
};
pub use definition::{ADDED_BY_READING, Definition, DefinitionContext, as_written, definition, schedule_fault};
pub use diff::{ChangedField, changed_fields};
pub use fields::{FieldError, Fields, read_time};
pub use job::job_json;
pub use job::{definition_json, next_due_at, shown_params};
pub use parse::{BadJson, MAX_DEPTH, parse_json};
pub use run::{checked_run_params, recorded_json, run_json, run_params, shown_run_params};
pub use secret::{fill_secrets, is_redacted, masked, values as secrets_of};
pub use timing::timing_json;
pub use why::{Why, why_json};

/// How many due times are answered at the most.
pub const MOST_DUE_TIMES: u32 = 1_000;
