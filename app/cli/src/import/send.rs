//! Sends the jobs of a plan in batches and writes each answer into its row.

use serde_json::{Value, json};

use super::plan::Plan;
use super::report::Row;
use crate::client::{Call, Client, faults};
use crate::progress::Progress;

/// A batch is one transaction on the server up to this many.
const MOST_JOBS: usize = 1_000;
/// Half of what a batch may weigh.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// The remedy where a system crontab names a user that the server may not become.
const NO_SUCH_USER: &str = "or import with --ignore-user: then it runs as the server's own user";

/// Sends everything. What could not be sent becomes an error of its line: importing again sends the rest.
pub(super) fn send(client: &Client, plan: &mut Plan) {
    let mut to_send = std::mem::take(&mut plan.to_send).into_iter().peekable();
    let (all, mut bar) = (to_send.len() as u64, Progress::of_items("importing"));
    while to_send.peek().is_some() {
        let (mut rows, mut jobs, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some((row, job)) = to_send.next_if(|(_, job)| {
            bytes += job.to_string().len();
            jobs.is_empty() || jobs.len() < MOST_JOBS && bytes <= MOST_BYTES
        }) {
            rows.push(row);
            jobs.push(job);
        }
        match client.call(Call::post("/v1/jobs:batch").body(json!({"items": jobs}))) {
            Ok(mut reply) => {
                bar.tell(all - to_send.len() as u64, all);
                let mut answers = reply.take_items().into_iter();
                for row in rows {
                    tell(&mut plan.rows[row], answers.next());
                }
            }
            Err(failure) => {
                let reason = format!("not imported: {}", failure.sentence.replace('\n', "; "));
                let rest: Vec<usize> = to_send.map(|(row, _)| row).collect();
                rows.into_iter().chain(rest).for_each(|row| plan.rows[row].fail(&reason));
                return;
            }
        }
    }
}

fn tell(row: &mut Row, answer: Option<Value>) {
    let answer = answer.unwrap_or_default();
    match answer["status"].as_str() {
        Some(change @ ("created" | "updated" | "unchanged")) => row.change = Some(change.to_owned()),
        Some(_) => {
            let mut reasons = faults(&answer["errors"]);
            if reasons.iter().any(|reason| reason.starts_with("params.user: ")) {
                reasons.push(NO_SUCH_USER.into());
            }
            row.fail(&reasons.join("; "));
        }
        None => row.fail("the server did not say what became of it; import again"),
    }
}

#[cfg(test)]
mod tests {
    use carillon_domain::crontab::{Line, LineKind};

    use super::*;

    #[test]
    fn a_user_that_the_server_may_not_become_has_a_way_out() {
        let line = Line { number: 1, what: LineKind::Comment, note: None };
        let told = |field: &str| {
            let mut row = Row::of(&line);
            let answer = json!({"status": "error", "errors": [{"field": field, "message": "no"}]});
            tell(&mut row, Some(answer));
            (row.status, row.reason)
        };
        assert_eq!(told("params.user"), ("error", Some(format!("params.user: no; {NO_SUCH_USER}"))));
        assert_eq!(told("params.dir"), ("error", Some("params.dir: no".into())));
    }
}
