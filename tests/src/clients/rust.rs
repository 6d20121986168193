//! The models and calls of `clients/rust`.

use std::fmt::Write;

use super::read::{Answer, Call, Field, Kind, Model, Shape, pascal, snake};
use super::{Api, HEADER, Written};

/// Files of a language are kept short, so models and calls go to one of these by their subject.
const SUBJECTS: [(&str, &str); 4] = [
    ("jobs", "Jobs and schedules."),
    ("runs", "Runs and their output."),
    ("alerts", "Routes of alerts, messages and troubles."),
    ("cluster", "Nodes, events, the audit log, and how a node stands."),
];

pub(super) fn files(api: &Api) -> Vec<Written> {
    SUBJECTS.iter().flat_map(|(subject, doc)| [models(api, subject, doc), calls(api, subject, doc)]).collect()
}

/// The subject of a model or a path.
fn subject(name: &str) -> &'static str {
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    if begins(&["Job", "Batch", "Pause", "Due", "Schedule", "/v1/jobs", "/v1/schedules"]) && !name.ends_with("/runs") {
        "jobs"
    } else if begins(&["Run", "Explanation", "/v1/runs", "/v1/jobs"]) {
        "runs"
    } else if begins(&["Alert", "Deliver", "Incident", "/v1/alerts", "/v1/deliveries", "/v1/incidents"]) {
        "alerts"
    } else {
        "cluster"
    }
}

fn models(api: &Api, of: &str, doc: &str) -> Written {
    let mut text = format!("// {HEADER}\n\n//! {doc}\n\nuse serde::{{Deserialize, Serialize}};\n\nuse super::*;\n");
    for (name, model) in api.models.iter().filter(|(name, _)| subject(name) == of) {
        text.push('\n');
        text.push_str(&written(name, model));
    }
    (format!("rust/src/models/{of}.rs"), text)
}

fn written(name: &str, model: &Model) -> String {
    let doc = model.doc.as_ref().map(|doc| format!("/// {}\n", plain(doc))).unwrap_or_default();
    match &model.shape {
        Shape::Choice(values) => {
            let values: String = values.iter().map(|value| format!("    {} = {value:?},\n", pascal(value))).collect();
            format!("choice! {{ {name} {{\n{values}}} }}\n")
        }
        Shape::Fields(fields) => {
            let preset = if model.is_sent { ", Default" } else { "" };
            let fields: String = fields.iter().map(|field| self::field(field, "pub ", "    ")).collect();
            let derived = format!("#[derive(Debug, Clone, PartialEq{preset}, Serialize, Deserialize)]\n");
            format!("{doc}{derived}pub struct {name} {{\n{fields}}}\n")
        }
        Shape::Tagged(variants) => {
            let mut text = format!("{doc}#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]\n");
            let _ = writeln!(text, "#[serde(tag = \"type\")]\npub enum {name} {{");
            for (tag, fields) in variants {
                let fields: String = fields.iter().map(|field| self::field(field, "", "        ")).collect();
                let _ = write!(text, "    #[serde(rename = {tag:?})]\n    {} {{\n{fields}    }},\n", pascal(tag));
            }
            text + "}\n"
        }
    }
}

fn field(field: &Field, visible: &str, indent: &str) -> String {
    let mut text = String::new();
    if let Some(doc) = &field.doc {
        let _ = writeln!(text, "{indent}/// {}", plain(doc));
    }
    let (name, renamed) = named(&field.name);
    let mut attributes = Vec::new();
    if let Some(renamed) = renamed {
        attributes.push(format!("rename = {renamed:?}"));
    }
    let mut kind = kind(&field.kind);
    if !field.required {
        attributes.push("default".into());
        attributes.push("skip_serializing_if = \"Option::is_none\"".into());
        if !matches!(field.kind, Kind::OrNull(_)) {
            kind = format!("Option<{kind}>");
        }
    }
    if !attributes.is_empty() {
        let _ = writeln!(text, "{indent}#[serde({})]", attributes.join(", "));
    }
    let _ = writeln!(text, "{indent}{visible}{name}: {kind},");
    text
}

/// The name of a field in Rust, and the one in JSON where it differs.
fn named(name: &str) -> (String, Option<&str>) {
    match name {
        "match" | "type" => (format!("r#{name}"), None),
        name if snake(name) != name => (snake(name), Some(name)),
        name => (name.to_owned(), None),
    }
}

fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Text => "String".into(),
        Kind::Whole => "i64".into(),
        Kind::Flag => "bool".into(),
        Kind::Any => "serde_json::Value".into(),
        Kind::Object => "serde_json::Map<String, serde_json::Value>".into(),
        Kind::Map(inner) => format!("std::collections::BTreeMap<String, {}>", self::kind(inner)),
        Kind::List(inner) => format!("Vec<{}>", self::kind(inner)),
        Kind::Named(name) => name.clone(),
        Kind::OrNull(inner) => format!("Option<{}>", self::kind(inner)),
    }
}

/// Text for a comment: what stands between angle brackets would be HTML.
fn plain(doc: &str) -> String {
    doc.replace('<', "\\<").replace('\n', " ")
}

fn calls(api: &Api, of: &str, doc: &str) -> Written {
    let mut text = format!(
        "// {HEADER}\n\n//! {doc}\n\nuse crate::call::Call;\nuse crate::models::*;\nuse crate::{{Client, Error}};\n"
    );
    let calls: Vec<&Call> = api.calls.iter().filter(|call| subject(&call.path) == of).collect();
    for call in calls.iter().filter(|call| has_query(call)) {
        text.push_str(&query(call));
    }
    let methods: Vec<String> = calls.iter().map(|call| method(call)).collect();
    let _ = write!(text, "\nimpl Client {{\n{}}}\n", methods.join("\n"));
    (format!("rust/src/calls/{of}.rs"), text)
}

/// Parameters beside the path. A single one is an argument, more are a struct.
fn parameters(call: &Call) -> impl Iterator<Item = &Field> {
    call.in_query.iter().chain(&call.in_header)
}

fn has_query(call: &Call) -> bool {
    parameters(call).count() > 1
}

fn query_name(call: &Call) -> String {
    pascal(&call.id)
}

fn query(call: &Call) -> String {
    let mut text = format!("\n/// Parameters of [`Client::{}`].\n#[derive(Debug, Clone, Default)]\n", snake(&call.id));
    let _ = writeln!(text, "pub struct {} {{", query_name(call));
    for parameter in parameters(call) {
        let doc = parameter.doc.as_deref().unwrap_or_default();
        let _ = writeln!(text, "    /// {}", plain(doc));
        let _ = writeln!(text, "    pub {}: Option<{}>,", snake(&parameter.name), kind(&parameter.kind));
    }
    text + "}\n"
}

fn method(call: &Call) -> String {
    let mut text =
        format!("    /// {}.\n    ///\n    /// `{} {}`. {}\n", call.summary, call.method, call.path, call.needs);
    let mut arguments: Vec<String> = vec!["&self".into()];
    let borrowed = |kind: &Kind| if *kind == Kind::Text { "&str".to_owned() } else { self::kind(kind) };
    arguments.extend(call.in_path.iter().map(|field| format!("{}: {}", snake(&field.name), borrowed(&field.kind))));
    if has_query(call) {
        arguments.push(format!("query: &{}", query_name(call)));
    } else {
        arguments.extend(parameters(call).map(|one| format!("{}: Option<{}>", snake(&one.name), borrowed(&one.kind))));
    }
    match &call.body {
        Some((model, true)) => arguments.push(format!("body: &{model}")),
        Some((model, false)) => arguments.push(format!("body: Option<&{model}>")),
        None => {}
    }
    let (answer, ending) = match &call.answer {
        Answer::Nothing => ("()".to_owned(), "nothing"),
        Answer::Model(model) => (model.clone(), "json"),
        Answer::Json => ("serde_json::Value".to_owned(), "json"),
        Answer::Text => ("String".to_owned(), "text"),
        Answer::Bytes => ("crate::Output".to_owned(), "output"),
        Answer::Events => ("crate::Events".to_owned(), "events"),
    };
    let _ = writeln!(text, "    pub fn {}({}) -> Result<{answer}, Error> {{", snake(&call.id), arguments.join(", "));
    let _ = write!(text, "        let call = Call::new({:?}, {:?})", call.method, call.path);
    let value = |field: &Field| {
        let name = snake(&field.name);
        if has_query(call) { format!("query.{name}.as_ref()") } else { name }
    };
    for field in &call.in_path {
        let _ = write!(text, "\n            .at({:?}, {})", field.name, snake(&field.name));
    }
    for field in &call.in_query {
        let _ = write!(text, "\n            .with({:?}, {})", field.name, value(field));
    }
    for field in &call.in_header {
        let _ = write!(text, "\n            .header({:?}, {})", field.name, value(field));
    }
    match &call.body {
        Some((_, true)) => text.push_str("\n            .body(Some(body))?"),
        Some((_, false)) => text.push_str("\n            .body(body)?"),
        None => {}
    }
    let _ = write!(text, ";\n        self.{ending}(&call)\n    }}\n");
    text
}
