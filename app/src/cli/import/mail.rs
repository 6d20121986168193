//! `MAILTO=`: a route `output` by mail for each set of addresses and each namespace.
//!
//! Jobs under it have the label `mailto`, which the route selects. So the route fits whichever file a job comes from, and a job leaves it when
//! its `MAILTO=` changes. A route that somebody has changed stays as it is.

use std::collections::BTreeSet;

use carillon_domain::crontab::{Line, LineKind, MAIL_LABEL, mail_addresses};
use serde_json::{Value, json};

use super::report::Row;
use crate::cli::client::{Call, Client};
use crate::cli::failure::{CommandFailure, FailureKind};

/// Makes the routes that the lines need, and says so at the lines of `MAILTO=`. `rows` are those of the lines, in their order.
pub(super) fn routes(client: &Client, namespace: &str, dry_run: bool, lines: &[Line], rows: &mut [Row]) {
    let mut wanted: BTreeSet<&str> = BTreeSet::new();
    for line in lines {
        if let LineKind::Job(job) = &line.what {
            wanted.extend(job.labels.get(MAIL_LABEL).map(String::as_str));
        }
    }
    for (line, row) in lines.iter().zip(rows) {
        let LineKind::Env { name, value } = &line.what else { continue };
        let to = mail_addresses(value);
        let label = to.join(",");
        // Of several lines with the same addresses, the first one tells.
        if name != "MAILTO" || !wanted.remove(label.as_str()) {
            continue;
        }
        let name = route_name(namespace, &label);
        let told = match dry_run {
            true => Ok("would mail"),
            false => make(client, &name, namespace, &label, &to),
        };
        match told {
            Ok(does) => row.reason = Some(format!("the route {name} {does} to {label} what the jobs below write")),
            Err(failure) => row.fail(&format!("no route mails what the jobs below write: {}", failure.sentence)),
        }
    }
}

/// Makes the route unless there is one of its name.
fn make(
    client: &Client,
    name: &str,
    namespace: &str,
    label: &str,
    to: &[String],
) -> Result<&'static str, CommandFailure> {
    let path = format!("/v1/alerts/{name}");
    match client.call(Call::get(path.as_str())) {
        Ok(found) if mails(&found.body, to) => return Ok("mails already"),
        Ok(_) => return Ok("was changed by somebody and stays as it is; it does not mail"),
        Err(failure) if failure.kind == FailureKind::NotFound => {}
        Err(failure) => return Err(failure),
    }
    let only = json!({"namespaces": [namespace], "labels": {MAIL_LABEL: label}});
    let route = json!({"when": ["output"], "match": only, "to": [{"type": "mail", "to": to}]});
    client.call(Call::put(path).body(route)).map(|_| "mails")
}

fn mails(route: &Value, to: &[String]) -> bool {
    route["to"].as_array().into_iter().flatten().any(|target| target["to"] == json!(to))
}

/// The addresses in the alphabet of names.
fn route_name(namespace: &str, label: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    format!("mailto-{namespace}-{label}").chars().map(plain).take(128).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_named_after_its_addresses() {
        assert_eq!(route_name("prod", "ops@example.org,root"), "mailto-prod-ops_example.org_root");
        assert_eq!(route_name(&"n".repeat(128), &"é".repeat(200)).len(), 128);
    }
}
