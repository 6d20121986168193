//! Routes, deliveries and incidents as tables.

use serde_json::Value;

use crate::job::short;
use crate::table::{Table, cell, printable};

/// One line a route.
pub(super) fn routes(items: &[Value]) -> String {
    let mut table = Table::new(["NAME", "WHEN", "OF", "TO"]);
    for route in items {
        table.row([cell(&route["name"]), words(&route["when"]), selection(&route["match"]), targets(route).join(", ")]);
    }
    table.text()
}

/// A route, a line for each part.
pub(super) fn route(route: &Value) -> String {
    let mut text = format!("{}\n", printable(&cell(&route["name"])));
    let mut line = |name: &str, value: &str| text.push_str(&format!("  {name:<8} {}\n", printable(value)));
    line("when", &words(&route["when"]));
    line("of", &selection(&route["match"]));
    line("after", &format!("{} in a row", cell(&route["after"])));
    line("repeat", route["repeat"].as_str().unwrap_or("each time"));
    for target in targets(route) {
        line("to", &target);
    }
    line("version", &format!("{}, changed {}", cell(&route["version"]), short(&cell(&route["updated_at"]))));
    text
}

fn words(list: &Value) -> String {
    let words: Vec<String> = list.as_array().into_iter().flatten().map(cell).collect();
    words.join(", ")
}

fn selection(only: &Value) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (key, noun) in [("namespaces", "namespace"), ("jobs", "job")] {
        if only[key].as_array().is_some_and(|names| !names.is_empty()) {
            parts.push(format!("{noun} {}", words(&only[key])));
        }
    }
    let labels = only["labels"].as_object().into_iter().flatten();
    parts.extend(labels.map(|(key, value)| format!("label {key}={}", cell(value))));
    if parts.is_empty() { "everything".into() } else { parts.join("; ") }
}

fn targets(route: &Value) -> Vec<String> {
    let shown = |target: &Value| {
        let place = match (&target["url"], &target["to"], &target["command"]) {
            (Value::String(url), ..) => url.clone(),
            (_, to @ Value::Array(_), _) => words(to),
            (.., command) => cell(command),
        };
        format!("{} {place}", cell(&target["type"]))
    };
    route["to"].as_array().into_iter().flatten().map(shown).collect()
}

/// One line a delivery.
pub(super) fn deliveries(items: &[Value]) -> String {
    let mut table = Table::new(["ID", "MADE", "ROUTE", "TO", "OF", "STATE", "TRIES", "ANSWER"]);
    for delivery in items {
        let notice = &delivery["notice"];
        let about = match (notice["namespace"].as_str(), notice["job"].as_str(), delivery["ping"]["kind"].as_str()) {
            (Some(namespace), Some(job), _) => format!("{} of {namespace}/{job}", cell(&notice["when"])),
            (.., Some(kind)) => format!("{kind} of run {}", cell(&delivery["ping"]["run"])),
            _ if notice["state"] == "test" => "a test".to_owned(),
            _ => cell(&notice["when"]),
        };
        table.row([
            cell(&delivery["id"]),
            short(&cell(&delivery["made_at"])),
            cell(&delivery["route"]),
            format!("{} {}", cell(&delivery["type"]), cell(&delivery["host"])),
            about,
            cell(&delivery["state"]),
            cell(&delivery["tries"]),
            cell(&delivery["answer"]),
        ]);
    }
    table.text()
}

/// One line an incident.
pub(super) fn incidents(items: &[Value]) -> String {
    let mut table = Table::new(["SINCE", "ROUTE", "OF", "TOLD", "SENTENCE"]);
    for incident in items {
        let about = match (incident["namespace"].as_str(), incident["job"].as_str()) {
            (Some(namespace), Some(job)) => format!("{namespace}/{job}"),
            _ => cell(&incident["part"]),
        };
        let told =
            if incident["told_at"].is_null() { "not yet".to_owned() } else { short(&cell(&incident["told_at"])) };
        let since = short(&cell(&incident["since"]));
        table.row([since, cell(&incident["route"]), about, told, cell(&incident["sentence"])]);
    }
    table.text()
}
