//! The OpenAPI document, held against the routes and against every answer that any test gets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{Api, Reply};
use crate::config::Role;
use crate::http::openapi::document;
use crate::http::openapi::operation::Operation;
use crate::http::openapi::table::{OPERATIONS, allowed, find};

static SCHEMAS: LazyLock<BTreeMap<String, Validator>> = LazyLock::new(|| {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let validator = |name: &String| {
        let schema = json!({"$ref": format!("#/components/schemas/{name}"), "components": document["components"]});
        (name.clone(), jsonschema::options().should_validate_formats(true).build(&schema).unwrap())
    };
    schemas.keys().map(validator).collect()
});

/// The first parts of the page's paths, which the document of the API does not have.
const OF_PAGE: [&str; 11] =
    ["", "alerts", "jobs", "runs", "timeline", "schedules", "cluster", "audit", "sign-in", "sign-out", "static"];

/// Fails if the document does not allow the answer.
pub fn check(method: &str, path: &str, reply: &Reply) {
    let (path, status) = (path.split(['?', '#']).next().unwrap_or_default(), reply.status.as_u16());
    let told = format!("{method} {path} answered {status} {}", reply.json);
    let problem = status >= 400;
    if problem {
        conforms("Problem", &reply.json, &told);
    }
    let Some((operation, _)) = find(&method.parse().unwrap(), path) else {
        if OF_PAGE.contains(&path.trim_start_matches('/').split('/').next().unwrap_or_default()) {
            return;
        }
        // Who is not let in is told nothing else.
        let expected = if allowed(path).is_some() { 405 } else { 404 };
        assert!([400, 401, 403, expected].contains(&status), "{told}");
        return;
    };
    if problem {
        assert!(operation.all_problems().contains(&status), "{told}");
        return;
    }
    let answer = operation.answers.iter().find(|answer| answer.status == status);
    let answer = answer.unwrap_or_else(|| panic!("{told}, which is not in the document"));
    let media_type = reply.header("content-type").split(';').next().unwrap_or_default();
    match answer.media_types {
        [] => assert!(media_type.is_empty() && reply.body.is_empty(), "{told}"),
        types => assert!(types.contains(&media_type), "{told} as {media_type}"),
    }
    if let (Some(schema), false) = (answer.schema, method == "HEAD") {
        conforms(schema, &reply.json, &told);
    }
}

fn conforms(schema: &str, value: &Value, told: &str) {
    let faults: Vec<String> =
        SCHEMAS[schema].iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{told}: it is no {schema}: {}", faults.join("; "));
}

#[test]
fn every_schema_that_is_named_is_there_and_sound() {
    let text = document().to_string();
    for part in text.split("#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(SCHEMAS.contains_key(name), "{name}");
    }
    let named: BTreeSet<&str> = OPERATIONS.iter().map(|operation| operation.id).collect();
    assert_eq!(named.len(), OPERATIONS.len(), "an id stands twice");
}

/// The document would be worthless if the helper let everything pass.
#[test]
fn an_answer_that_the_document_does_not_allow_fails() {
    let reply = |status: u16, media_type: &str, json: Value| Reply {
        status: warp::http::StatusCode::from_u16(status).unwrap(),
        headers: [(warp::http::header::CONTENT_TYPE, media_type.parse().unwrap())].into_iter().collect(),
        body: json.to_string().into_bytes(),
        json,
    };
    let fails = |method: &'static str, path: &'static str, reply: Reply| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(method, path, &reply))).is_err()
    };
    let page = || json!({"items": [], "next_cursor": null});
    assert!(!fails("GET", "/v1/jobs", reply(200, "application/json", page())));
    assert!(fails("GET", "/v1/jobs", reply(202, "application/json", page())), "the status");
    assert!(fails("GET", "/v1/jobs", reply(200, "text/plain", page())), "the type");
    assert!(fails("GET", "/v1/jobs", reply(200, "application/json", json!({"items": []}))), "a field is missing");
    let more = json!({"items": [], "next_cursor": null, "total": 0});
    assert!(fails("GET", "/v1/jobs", reply(200, "application/json", more)), "a field too many");
    assert!(fails("GET", "/v1/nothing", reply(200, "application/json", page())), "the path");
}

fn example(operation: &Operation) -> String {
    let segments = operation.path.split('/').map(|segment| if segment.starts_with('{') { "x" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

/// The same, asked in a way that ends: a stream of events does not, unless it is refused.
fn ending(path: &str) -> String {
    if path == "/v1/events" { "/v1/events?types=".to_owned() } else { path.to_owned() }
}

#[tokio::test]
async fn every_path_answers_its_methods_and_no_other() {
    let api = Api::new().await;
    for path in OPERATIONS.iter().map(example).collect::<BTreeSet<_>>() {
        let allow = allowed(&path).unwrap();
        let methods: Vec<_> = allow.split(", ").collect();
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let reply = api.call(method, &ending(&path), None).await;
            let is_there = reply.status != 405 && reply.json["detail"] != "there is nothing at this path";
            assert_eq!(is_there, methods.contains(&method), "{method} {path}");
            if reply.status == 405 {
                assert_eq!(reply.header("allow"), allow);
            }
        }
    }
    for path in ["/v1", "/v1/", "/v2/jobs", "/v1/jobs/a/b/c", "/v1/jobs//runs", "/healthz/x", "/v1/run"] {
        assert_eq!(api.call("GET", path, None).await.status, 404, "{path}");
    }
}

/// A token of a lower role than the table says is turned away, one of that role is not.
#[tokio::test]
async fn every_call_needs_the_role_that_the_table_tells() {
    let api = Api::new().await;
    for operation in OPERATIONS {
        let path = ending(&example(operation));
        for token in ["", "viewer", "operator", "admin"] {
            let status = api.call_as(token, &[], operation.method, &path, None).await.status.as_u16();
            let role = Role::ALL.into_iter().find(|role| role.as_str() == token);
            let enough = operation.role().is_none_or(|needed| role.is_some_and(|role| role >= needed));
            let expected = match (enough, token) {
                (true, _) => None,
                (false, "") => Some(401),
                (false, _) => Some(403),
            };
            let turned_away = Some(status).filter(|status| [401, 403].contains(status));
            assert_eq!(turned_away, expected, "{} {path} as {token:?}", operation.method);
        }
    }
}

#[tokio::test]
async fn the_document_is_told_to_those_with_a_token() {
    let api = Api::new().await;
    assert_eq!(api.call_as("", &[], "GET", "/openapi.json", None).await.status, 401);
    let told = api.call_as("viewer", &[], "GET", "/openapi.json", None).await;
    assert_eq!((told.status.as_u16(), &told.json), (200, &document()));
    assert_eq!(told.json["openapi"], "3.1.0");
    assert!(told.json["paths"]["/v1/jobs/{name}"]["put"]["responses"]["412"].is_object());
}
