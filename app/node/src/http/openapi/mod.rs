//! `GET /openapi.json`: the API as an OpenAPI 3.1 document, made from the table of its calls.
//!
//! A new route has one entry in [`table`]. The tests hold every answer that they get against the document.

pub(in crate::http) mod operation;
mod parameter;
pub(in crate::http) mod table;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use warp::http::StatusCode;

use self::operation::{Answer, JSON, Operation};
use self::table::OPERATIONS;
use crate::config::Role;
use crate::http::problem::{HttpResult, json_response};
use crate::http::request::caller::Call;
use carillon_json::schema::components;

/// Asked for again and again, and always the same.
static DOCUMENT: LazyLock<Value> = LazyLock::new(document);

/// `GET /openapi.json`
pub(in crate::http) async fn read(call: Call) -> HttpResult {
    call.no_query()?;
    Ok(json_response(StatusCode::OK, &DOCUMENT))
}

/// The whole document.
pub(in crate::http) fn document() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.to_ascii_lowercase()] = shown(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Carillon",
            "description": "A distributed crontab server. Whatever answers GET answers HEAD.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn shown(operation: &Operation) -> Value {
    let in_path = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters: Vec<Value> =
        in_path.map(parameter::in_path).chain(operation.parameters.iter().map(|one| one.shown())).collect();
    let mut responses = Map::new();
    for Answer { status, media_types, schema } in operation.answers {
        let schema = schema.map_or_else(|| json!({}), reference);
        let content: Map<String, Value> =
            media_types.iter().map(|media_type| ((*media_type).to_owned(), json!({"schema": schema}))).collect();
        let mut response = json!({"description": reason(*status)});
        if !content.is_empty() {
            response["content"] = Value::Object(content);
        }
        responses.insert(status.to_string(), response);
    }
    for status in operation.all_problems() {
        let content = json!({"application/problem+json": {"schema": reference("Problem")}});
        responses.insert(status.to_string(), json!({"description": reason(status), "content": content}));
    }
    let mut shown = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "description": format!("Needs {}.", rights(operation.role())),
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(body) = operation.body {
        shown["requestBody"] =
            json!({"required": body.required, "content": {JSON: {"schema": reference(body.schema)}}});
    }
    if operation.role().is_none() {
        shown["security"] = json!([]);
    }
    shown
}

fn rights(role: Option<Role>) -> String {
    role.map_or_else(|| "no token".to_owned(), |role| format!("a token with the role {}", role.as_str()))
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn reason(status: u16) -> &'static str {
    StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("An answer")
}
