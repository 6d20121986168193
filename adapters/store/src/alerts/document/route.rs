//! Routes. The secrets of a route stand in its document and nowhere else.

use std::collections::BTreeSet;
use std::time::Duration;

use carillon_domain::alert::{Route, Selection, Target, When};
use serde_json::{Value, json};

use super::{Fields, Read, ms, parse};
use crate::StoreResult;

/// The document of a route but for its name.
pub(crate) fn route_text(route: &Route) -> String {
    value(route).to_string()
}

/// Reads a route.
pub(crate) fn route_from(name: &str, text: &str) -> StoreResult<Route> {
    parse(&format!("route {name}"), text, |fields| read(name, fields))
}

/// The same route without what lets others post to its targets: keys, and addresses behind their hosts.
pub(crate) fn route_redacted(route: &Route) -> Route {
    let to = route.to.iter().map(|target| match target {
        Target::Webhook { url, secret } => {
            let secret = secret.as_ref().map(|_| HIDDEN.to_owned());
            Target::Webhook { url: hidden(url), secret }
        }
        Target::Slack { url } => Target::Slack { url: hidden(url) },
        Target::Mattermost { url } => Target::Mattermost { url: hidden(url) },
        Target::Teams { url } => Target::Teams { url: hidden(url) },
        other @ (Target::Mail { .. } | Target::Command { .. }) => other.clone(),
    });
    Route { to: to.collect(), ..route.clone() }
}

/// In place of a secret.
const HIDDEN: &str = "(secret)";

/// The scheme and the host of an address, without user and password.
fn hidden(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if rest == host { format!("{scheme}://{host}") } else { format!("{scheme}://{host}/{HIDDEN}") }
}

fn value(route: &Route) -> Value {
    let Selection { namespaces, labels, jobs } = &route.only;
    json!({
        "when": route.when.iter().map(|when| when.as_str()).collect::<Vec<_>>(),
        "namespaces": namespaces,
        "labels": labels,
        "jobs": jobs,
        "after": route.after,
        "repeat_ms": route.repeat.map(ms),
        "to": route.to.iter().map(target_value).collect::<Vec<_>>(),
    })
}

fn target_value(target: &Target) -> Value {
    let kind = target.kind();
    match target {
        Target::Webhook { url, secret } => json!({ "type": kind, "url": url, "secret": secret }),
        Target::Slack { url } | Target::Mattermost { url } | Target::Teams { url } => {
            json!({ "type": kind, "url": url })
        }
        Target::Mail { to } => json!({ "type": kind, "to": to }),
        Target::Command { command, timeout } => {
            json!({ "type": kind, "command": command, "timeout_ms": ms(*timeout) })
        }
    }
}

fn read(name: &str, fields: &Fields<'_>) -> Read<Route> {
    let when = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        When::from_name(name).ok_or_else(|| format!("when {name} is not known"))
    };
    let label = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    let labels = fields.maybe("labels").and_then(Value::as_object);
    Ok(Route {
        name: name.to_owned(),
        when: fields.list("when").iter().map(when).collect::<Read<BTreeSet<_>>>()?,
        only: Selection {
            namespaces: fields.texts("namespaces"),
            labels: labels.into_iter().flatten().filter_map(label).collect(),
            jobs: fields.texts("jobs"),
        },
        after: fields.small("after")?,
        repeat: fields.maybe("repeat_ms").and_then(Value::as_u64).map(Duration::from_millis),
        to: fields.list("to").iter().map(|target| read_target(&Fields(target))).collect::<Read<_>>()?,
    })
}

fn read_target(fields: &Fields<'_>) -> Read<Target> {
    let url = || fields.owned("url");
    Ok(match fields.text("type")? {
        "webhook" => Target::Webhook { url: url()?, secret: fields.maybe_text("secret") },
        "slack" => Target::Slack { url: url()? },
        "mattermost" => Target::Mattermost { url: url()? },
        "teams" => Target::Teams { url: url()? },
        "mail" => Target::Mail { to: fields.texts("to") },
        "command" => Target::Command { command: fields.owned("command")?, timeout: fields.duration("timeout_ms")? },
        other => return Err(format!("type {other} is not known")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> Route {
        let slack = "https://user:pass@hooks.slack.com/services/T0/B0/token".to_owned();
        Route {
            name: "ops".into(),
            when: When::ALL.into(),
            only: Selection {
                namespaces: vec!["a".into()],
                labels: [("team".into(), "data".into())].into(),
                jobs: vec!["*".into()],
            },
            after: 3,
            repeat: Some(Duration::from_secs(3_600)),
            to: vec![
                Target::Webhook { url: "https://example.org/x?k=token".into(), secret: Some("hush".into()) },
                Target::Slack { url: slack.clone() },
                Target::Mattermost { url: slack.clone() },
                Target::Teams { url: slack },
                Target::Mail { to: vec!["ops@example.org".into()] },
                Target::Command { command: "logger".into(), timeout: Duration::from_secs(3) },
            ],
        }
    }

    #[test]
    fn a_route_survives_its_document() {
        assert_eq!(route_from("ops", &route_text(&route())), Ok(route()));
    }

    #[test]
    fn no_secret_is_in_a_redacted_route() {
        let text = route_text(&route_redacted(&route()));
        for secret in ["hush", "token", "pass"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.contains("https://hooks.slack.com/(secret)"), "{text}");
    }

    #[test]
    fn a_kind_of_a_newer_binary_is_named() {
        let text = route_text(&route()).replace("\"lost\"", "\"doomed\"");
        assert!(route_from("ops", &text).unwrap_err().to_string().contains("when doomed is not known"));
    }
}
