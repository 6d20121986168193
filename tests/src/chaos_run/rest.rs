//! After the last fault: all nodes schedule again, nothing comes due any more, nothing runs.

use std::time::{Duration, Instant};

use carillon_checker::Act;
use mysql_async::prelude::Queryable;

use super::caller::Caller;
use super::{operators, wait_until_us};
use crate::chaos::Field;

/// Waits until everything has come to rest; how long that took, or what it was that did not.
pub fn come_to_rest(
    field: &Field,
    caller: &Caller,
    acts: &mut Vec<Act>,
    until_us: i64,
    patience: Duration,
) -> Result<Duration, String> {
    let begun = Instant::now();
    let is_ready = |n: usize| matches!(caller.call(n, "GET", "/readyz", None), Some((200, _)));
    come(begun, patience, || match (0..field.nodes.len()).find(|n| !is_ready(*n)) {
        None => Ok(()),
        Some(n) => Err(format!("{} is not ready", field.nodes[n].name())),
    })?;
    operators::resume_all(caller, acts, patience)?;
    wait_until_us(until_us);
    let begun = Instant::now();
    come(begun, patience, || {
        let jobs = caller.all("/v1/jobs?").ok_or("no node answers")?;
        let busy = jobs.iter().find(|job| job["state"] != "idle" || !job["next_due_at"].is_null());
        busy.map_or(Ok(()), |job| Err(format!("{} is {}, due {}", job["name"], job["state"], job["next_due_at"])))
    })?;
    // Runs beside a job's own are not its state's business.
    come(begun, patience, || {
        let runs = caller.all("/v1/runs?").ok_or("no node answers")?;
        let unsettled = runs.iter().find(|run| run["status"] == "running" || run["status"] == "waiting");
        unsettled.map_or(Ok(()), |run| Err(format!("{} of {} is {}", run["id"], run["job"], run["status"])))
    })?;
    Ok(begun.elapsed())
}

fn come(begun: Instant, patience: Duration, mut condition: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    while let Err(why) = condition() {
        if begun.elapsed() > patience {
            return Err(format!("waited {patience:?} in vain: {why}"));
        }
        std::thread::park_timeout(Duration::from_millis(500));
    }
    Ok(())
}

/// The database's own version.
pub fn version(field: &Field) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let version: Option<String> = runtime.block_on(async {
        field.server().root().await.query_first("SELECT VERSION()").await.expect("the server answers")
    });
    version.unwrap_or_default()
}
