//! `carillon audit`: who changed what, from where.

use carillon_domain::time::Timestamp;
use clap::Args;
use serde_json::Value;

use super::args::{ServerArgs, job_name, namespaces, time};
use super::client::{Call, Client};
use super::failure::CommandFailure;
use super::job::short;
use super::out::{Out, note};
use super::table::{Table, cell, cut, printable};
use carillon_json::{ChangedField, changed_fields};

/// How wide the columns of the table may be, in characters: time, token, action and target. With two blanks between them a line
/// has 80 at the most.
const WIDEST: [usize; 4] = [20, 14, 15, 25];

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The namespace [default: all that the token may see]
    #[arg(long, short, value_name = "NS", value_parser = namespaces)]
    pub namespace: Option<String>,
    /// Changes of jobs of this name
    #[arg(long, value_name = "NAME", value_parser = job_name)]
    pub job: Option<String>,
    /// Changes by the token of this name
    #[arg(long, value_name = "NAME")]
    pub who: Option<String>,
    /// Changes of this kind, such as job.updated
    #[arg(long, value_name = "ACTION")]
    pub action: Option<String>,
    /// Made at this time or later (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Option<Timestamp>,
    /// Made before this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until: Option<Timestamp>,
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// Also show from where each change came, and the fields that differ
    #[arg(long, conflicts_with = "json")]
    pub diff: bool,
}

/// `carillon audit`
pub fn audit(args: &AuditArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let call = Call::get("/v1/audit")
        .with_some("namespace", args.namespace.as_ref())
        .with_some("job", args.job.as_ref())
        .with_some("who", args.who.as_ref())
        .with_some("action", args.action.as_ref())
        .with_some("since", args.since)
        .with_some("until", args.until);
    let client = Client::new(&args.server)?;
    if args.server.json {
        return client.each(&call, Some(args.limit), |entry| out.json(&entry));
    }
    let entries = client.all(&call, Some(args.limit))?;
    if entries.is_empty() {
        note("no entry fits");
        return Ok(());
    }
    if args.diff {
        return entries.iter().try_for_each(|entry| out.bytes(detail(entry).as_bytes()));
    }
    let mut table = Table::new(["TIME", "WHO", "ACTION", "TARGET"]);
    for entry in &entries {
        let cells = [short(&cell(&entry["at"])), cell(&entry["who"]), cell(&entry["action"]), target(entry)];
        table.row(cells.iter().zip(WIDEST).map(|(cell, widest)| cut(&printable(cell), widest)));
    }
    out.bytes(table.text().as_bytes())
}

/// The job with its namespace, or else the run.
fn target(entry: &Value) -> String {
    match (entry["namespace"].as_str(), entry["job"].as_str()) {
        (Some(namespace), Some(job)) => format!("{namespace}/{job}"),
        (Some(namespace), None) => namespace.to_owned(),
        _ => cell(&entry["run"]),
    }
}

/// An entry with the fields that its change touched.
fn detail(entry: &Value) -> String {
    let part = |key: &str| printable(&cell(&entry[key]));
    let mut text = format!("{}  {}  {}", short(&part("at")), part("action"), printable(&target(entry)));
    if let Some(run) = entry["run"].as_str() {
        text.push_str(&format!("  run {}", printable(run)));
    }
    text.push_str(&format!("\n  by {} from {}\n", part("who"), part("from")));
    let (before, after) = (&entry["before"], &entry["after"]);
    let lines = changed(before, after);
    let nothing_shown = lines.is_empty() && !before.is_null() && !after.is_null();
    lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    if nothing_shown {
        text.push_str("  only values of secrets changed\n");
    }
    text
}

/// The fields that differ: `- field: value` as it was, `+ field: value` as it is.
fn changed(before: &Value, after: &Value) -> Vec<String> {
    let lines = |field: ChangedField| {
        let path = printable(&field.path);
        let line = move |(sign, value): (char, Value)| {
            (!value.is_null()).then(|| format!("{sign} {path}: {}", printable(&value.to_string())))
        };
        [('-', field.before), ('+', field.after)].into_iter().filter_map(line).collect::<Vec<_>>()
    };
    changed_fields(before, after).into_iter().flat_map(lines).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_shown() {
        let before =
            json!({"schedule": "@daily", "params": {"command": "x", "env": {"P": {"secret": true}}}, "pause": null});
        let mut after = before.clone();
        assert!(changed(&before, &after).is_empty());
        after["params"]["command"] = json!("y\u{1b}[2J");
        after["pause"] = json!({"reason": "holiday"});
        let expected =
            [r#"- params.command: "x""#, r#"+ params.command: "y\u001b[2J""#, r#"+ pause: {"reason":"holiday"}"#];
        assert_eq!(changed(&before, &after), expected);
        assert_eq!(changed(&Value::Null, &json!({"a": 1, "b": null})), ["+ a: 1"]);
        assert_eq!(changed(&json!({"a": 1}), &Value::Null), ["- a: 1"]);
    }

    #[test]
    fn a_change_that_shows_nothing_is_one_of_secrets() {
        let state = json!({"schedule": "@daily"});
        let entry = |before: Value, after: Value| {
            json!({"at": "2027-01-01T00:00:00.000Z", "who": "ops", "from": "::1",
            "action": "job.updated", "namespace": "a", "job": "b", "run": null, "before": before, "after": after})
        };
        assert!(detail(&entry(state.clone(), state)).ends_with("by ops from ::1\n  only values of secrets changed\n"));
        assert!(detail(&entry(Value::Null, Value::Null)).ends_with("by ops from ::1\n"));
    }
}
