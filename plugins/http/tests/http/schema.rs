//! The params that the server takes and refuses when a job is saved.

use carillon_http::Http;
use carillon_plugin::Plugin;
use jsonschema::PatternOptions;
use serde_json::{Value, json};

/// The faults of params, judged as the server does.
pub fn check(params: &Value) -> Result<(), Vec<String>> {
    let schema: Value = serde_json::from_str(Http::PARAMS_SCHEMA).unwrap();
    let validator = jsonschema::options().with_pattern_options(PatternOptions::regex()).build(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(params).map(|error| error.to_string()).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// `params` with a url, if they have none.
fn with_url(mut params: Value) -> Value {
    if params.get("url").is_none() {
        params["url"] = json!("http://a");
    }
    params
}

#[test]
fn what_makes_sense_is_taken_and_read() {
    for params in [
        json!({}),
        json!({"url": "HTTPS://example.com:8443/x?y=z#f"}),
        json!({"url": {"value": "https://hooks.example.com/T0/secret", "secret": true}}),
        json!({"method": "DELETE", "headers": {"X-A": "ü", "Authorization": {"value": "Bearer x", "secret": true}}}),
        json!({"body": "x"}),
        json!({"body": {"value": "x", "secret": true}}),
        json!({"json": null}),
        json!({"json": {"a": [1, 2.5, "x"]}}),
        json!({"expect_status": 204}),
        json!({"expect_status": "2xx"}),
        json!({"expect_status": [204, "3xx", "400-404"]}),
        json!({"expect_body": "ok", "follow_redirects": 3, "allow_private": true, "max_response": 0}),
        json!({"timeout": "1h30m"}),
        json!({"timeout": "500ms"}),
        json!({"ca_file": "/etc/ssl/own.pem"}),
    ] {
        let params = with_url(params);
        assert_eq!(check(&params), Ok(()), "{params}");
        let read = serde_json::from_value::<<Http as Plugin>::Params>(params.clone());
        assert!(read.is_ok(), "{params}: {:?}", read.err());
    }
}

#[test]
fn what_makes_none_is_refused_when_it_is_saved() {
    assert!(check(&json!({})).is_err());
    for params in [
        json!({"url": "ftp://a"}),
        json!({"url": "http://user:password@a/"}),
        json!({"url": "http://a\r\nX: y"}),
        json!({"url": "http://"}),
        json!({"url": 1}),
        json!({"url": {"secret": true}}),
        json!({"method": "get"}),
        json!({"method": "CONNECT"}),
        json!({"headers": {"X A": "v"}}),
        json!({"headers": {"X-A": "v\r\nX-B: w"}}),
        json!({"headers": {"X-A": "v\u{7f}"}}),
        json!({"headers": {"X-A": 1}}),
        json!({"body": "x", "json": {}}),
        json!({"expect_status": "6xx"}),
        json!({"expect_status": 99}),
        json!({"expect_status": []}),
        json!({"expect_status": [[200]]}),
        json!({"expect_body": ""}),
        json!({"follow_redirects": -1}),
        json!({"follow_redirects": 21}),
        json!({"allow_private": "yes"}),
        json!({"timeout": 30}),
        json!({"timeout": ""}),
        json!({"timeout": "1s1m"}),
        json!({"ca_file": "own.pem"}),
        json!({"max_response": 1048577}),
        json!({"colour": "red"}),
    ] {
        let params = with_url(params);
        assert!(check(&params).is_err(), "{params} is taken");
    }
}

#[test]
fn every_param_is_explained() {
    let schema: Value = serde_json::from_str(Http::PARAMS_SCHEMA).unwrap();
    for (name, property) in schema["properties"].as_object().unwrap() {
        assert!(property["description"].as_str().is_some_and(|text| text.len() > 20), "{name}");
    }
}
