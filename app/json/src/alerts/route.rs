//! Routes.

use std::collections::{BTreeMap, BTreeSet};

use carillon_domain::alert::{Route, Selection, When};
use carillon_domain::duration;
use carillon_store::alerts::StoredRoute;
use serde_json::{Value, json};

use super::target::{target_json, target_of};
use crate::{FieldError, Fields};

/// The fields that reading adds.
const ADDED_BY_READING: [&str; 3] = ["version", "created_at", "updated_at"];

/// A route without its secrets.
pub fn route_json(route: &Route) -> Value {
    let Selection { namespaces, labels, jobs } = &route.only;
    json!({
        "name": route.name,
        "when": route.when.iter().map(|when| when.as_str()).collect::<Vec<_>>(),
        "match": {"namespaces": namespaces, "labels": labels, "jobs": jobs},
        "after": route.after,
        "repeat": route.repeat.map(duration::format),
        "to": route.to.iter().map(target_json).collect::<Vec<_>>(),
    })
}

/// The same, with what the store knows of it. It may be put back as it was read.
pub fn stored_route_json(stored: &StoredRoute) -> Value {
    let mut out = route_json(&stored.route);
    out["version"] = json!(stored.version);
    out["created_at"] = json!(stored.created_at.to_string());
    out["updated_at"] = json!(stored.updated_at.to_string());
    out
}

/// Reads a route. `name` is the one of the path, `stored` the route of that name, whose secrets stay where they are not given.
///
/// # Errors
/// Every fault of the body.
pub fn route_of(body: Value, name: &str, stored: Option<&Route>) -> Result<Route, Vec<FieldError>> {
    let mut fields = Fields::of(body, "a route")?;
    if let Some(given) = fields.text("name").filter(|given| given != name) {
        let shown: String = given.chars().take(64).collect();
        fields.fault("name", format!("it is {shown:?} here and {name} in the path"));
    }
    let when = when(&mut fields);
    let only = selection(&mut fields);
    let after = fields.integer("after", 1..=Route::MOST_AFTER).unwrap_or(1);
    let repeat = fields.duration("repeat", Route::LEAST_REPEAT..=Route::MOST_REPEAT);
    let stored = stored.map_or(&[][..], |stored| &stored.to);
    let given = fields.objects("to", "an array of targets");
    if given.is_none() && !fields.is_faulty() {
        fields.fault(
            "to",
            "it is required: an array of targets, such as {\"type\": \"mail\", \"to\": [\"ops@example.org\"]}",
        );
    }
    let targets = given.unwrap_or_default().into_iter().enumerate();
    let to: Vec<_> = targets.filter_map(|(place, target)| target_of(target, place, stored)).collect();
    fields.ignore(&ADDED_BY_READING);
    let route = Route { name: name.to_owned(), when, only, after, repeat, to };
    if !fields.is_faulty()
        && let Err(error) = route.check()
    {
        fields.fault(&error.field, error.message);
    }
    fields.finish()?;
    Ok(route)
}

fn when(fields: &mut Fields) -> BTreeSet<When> {
    let mut all = BTreeSet::new();
    for name in fields.texts("when").unwrap_or_default() {
        match When::from_name(&name) {
            Some(when) => drop(all.insert(when)),
            None => {
                let known = When::ALL.map(When::as_str).join(", ");
                let shown: String = name.chars().take(64).collect();
                fields.fault("when", format!("{shown:?} is no kind of fact: there are {known}"));
            }
        }
    }
    all
}

fn selection(fields: &mut Fields) -> Selection {
    let Some(mut inner) = fields.object("match") else { return Selection::default() };
    let namespaces = inner.texts("namespaces").unwrap_or_default();
    let jobs = inner.texts("jobs").unwrap_or_default();
    let mut labels = BTreeMap::new();
    if let Some(mut given) = inner.object("labels") {
        for (key, value) in given.take_rest() {
            match value {
                Value::String(value) => drop(labels.insert(key, value)),
                other => drop(given.wrong::<()>(&key, "a string", &other)),
            }
        }
    }
    inner.refuse_rest();
    Selection { namespaces, labels, jobs }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body() -> Value {
        json!({
            "when": ["failed", "recovered"], "match": {"namespaces": ["prod"], "labels": {"team": "data"}, "jobs": ["nightly-*"]},
            "after": 2, "repeat": "4h",
            "to": [
                {"type": "webhook", "url": "https://example.org/hook?k=1", "secret": "hush"},
                {"type": "slack", "url": "https://hooks.slack.com/services/x"},
                {"type": "mail", "to": ["ops@example.org"]},
                {"type": "command", "command": "logger", "timeout": "5s"},
            ],
        })
    }

    #[test]
    fn a_route_that_is_read_and_put_back_keeps_its_secrets() {
        let route = route_of(body(), "ops", None).unwrap();
        let shown = route_json(&route);
        for secret in ["hush", "k=1", "services"] {
            assert!(!shown.to_string().contains(secret), "{shown}");
        }
        assert_eq!(route_of(shown.clone(), "ops", Some(&route)), Ok(route.clone()));
        let mut moved = shown;
        moved["to"].as_array_mut().unwrap().reverse();
        let moved = route_of(moved, "ops", Some(&route)).unwrap();
        assert_eq!(moved.to.iter().rev().cloned().collect::<Vec<_>>(), route.to);
    }

    #[test]
    fn secrets_that_are_stored_nowhere_are_asked_for() {
        let route = route_of(body(), "ops", None).unwrap();
        let faults = route_of(route_json(&route), "ops", None).unwrap_err();
        let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["to[0].url", "to[0].secret", "to[1].url"]);
    }

    #[test]
    fn every_fault_names_its_field() {
        for (path, value, field) in [
            ("when", json!(["burned"]), "when"),
            ("when", json!([]), "when"),
            ("when", json!("failed"), "when"),
            ("match", json!({"jobs": ["a b"]}), "match.jobs"),
            ("match", json!({"labels": {"a": 1}}), "match.labels.a"),
            ("match", json!({"job": "a"}), "match.job"),
            ("after", json!(0), "after"),
            ("repeat", json!("1s"), "repeat"),
            ("name", json!("other"), "name"),
            ("colour", json!("red"), "colour"),
            ("to", json!([]), "to"),
            ("to", json!(null), "to"),
            ("to", json!(["x"]), "to[0]"),
            ("to", json!([{"type": "pigeon"}]), "to[0].type"),
            ("to", json!([{"type": "mail", "to": ["a b"]}]), "to[0].to"),
            ("to", json!([{"type": "webhook"}]), "to[0].url"),
            ("to", json!([{"type": "slack", "url": "https://x.org/y", "secret": "k"}]), "to[0].secret"),
            ("to", json!([{"type": "command", "command": "x", "timeout": "1h"}]), "to[0].timeout"),
        ] {
            let mut body = body();
            body[path] = value;
            let faults = route_of(body, "ops", None).unwrap_err();
            assert_eq!(faults[0].field, field, "{faults:?}");
        }
    }
}
