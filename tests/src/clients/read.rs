//! The OpenAPI document as models and calls, in no language yet.
//!
//! It reads the part of JSON Schema that the document uses, and panics at anything else: a test runs it, and a schema that is not
//! understood must not become a client that is wrong.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Everything that a client is written from.
#[derive(Debug)]
pub struct Api {
    /// In the order of their names.
    pub models: BTreeMap<String, Model>,
    /// In the order of the document.
    pub calls: Vec<Call>,
}

/// A named type.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub doc: Option<String>,
    pub shape: Shape,
    /// Whether a client writes it, so that it must be easy to make.
    pub is_sent: bool,
}

/// How a model looks.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// An object with fields.
    Fields(Vec<Field>),
    /// One of some texts.
    Choice(Vec<String>),
    /// One of some objects, told apart by the field `type`.
    Tagged(Vec<(String, Vec<Field>)>),
}

/// A field of an object, or a parameter of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub doc: Option<String>,
    pub kind: Kind,
    /// Whether it is always there.
    pub required: bool,
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Text,
    Whole,
    Flag,
    Any,
    /// An object of which nothing is known.
    Object,
    Map(Box<Kind>),
    List(Box<Kind>),
    Named(String),
    OrNull(Box<Kind>),
}

impl Kind {
    fn or_null(self) -> Self {
        if matches!(self, Kind::OrNull(_)) { self } else { Kind::OrNull(Box::new(self)) }
    }
}

/// An operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub id: String,
    pub method: String,
    pub path: String,
    pub summary: String,
    pub needs: String,
    pub in_path: Vec<Field>,
    pub in_query: Vec<Field>,
    pub in_header: Vec<Field>,
    /// The model of the body, and whether it must be there.
    pub body: Option<(String, bool)>,
    pub answer: Answer,
}

/// The answer of a call that succeeds.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Nothing,
    Model(String),
    /// JSON of which nothing is known.
    Json,
    Text,
    /// Bytes that may go on to come.
    Bytes,
    Events,
}

impl Api {
    /// Reads the document.
    pub fn read(document: &Value) -> Self {
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        let mut models = Models::default();
        for (name, schema) in schemas {
            models.add(name, schema);
        }
        let paths = document["paths"].as_object().expect("paths");
        let operations = paths.iter().flat_map(|(path, item)| {
            let operations = item.as_object().expect("a path has operations").iter();
            operations.map(move |(method, operation)| call(path, method, operation))
        });
        let calls: Vec<Call> = operations.collect();
        let mut models = models.0;
        let bodies: Vec<String> = calls.iter().filter_map(|call| Some(call.body.clone()?.0)).collect();
        for body in bodies {
            mark_sent(&mut models, &body);
        }
        // A type without fields, and one that is the whole document, are no use to anybody.
        models.retain(|name, model| {
            !matches!(&model.shape, Shape::Fields(fields) if fields.is_empty()) && name != "Document"
        });
        Self { models, calls }
    }
}

/// Models while they are found. One of the same texts as another is the same.
#[derive(Default)]
struct Models(BTreeMap<String, Model>);

impl Models {
    fn add(&mut self, name: &str, schema: &Value) {
        let shape = match tagged_variants(schema) {
            Some(variants) => Shape::Tagged(variants.iter().map(|variant| self.variant(name, variant)).collect()),
            None => Shape::Fields(self.fields(name, schema)),
        };
        let before = self.0.insert(name.to_owned(), Model { doc: description(schema), shape, is_sent: false });
        assert!(before.is_none(), "two models would be named {name}");
    }

    fn variant(&mut self, name: &str, variant: &Value) -> (String, Vec<Field>) {
        let tag = variant["properties"]["type"]["const"].as_str().expect("a tag").to_owned();
        let mut fields = self.fields(&format!("{name}{}", pascal(&tag)), variant);
        fields.retain(|field| field.name != "type");
        (tag, fields)
    }

    fn fields(&mut self, name: &str, schema: &Value) -> Vec<Field> {
        let nothing = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&nothing);
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let told =
            |schema: &Value| schema.as_object().is_some_and(|schema| schema.keys().any(|key| key != "description"));
        let ignored = |schema: &Value| schema["description"].as_str().is_some_and(|text| text.ends_with("; ignored."));
        let fields = properties.iter().filter(|(_, schema)| told(schema) || !ignored(schema));
        fields
            .map(|(field, schema)| Field {
                name: field.clone(),
                doc: description(schema),
                kind: self.kind(&format!("{name}{}", pascal(field)), schema),
                required: required.contains(field.as_str()),
            })
            .collect()
    }

    /// The type of a value; `name` is for a type that has none yet.
    fn kind(&mut self, name: &str, schema: &Value) -> Kind {
        if let Some(reference) = schema["$ref"].as_str() {
            return Kind::Named(reference.rsplit('/').next().unwrap_or_default().to_owned());
        }
        if let Some(variants) = schema["anyOf"].as_array() {
            return self.any_of(name, schema, variants);
        }
        if let Some(values) = schema["enum"].as_array() {
            return Kind::Named(self.choice(name, values));
        }
        if schema.get("const").is_some() {
            return Kind::Text;
        }
        match &schema["type"] {
            Value::Null => Kind::Any,
            Value::Array(types) if types.len() == 2 && types.iter().any(|one| one == "null") => {
                let one = types.iter().find(|one| *one != "null").cloned().unwrap_or_default();
                let mut alone = schema.clone();
                alone["type"] = one;
                self.kind(name, &alone).or_null()
            }
            Value::Array(_) => Kind::Any,
            Value::String(one) => match one.as_str() {
                "string" => Kind::Text,
                "integer" => Kind::Whole,
                "boolean" => Kind::Flag,
                "array" => Kind::List(Box::new(self.kind(name.strip_suffix('s').unwrap_or(name), &schema["items"]))),
                "object" if schema.get("properties").is_some() => {
                    self.add(name, schema);
                    Kind::Named(name.to_owned())
                }
                "object" if schema["additionalProperties"].is_object() => {
                    Kind::Map(Box::new(self.kind(&format!("{name}Value"), &schema["additionalProperties"])))
                }
                "object" => Kind::Object,
                other => panic!("{name}: the type {other} is not known"),
            },
            other => panic!("{name}: a type is no {other}"),
        }
    }

    fn any_of(&mut self, name: &str, schema: &Value, variants: &[Value]) -> Kind {
        let is_null = |variant: &&Value| variant["type"] == "null";
        let others: Vec<&Value> = variants.iter().filter(|variant| !is_null(variant)).collect();
        if others.len() < variants.len() {
            let kind = match others.as_slice() {
                [one] => self.kind(name, one),
                _ => Kind::Any,
            };
            return kind.or_null();
        }
        if tagged_variants(schema).is_some() {
            self.add(name, schema);
            return Kind::Named(name.to_owned());
        }
        // An item of a batch: anything may be sent, a definition is meant.
        if let [one, anything] = others.as_slice()
            && anything.as_object().is_some_and(Map::is_empty)
        {
            return self.kind(name, one);
        }
        let is_text = |variant: &&Value| variant["type"] == "string" || variant.get("const").is_some();
        if others.iter().all(is_text) { Kind::Text } else { Kind::Any }
    }

    /// The name of a choice of these texts. One of the same texts keeps the name that came first.
    fn choice(&mut self, name: &str, values: &[Value]) -> String {
        let shape = Shape::Choice(values.iter().map(|value| value.as_str().expect("a text").to_owned()).collect());
        if let Some((known, _)) = self.0.iter().find(|(_, model)| model.shape == shape) {
            return known.clone();
        }
        self.0.insert(name.to_owned(), Model { doc: None, shape, is_sent: false });
        name.to_owned()
    }
}

/// The variants of a schema that are told apart by their field `type`.
fn tagged_variants(schema: &Value) -> Option<Vec<&Value>> {
    let variants: Vec<&Value> = schema["anyOf"].as_array()?.iter().collect();
    let is_tagged = |variant: &&Value| variant["properties"]["type"]["const"].is_string();
    (variants.len() > 1 && variants.iter().all(is_tagged)).then_some(variants)
}

fn call(path: &str, method: &str, operation: &Value) -> Call {
    let parameters = operation["parameters"].as_array().expect("parameters");
    let of = |place: &str| -> Vec<Field> {
        let here = parameters.iter().filter(|parameter| parameter["in"] == place);
        here.map(|parameter| Field {
            name: parameter["name"].as_str().expect("a name").to_owned(),
            doc: Some(parameter_doc(parameter)),
            kind: match parameter["schema"]["type"].as_str() {
                Some("integer") => Kind::Whole,
                Some("boolean") => Kind::Flag,
                _ => Kind::Text,
            },
            required: parameter["required"] == true,
        })
        .collect()
    };
    let body = operation.get("requestBody").map(|body| {
        let schema = &body["content"]["application/json"]["schema"];
        (name_of(schema).expect("a body has a model"), body["required"] == true)
    });
    let text = |key: &str| operation[key].as_str().unwrap_or_default().to_owned();
    Call {
        id: text("operationId"),
        method: method.to_ascii_uppercase(),
        path: path.to_owned(),
        summary: text("summary"),
        needs: text("description"),
        in_path: of("path"),
        in_query: of("query"),
        in_header: of("header"),
        body: body.filter(|(model, _)| model != "Nothing"),
        answer: answer(&operation["responses"]),
    }
}

/// The words to a parameter, with the texts that it may be.
fn parameter_doc(parameter: &Value) -> String {
    let doc = description(parameter).unwrap_or_default();
    match parameter["schema"]["enum"].as_array() {
        Some(values) => {
            let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            format!("{doc} One of `{}`.", values.join("`, `"))
        }
        None => doc,
    }
}

fn answer(responses: &Value) -> Answer {
    let good = responses.as_object().expect("responses").iter().filter(|(status, _)| status.starts_with('2'));
    let answers: BTreeSet<String> = good.flat_map(|(_, response)| contents(response)).collect();
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    match answers.as_slice() {
        [] => Answer::Nothing,
        ["application/json Document"] => Answer::Json,
        ["text/plain"] => Answer::Text,
        ["text/event-stream"] => Answer::Events,
        ["application/octet-stream", "text/plain"] => Answer::Bytes,
        [one] => Answer::Model(one.strip_prefix("application/json ").unwrap_or_else(|| panic!("{one}")).to_owned()),
        more => panic!("a call cannot answer all of {more:?}"),
    }
}

fn contents(response: &Value) -> Vec<String> {
    let types = response["content"].as_object().into_iter().flatten();
    types
        .map(|(media_type, content)| match name_of(&content["schema"]) {
            Some(name) => format!("{media_type} {name}"),
            None => media_type.clone(),
        })
        .collect()
}

fn name_of(schema: &Value) -> Option<String> {
    Some(schema["$ref"].as_str()?.rsplit('/').next()?.to_owned())
}

fn description(schema: &Value) -> Option<String> {
    schema["description"].as_str().map(str::to_owned)
}

/// Marks a model and all that it is made of.
fn mark_sent(models: &mut BTreeMap<String, Model>, name: &str) {
    let Some(model) = models.get_mut(name) else { return };
    if std::mem::replace(&mut model.is_sent, true) {
        return;
    }
    let fields: Vec<Field> = match &model.shape {
        Shape::Fields(fields) => fields.clone(),
        Shape::Tagged(variants) => variants.iter().flat_map(|(_, fields)| fields.clone()).collect(),
        Shape::Choice(_) => Vec::new(),
    };
    for field in fields {
        let mut kind = &field.kind;
        while let Kind::Map(inner) | Kind::List(inner) | Kind::OrNull(inner) = kind {
            kind = inner;
        }
        if let Kind::Named(name) = kind {
            mark_sent(models, name);
        }
    }
}

/// `start_within` as `StartWithin`.
pub(super) fn pascal(name: &str) -> String {
    let words = name.split(['_', '-', '.']).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

/// `listRunsOfJob` or `Last-Event-ID` as `list_runs_of_job` and `last_event_id`.
pub(super) fn snake(name: &str) -> String {
    let mut text = String::new();
    for (at, c) in name.char_indices() {
        let begins =
            c.is_ascii_uppercase() && at > 0 && name[..at].ends_with(|before: char| before.is_ascii_lowercase());
        if begins {
            text.push('_');
        }
        text.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
    }
    text
}
