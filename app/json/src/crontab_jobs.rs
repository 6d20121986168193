//! Jobs of a crontab, written over the stored ones: for the command line and for the page.

use std::collections::BTreeSet;

use carillon_domain::crontab::{CrontabJob, Line, LineKind, MAIL_LABEL, mail_addresses};
use carillon_domain::name::in_alphabet;
use carillon_domain::schedule::{Options, Schedule};
use serde_json::{Map, Value, json};

use crate::as_written;

/// The label that tells which file a job came from.
pub const LABEL: &str = "crontab";

/// Whether a schedule makes sense; with any name, since names are made from the line.
///
/// # Errors
/// The reason why it does not, as a sentence.
pub fn check_schedule(schedule: &str, timezone: Option<&str>, namespace: &str) -> Result<(), String> {
    let options = Options { timezone, hash_key: namespace, ..Options::default() };
    Schedule::parse(schedule, &options).map(drop).map_err(|error| error.to_string())
}

/// The stored job without the fields that reading adds, and without the pause: a crontab has no word for it.
pub fn definition_of(job: &Value) -> Map<String, Value> {
    let mut fields = job.as_object().cloned().unwrap_or_default();
    as_written(&mut fields);
    fields.remove("paused");
    fields
}

/// The definition of a line's job. Fields that a crontab cannot say stay as they are `before`. `stem` names the file.
pub fn merged(before: Option<Map<String, Value>>, job: &CrontabJob, namespace: &str, stem: &str) -> Map<String, Value> {
    let mut after = before.unwrap_or_default();
    let mut labels = after.get("labels").and_then(Value::as_object).cloned().unwrap_or_default();
    // The user column may have been imported as a label before, and whom to mail.
    labels.remove("user");
    labels.remove(MAIL_LABEL);
    labels.extend(job.labels.iter().map(|(key, value)| (key.clone(), json!(value))));
    labels.insert(LABEL.into(), json!(stem));
    let fields = [
        ("namespace", json!(namespace)),
        ("name", json!(job.name)),
        ("schedule", json!(job.schedule)),
        ("timezone", json!(job.timezone)),
        ("executor", json!("shell")),
        ("params", params(job)),
        ("labels", Value::Object(labels)),
    ];
    after.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    after
}

/// A route that mails what jobs under a `MAILTO=` write. Jobs have the addresses as a label, which the route selects. So the route fits
/// whichever file a job comes from, and a job leaves it when its `MAILTO=` changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailRoute {
    /// The name of the route.
    pub name: String,
    /// The addresses as the label has them.
    pub label: String,
    namespace: String,
    to: Vec<String>,
}

impl MailRoute {
    /// The routes that a crontab needs, each with the place of the line that names its addresses. Of several lines with the same
    /// addresses, the first one counts.
    pub fn wanted<'a>(lines: impl Iterator<Item = &'a Line> + Clone, namespace: &str) -> Vec<(usize, Self)> {
        let mut labels: BTreeSet<&str> = BTreeSet::new();
        for line in lines.clone() {
            if let LineKind::Job(job) = &line.what {
                labels.extend(job.labels.get(MAIL_LABEL).map(String::as_str));
            }
        }
        let mut routes = Vec::new();
        for (place, line) in lines.enumerate() {
            let LineKind::Env { name, value } = &line.what else { continue };
            let label = mail_addresses(value).join(",");
            if name == "MAILTO" && labels.remove(label.as_str()) {
                routes.push((place, Self::of(namespace, &label)));
            }
        }
        routes
    }

    /// The route for jobs of a namespace with that label.
    pub fn of(namespace: &str, label: &str) -> Self {
        let name = in_alphabet(&format!("mailto-{namespace}-{label}"));
        let (label, namespace, to) = (label.to_owned(), namespace.to_owned(), mail_addresses(label));
        Self { name, label, namespace, to }
    }

    /// The route as the API takes it.
    pub fn body(&self) -> Value {
        let only = json!({"namespaces": [self.namespace], "labels": {MAIL_LABEL: self.label}});
        json!({"when": ["output"], "match": only, "to": [{"type": "mail", "to": self.to}]})
    }

    /// Whether a stored route, as the API shows it, mails to these addresses. One that somebody has changed may not.
    pub fn is_done_by(&self, stored: &Value) -> bool {
        stored["to"].as_array().into_iter().flatten().any(|target| target["to"] == json!(self.to))
    }

    /// The sentence for the line of the addresses; `does` is such as `mails`.
    pub fn told(&self, does: &str) -> String {
        format!("the route {} {does} to {} what the jobs below write", self.name, self.label)
    }

    /// The word for a route that somebody has changed.
    pub const CHANGED: &str = "was changed by somebody and stays as it is; it does not mail";
}

/// The shell executor's parameters; without `dir` it starts in the home of its user, as cron does.
fn params(job: &CrontabJob) -> Value {
    let mut params = json!({"command": job.command, "shell": job.shell});
    if !job.env.is_empty() {
        params["env"] = json!(job.env);
    }
    for (key, text) in [("dir", &job.dir), ("stdin", &job.stdin), ("user", &job.user)] {
        if let Some(text) = text {
            params[key] = json!(text);
        }
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_named_after_its_addresses() {
        assert_eq!(MailRoute::of("prod", "ops@example.org,root").name, "mailto-prod-ops_example.org_root");
        assert_eq!(MailRoute::of(&"n".repeat(128), &"é".repeat(200)).name.len(), 128);
    }

    #[test]
    fn a_route_is_wanted_once_and_only_above_jobs() {
        let text =
            "MAILTO=root\nMAILTO=ops@x, root\n* * * * * a\nMAILTO=\n* * * * * b\nMAILTO=ops@x,root\n* * * * * c\n";
        let options =
            carillon_domain::crontab::ImportOptions { file: "x", system: false, ignore_user: false, timezone: None };
        let lines = carillon_domain::crontab::parse(text.as_bytes(), &options, &|_, _| Ok(()));
        let wanted = MailRoute::wanted(lines.iter(), "prod");
        assert_eq!(wanted, [(1, MailRoute::of("prod", "ops@x,root"))]);
        let route = &wanted[0].1;
        assert!(route.is_done_by(&route.body()) && !route.is_done_by(&MailRoute::of("prod", "root").body()));
    }
}
