//! The parameters of paths, queries and headers.

use serde_json::{Value, json};

use carillon_json::MOST_DUE_TIMES;
use carillon_json::schema::{NAME, RUN_ID, STATES, STATUSES};

/// A parameter of a query, or a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Parameter {
    Namespace,
    Namespaces,
    Prefix,
    Label,
    State,
    Paused,
    Limit,
    Cursor,
    Status,
    Since,
    Until,
    At,
    Count,
    Follow,
    IfMatch,
    IfNoneMatch,
    Job,
    Who,
    Action,
    Types,
    SinceEvent,
    LastEventId,
    Route,
    DeliveryState,
}

impl Parameter {
    /// As the document shows it.
    pub fn shown(self) -> Value {
        let (name, schema, description) = self.parts();
        let is_header = matches!(self, Parameter::IfMatch | Parameter::IfNoneMatch | Parameter::LastEventId);
        let place = if is_header { "header" } else { "query" };
        json!({"name": name, "in": place, "required": false, "schema": schema, "description": description})
    }

    fn parts(self) -> (&'static str, Value, &'static str) {
        let time = || json!({"type": "string", "format": "date-time"});
        match self {
            Parameter::Namespace => ("namespace", name(), "The namespace of the job; `default` if it is not given."),
            Parameter::Namespaces => (
                "namespace",
                json!({"anyOf": [{"const": "*"}, name()]}),
                "One namespace, or `*` for all; `default` if it is not given.",
            ),
            Parameter::Prefix => ("prefix", json!({"type": "string", "maxLength": 128}), "Names that begin so."),
            Parameter::Label => ("label", json!({"type": "string"}), "`KEY` or `KEY=VALUE`."),
            Parameter::State => ("state", json!({"enum": STATES}), "How the jobs stand."),
            Parameter::Paused => ("paused", json!({"type": "boolean"}), "Paused jobs, or the others."),
            Parameter::Limit => {
                let limit = json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": 100});
                ("limit", limit, "How many items a page has at the most.")
            }
            Parameter::Cursor => ("cursor", json!({"type": "string"}), "`next_cursor` of the page before."),
            Parameter::Status => ("status", json!({"enum": STATUSES}), "How the runs stand."),
            Parameter::Since => ("since", time(), "Due at this time or later."),
            Parameter::Until => ("until", time(), "Due before this time."),
            Parameter::At => ("at", time(), "The due time; the latest that has passed if it is not given."),
            Parameter::Count => {
                let count = json!({"type": "integer", "minimum": 1, "maximum": MOST_DUE_TIMES, "default": 10});
                ("count", count, "How many due times.")
            }
            Parameter::Follow => ("follow", json!({"type": "boolean", "default": false}), "Go on until the run ends."),
            Parameter::Job => ("job", name(), "Only of this job."),
            Parameter::Types => {
                let text = "Types of events, separated by commas; all but `audit.written` if it is not given.";
                ("types", json!({"type": "string"}), text)
            }
            Parameter::SinceEvent => (
                "since",
                json!({"type": "string"}),
                "As `Last-Event-ID`, for readers that send no header; the header goes before.",
            ),
            Parameter::LastEventId => (
                "Last-Event-ID",
                json!({"type": "string"}),
                "The `id` of the last event that was read, to go on behind it.",
            ),
            Parameter::Route => ("route", name(), "Only of this route."),
            Parameter::DeliveryState => {
                ("state", json!({"enum": carillon_domain::alert::DeliveryState::NAMES}), "How the deliveries stand.")
            }
            Parameter::Who => ("who", json!({"type": "string"}), "Changes by the token of this name."),
            Parameter::Action => {
                let actions = json!({"enum": carillon_store::Action::ALL.map(carillon_store::Action::as_str)});
                ("action", actions, "Changes of this kind.")
            }
            Parameter::IfMatch => {
                let tag = json!({"type": "string", "pattern": "^(\\*|\"[0-9]+\")$"});
                ("If-Match", tag, "The ETag of the definition as it was read; 412 if it has changed since.")
            }
            Parameter::IfNoneMatch => {
                ("If-None-Match", json!({"const": "*"}), "Only if there is no such job; 412 if there is one.")
            }
        }
    }
}

fn name() -> Value {
    json!({"type": "string", "pattern": NAME, "minLength": 1, "maxLength": 128})
}

/// A parameter of a path, by its name.
pub(super) fn in_path(parameter: &str) -> Value {
    let (schema, description) = match parameter {
        "id" => (json!({"type": "string", "pattern": RUN_ID}), "The run."),
        "alert" => (name(), "The route."),
        "delivery" => (json!({"type": "integer", "minimum": 0}), "The delivery."),
        _ => (name(), "The job."),
    };
    json!({"name": parameter, "in": "path", "required": true, "schema": schema, "description": description})
}
