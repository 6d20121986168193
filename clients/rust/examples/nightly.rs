//! Stores a job unless it is there already, runs it, prints what it prints, and says why its due time came up or did not.
//!
//!     CARILLON_SERVER=http://127.0.0.1:7650 cargo run -p carillon-client --example nightly

use std::error::Error as StdError;
use std::io::{self, Write};

use carillon_client::models::{JobDefinition, JobDefinitionRetry};
use carillon_client::{Client, Error, ListJobs, PutJob, etag, pages};
use serde_json::json;

#[allow(dead_code, reason = "a test calls the rest of the example")]
fn main() -> Result<(), Box<dyn StdError>> {
    nightly(&Client::from_environment()?, "0 3 * * *", &mut io::stdout())
}

/// The example, which prints to `out`.
pub fn nightly(client: &Client, schedule: &str, out: &mut impl Write) -> Result<(), Box<dyn StdError>> {
    let definition = JobDefinition {
        schedule: schedule.into(),
        timezone: Some("Europe/Berlin".into()),
        params: [("command".to_owned(), json!("echo saving; sleep 0.2; echo saved"))].into_iter().collect(),
        retry: Some(JobDefinitionRetry { max_attempts: Some(3), ..JobDefinitionRetry::default() }),
        labels: Some([("team".to_owned(), "data".to_owned())].into_iter().collect()),
        ..JobDefinition::default()
    };
    let plan = client.plan_job("nightly", &Default::default(), &definition)?;
    writeln!(out, "nightly would be {}; it would be due at {}", plan.change, plan.next.join(", "))?;

    let absent = PutJob { if_none_match: Some("*".into()), ..PutJob::default() };
    let job = match client.put_job("nightly", &absent, &definition) {
        Err(error) if error.status() == Some(412) => client.read_job("nightly", None)?,
        stored => stored?,
    };
    let labelled = ListJobs { label: Some("team=data".into()), ..ListJobs::default() };
    for job in pages(|cursor| client.list_jobs(&ListJobs { cursor, ..labelled.clone() })) {
        let job = job?;
        writeln!(out, "{}/{} is {}", job.namespace, job.name, job.state)?;
    }

    let asked = client.run_job("nightly", None, None)?;
    io::copy(&mut client.read_output(&asked.id, Some(true))?, out)?;
    let run = loop {
        // The output ends a moment before the run is recorded.
        let run = client.read_run(&asked.id)?;
        if !["waiting", "running"].contains(&run.status.as_str()) {
            break run;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    writeln!(out, "the run {} with exit code {:?}", run.status, run.exit_code)?;
    writeln!(out, "{}", client.explain_due_time("nightly", &Default::default())?.sentence)?;

    // A change applies only to the generation that was read.
    let faster = PutJob { if_match: Some(etag(job.generation + 7)), ..PutJob::default() };
    match client.put_job("nightly", &faster, &definition) {
        Err(Error::Refused(problem)) => writeln!(out, "refused with {}: {}", problem.status, problem.detail)?,
        other => writeln!(out, "it should have been refused: {other:?}")?,
    }
    Ok(())
}
