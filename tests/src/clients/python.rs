//! The models and calls of `clients/python`.

use std::fmt::Write;

use super::read::{Answer, Call, Field, Kind, Model, Shape, pascal, snake};
use super::{Api, HEADER, Written};

/// Words that no name in Python may be.
const KEYWORDS: [&str; 6] = ["from", "class", "import", "in", "is", "not"];

pub(super) fn files(api: &Api) -> Vec<Written> {
    vec![("python/carillon/models.py".into(), models(api)), ("python/carillon/calls.py".into(), calls(api))]
}

fn models(api: &Api) -> String {
    let mut text = format!("# {HEADER}\n\"\"\"What the API reads and answers, as typed dictionaries.\"\"\"\n\n");
    text.push_str("from typing import Any, Dict, List, Literal, Optional, TypedDict, Union\n\n__all__ = [\n");
    for name in api.models.keys() {
        let _ = writeln!(text, "    \"{name}\",");
    }
    text.push_str("]\n");
    // Aliases are read when the module is loaded, so what they name must stand before them.
    let (aliases, dictionaries): (Vec<_>, Vec<_>) =
        api.models.iter().partition(|(_, model)| !matches!(model.shape, Shape::Fields(_)));
    for (name, model) in dictionaries {
        if let Shape::Fields(fields) = &model.shape {
            text.push_str(&dictionary(name, model.doc.as_deref(), fields, None));
        }
    }
    for (name, model) in aliases {
        text.push_str(&alias(name, model));
    }
    text
}

fn alias(name: &str, model: &Model) -> String {
    match &model.shape {
        Shape::Choice(values) => {
            let values: Vec<String> = values.iter().map(|value| format!("    {value:?},\n")).collect();
            format!("\n\n{name} = Literal[\n{}]\n", values.concat())
        }
        Shape::Tagged(variants) => {
            let mut text = String::new();
            let mut names = Vec::new();
            for (tag, fields) in variants {
                let variant = format!("{name}{}", pascal(tag));
                text.push_str(&dictionary(&variant, None, fields, Some(tag)));
                names.push(format!("    {variant},\n"));
            }
            text + &format!("\n\n{name} = Union[\n{}]\n", names.concat())
        }
        Shape::Fields(_) => String::new(),
    }
}

/// A typed dictionary. Python 3.9 marks no single field as one that may be absent, so those have a class of their own.
fn dictionary(name: &str, doc: Option<&str>, fields: &[Field], tag: Option<&str>) -> String {
    if fields.iter().any(|field| KEYWORDS.contains(&field.name.as_str())) {
        let fields: String =
            fields.iter().map(|field| format!("        \"{}\": \"{}\",\n", field.name, kind(&field.kind))).collect();
        return format!("\n\n{name} = TypedDict(\n    \"{name}\",\n    {{\n{fields}    }},\n)\n");
    }
    let (required, optional): (Vec<&Field>, Vec<&Field>) = fields.iter().partition(|field| field.required);
    let doc = doc.map(|doc| format!("    \"\"\"{}\"\"\"\n", doc.replace('\n', " "))).unwrap_or_default();
    let tag = tag.map(|tag| {
        format!("    type: \"Literal[{tag:?}]\"\n").replace("\"Literal[\"", "'Literal[\"").replace("\"]\"", "\"]'")
    });
    let lines = |fields: &[&Field]| -> String { fields.iter().map(|field| line(field)).collect() };
    let needed = format!("{}{}", tag.unwrap_or_default(), lines(&required));
    let body = |doc: &str, lines: &str| match (doc, lines) {
        ("", "") => "    pass\n".to_owned(),
        (doc, "") => doc.to_owned(),
        ("", lines) => lines.to_owned(),
        (doc, lines) => format!("{doc}\n{lines}"),
    };
    match (needed.is_empty(), optional.is_empty()) {
        (_, true) => format!("\n\nclass {name}(TypedDict):\n{}", body(&doc, &needed)),
        (true, false) => format!("\n\nclass {name}(TypedDict, total=False):\n{}", body(&doc, &lines(&optional))),
        (false, false) => format!(
            "\n\nclass _{name}Always(TypedDict):\n{needed}\n\nclass {name}(_{name}Always, total=False):\n{}",
            body(&doc, &lines(&optional))
        ),
    }
}

fn line(field: &Field) -> String {
    let doc = field.doc.as_ref().map(|doc| format!("    # {}\n", doc.replace('\n', " "))).unwrap_or_default();
    format!("{doc}    {}: \"{}\"\n", field.name, kind(&field.kind))
}

fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Text => "str".into(),
        Kind::Whole => "int".into(),
        Kind::Flag => "bool".into(),
        Kind::Any => "Any".into(),
        Kind::Object => "Dict[str, Any]".into(),
        Kind::Map(inner) => format!("Dict[str, {}]", self::kind(inner)),
        Kind::List(inner) => format!("List[{}]", self::kind(inner)),
        Kind::Named(name) => name.clone(),
        Kind::OrNull(inner) => format!("Optional[{}]", self::kind(inner)),
    }
}

fn calls(api: &Api) -> String {
    let mut text = format!("# {HEADER}\n\"\"\"Every call of the API.\"\"\"\n\n");
    text.push_str("from typing import Any, Generator, Optional\n\nfrom .models import (\n");
    let mut used: Vec<&String> =
        api.calls.iter().flat_map(models_of).filter(|name| api.models.contains_key(*name)).collect();
    used.sort();
    used.dedup();
    for name in used {
        let _ = writeln!(text, "    {name},");
    }
    text.push_str(")\nfrom .transport import Event, Transport\n\n\nclass Calls(Transport):\n    \"\"\"A method for each call of the API.\"\"\"\n");
    for call in &api.calls {
        text.push_str(&method(call));
    }
    text
}

fn models_of(call: &Call) -> Vec<&String> {
    let answer = if let Answer::Model(model) = &call.answer { Some(model) } else { None };
    call.body.iter().map(|(model, _)| model).chain(answer).collect()
}

fn method(call: &Call) -> String {
    let mut arguments = vec!["self".to_owned()];
    arguments.extend(call.in_path.iter().map(|field| format!("{}: {}", snake(&field.name), kind(&field.kind))));
    match &call.body {
        Some((model, true)) => arguments.push(format!("body: {model}")),
        Some((model, false)) => arguments.push(format!("body: Optional[{model}] = None")),
        None => {}
    }
    let others: Vec<&Field> = call.in_query.iter().chain(&call.in_header).collect();
    if !others.is_empty() {
        arguments.push("*".into());
    }
    arguments.extend(others.iter().map(|one| format!("{}: Optional[{}] = None", snake(&one.name), kind(&one.kind))));
    let (answer, how) = match &call.answer {
        Answer::Nothing => ("None".to_owned(), "_nothing"),
        Answer::Model(model) => (model.clone(), "_json"),
        Answer::Json => ("Any".to_owned(), "_json"),
        Answer::Text => ("str".to_owned(), "_text"),
        Answer::Bytes => ("Generator[bytes, None, None]".to_owned(), "_bytes"),
        Answer::Events => ("Generator[Event, None, None]".to_owned(), "_events"),
    };
    let arguments: String = arguments.iter().map(|argument| format!("        {argument},\n")).collect();
    let mut text = format!("\n    def {}(\n{arguments}    ) -> {answer}:\n", snake(&call.id));
    let _ =
        writeln!(text, "        \"\"\"{}.\n\n        ``{} {}``. {}", call.summary, call.method, call.path, call.needs);
    let told: Vec<&Field> = call.in_path.iter().chain(others).collect();
    if !told.is_empty() {
        text.push('\n');
    }
    for field in told {
        let _ = writeln!(text, "        {}: {}", snake(&field.name), field.doc.as_deref().unwrap_or_default());
    }
    text.push_str("        \"\"\"\n");
    let mut parts = vec![format!("{:?}", call.method), format!("{:?}", call.path)];
    let pairs = |fields: &[Field]| -> String {
        let pairs: Vec<String> =
            fields.iter().map(|field| format!("{:?}: {}", field.name, snake(&field.name))).collect();
        format!("{{{}}}", pairs.join(", "))
    };
    for (part, fields) in [("path_values", &call.in_path), ("query", &call.in_query), ("headers", &call.in_header)] {
        if !fields.is_empty() {
            parts.push(format!("{part}={}", pairs(fields)));
        }
    }
    if call.body.is_some() {
        parts.push("body=body".into());
    }
    let parts: String = parts.iter().map(|part| format!("            {part},\n")).collect();
    let _ = match &call.answer {
        Answer::Nothing => write!(text, "        self.{how}(\n{parts}        )\n"),
        // JSON is of any type, until somebody says which.
        Answer::Model(model) => {
            write!(text, "        answer: {model} = self.{how}(\n{parts}        )\n        return answer\n")
        }
        _ => write!(text, "        return self.{how}(\n{parts}        )\n"),
    };
    text
}
