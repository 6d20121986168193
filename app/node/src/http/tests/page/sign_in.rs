//! Signing in: by form, by link; what a cookie opens and what it does not.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::super::{Api, token};
use super::Browser;
use crate::config::{PublicUrl, Role};
use crate::http::{ApiState, Hosts, Tokens, routes};

#[tokio::test]
async fn nobody_sees_a_page_without_signing_in() {
    let api = Api::new().await;
    let browser = Browser::new(&api);
    let page = browser.get("/").await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "/sign-in"));
    let page = browser.get("/jobs?q=a%20b").await;
    assert_eq!(page.header("location"), "/sign-in?next=%2Fjobs%3Fq%3Da%2520b");
    let form = browser.get(page.header("location")).await;
    assert_eq!(form.status, 200);
    assert!(form.text.contains("value=\"/jobs?q=a%20b\""), "{}", form.text);
    assert_eq!(browser.get("/v1/jobs").await.status, 401, "programs are not led to a form");
    let wrong = browser.post("/sign-in", &[], "token=wrong%3Cb%3E").await;
    assert_eq!((wrong.status.as_u16(), wrong.header("set-cookie")), (401, ""));
    assert!(wrong.text.contains("not known here") && !wrong.text.contains("wrong<b>"));
}

#[tokio::test]
async fn a_cookie_reads_and_needs_its_csrf_token_to_write() {
    let api = Api::new().await;
    api.job("a", json!({})).await;
    let browser = Browser::signed_in(&api, "operator").await;
    let page = browser.get("/").await;
    assert_eq!(page.status, 200);
    assert_eq!(browser.get("/v1/jobs/a").await.status, 200);
    let json = ("content-type", "application/json");
    let write = async |headers: &[(&str, &str)]| {
        let cookie = [&[json, ("cookie", browser.cookie.as_str())], headers].concat();
        api.call_as("", &cookie, "POST", "/v1/jobs/a/pause", None).await.status.as_u16()
    };
    assert_eq!(write(&[]).await, 403);
    assert_eq!(write(&[("carillon-csrf", "0")]).await, 403);
    let csrf = page.csrf();
    assert_eq!(write(&[("carillon-csrf", &csrf), ("origin", "http://evil.example")]).await, 403);
    assert_eq!(write(&[("carillon-csrf", &csrf)]).await, 200);
    let other = Browser::signed_in(&api, "admin").await.get("/").await.csrf();
    assert_eq!(write(&[("carillon-csrf", &other)]).await, 403, "another session's");
    let reply = api.call_as("", &[("cookie", &browser.cookie)], "DELETE", "/v1/jobs/a", None).await;
    assert_eq!(reply.status, 403);
}

#[tokio::test]
async fn the_cookie_is_kept_from_scripts_and_other_sites() {
    let api = Api::new().await;
    let page = Browser::new(&api).post("/sign-in", &[], "token=viewer&next=/jobs").await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "/jobs"));
    let cookie = page.header("set-cookie");
    for part in ["Path=/;", "Max-Age=43200", "HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "without TLS a browser would not send it");
    for origin in ["http://evil.example", "null"] {
        let page = Browser::new(&api).post("/sign-in", &[("origin", origin)], "token=viewer").await;
        assert_eq!(page.status, 403, "another site signs nobody in");
    }
}

#[tokio::test]
async fn nobody_is_led_to_another_site() {
    let api = Api::new().await;
    for next in
        ["//evil.example", "https://evil.example", "/%5Cevil.example", "%2F%2Fevil.example", "/%09/evil.example"]
    {
        let page = Browser::new(&api).post("/sign-in", &[], &format!("token=viewer&next={next}")).await;
        assert_eq!((page.status.as_u16(), page.header("location")), (303, "/"), "{next}");
        let browser = Browser::signed_in(&api, "viewer").await;
        assert_eq!(browser.get(&format!("/sign-in?next={next}")).await.header("location"), "/", "{next}");
    }
}

#[tokio::test]
async fn signing_out_forgets_the_cookie() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "viewer").await;
    assert_eq!(browser.post("/sign-out", &[], "").await.status, 403, "not by another site");
    let page = browser.submit("/sign-out", "").await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "/sign-in"));
    assert!(page.header("set-cookie").contains("Max-Age=0"));
}

#[tokio::test]
async fn a_link_signs_in_once_and_is_not_used_up_by_a_look() {
    let api = Api::new().await;
    let reply = api.call_as("operator", &[], "POST", "/v1/sign-in-links", None).await;
    assert_eq!(reply.status, 201);
    let path = reply.json["path"].as_str().unwrap();
    let mut browser = Browser::new(&api);
    for _ in 0..2 {
        let page = browser.get(path).await;
        assert!(page.status == 200 && page.text.contains("Sign in as operator"), "{}", page.text);
    }
    let page = browser.post(path, &[], "").await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "/"));
    browser.take_cookie(&page);
    assert!(browser.get("/").await.text.contains("operator"));
    for again in [Browser::new(&api).post(path, &[], "").await, Browser::new(&api).get(path).await] {
        assert_eq!(again.status, 410, "it has been used");
        assert!(again.text.contains("It was used already") && again.text.contains("carillon open"), "{}", again.text);
        assert!(!again.text.contains("<form"), "there is nothing to press: {}", again.text);
    }
    let forged = path.replace("operator", "admin");
    assert_eq!(Browser::new(&api).get(&forged).await.status, 410);
    assert_eq!(Browser::new(&api).post(&forged, &[], "").await.status, 410);
    assert_eq!(api.call_as("", &[], "POST", "/v1/sign-in-links", None).await.status, 401);
}

#[tokio::test]
async fn a_link_is_good_for_a_minute() {
    let api = Api::new().await;
    let reply = api.call_as("viewer", &[], "POST", "/v1/sign-in-links", None).await;
    api.clock.advance(Duration::from_secs(61));
    let path = reply.json["path"].as_str().unwrap();
    assert_eq!(Browser::new(&api).get(path).await.status, 410);
    assert_eq!(Browser::new(&api).post(path, &[], "").await.status, 410);
}

#[tokio::test]
async fn behind_a_proxy_that_speaks_tls_the_cookie_is_for_tls_only() {
    let api = Api::new().await;
    let hosts = Hosts::new("127.0.0.1:7650".parse().unwrap(), &["cron.example.org".into()]);
    let tokens = Tokens::configured(&[token("viewer", Role::Viewer, None)]);
    let mut state = ApiState::new(Arc::new(api.store.clone()), api.engine.clone(), tokens, hosts);
    state.public_url = Some(PublicUrl::parse("https://Cron.example.org").unwrap());
    let routes = routes(Arc::new(state));
    for (host, is_secure, origin) in [
        ("cron.example.org", true, "https://cron.example.org"),
        ("cron.example.org:443", true, "https://cron.example.org:443"),
        ("CRON.EXAMPLE.ORG", true, "https://CRON.EXAMPLE.ORG"),
        ("cron.example.org:7650", false, "http://cron.example.org:7650"),
        ("127.0.0.1:7650", false, "http://127.0.0.1:7650"),
    ] {
        // A header that anybody may send decides nothing.
        let ask = |method| {
            let request = warp::test::request().method(method).header("host", host).header("accept", "text/html");
            request.header("x-forwarded-proto", if is_secure { "http" } else { "https" })
        };
        let form = ask("POST").path("/sign-in").header("content-type", "application/x-www-form-urlencoded");
        let signed_in = form.body("token=viewer").reply(&routes).await;
        let cookie = signed_in.headers()["set-cookie"].to_str().unwrap();
        assert_eq!(cookie.contains("; Secure"), is_secure, "{host}: {cookie}");
        let page = ask("GET").path("/jobs").header("cookie", cookie.split(';').next().unwrap()).reply(&routes).await;
        let text = String::from_utf8_lossy(page.body());
        assert!(text.contains(&format!("'{origin}/v1/jobs")), "{host}: {text}");
    }
}

/// Another node of the cluster, with these tokens.
async fn node(
    api: &Api,
    tokens: &[crate::config::TokenConfig],
) -> warp::filters::BoxedFilter<(warp::reply::Response,)> {
    let hosts = Hosts::new("127.0.0.1:7650".parse().unwrap(), &[]);
    let state = ApiState::new(Arc::new(api.store.clone()), api.engine.clone(), Tokens::configured(tokens), hosts);
    routes(Arc::new(state))
}

#[tokio::test]
async fn a_session_is_good_at_every_node_and_ends_with_its_token() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "viewer").await;
    let status = async |tokens: &[crate::config::TokenConfig]| {
        let request = warp::test::request().path("/").header("host", "localhost:7650").header("accept", "text/html");
        request.header("cookie", &browser.cookie).reply(&node(&api, tokens).await).await.status().as_u16()
    };
    assert_eq!(status(&[token("viewer", Role::Viewer, None), token("new", Role::Admin, None)]).await, 200);
    assert_eq!(status(&[token("new", Role::Admin, None)]).await, 303);
    assert_eq!(status(&[token("viewer", Role::Admin, None)]).await, 303, "a changed entry is another token");
}

#[tokio::test]
async fn every_answer_carries_the_policy() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "viewer").await;
    for path in ["/", "/sign-in", "/nowhere", "/v1/jobs", "/healthz", "/static/none.css"] {
        let page = browser.get(path).await;
        let policy = page.header("content-security-policy");
        for part in
            ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
        {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(page.header("x-frame-options"), "DENY", "{path}");
        assert_eq!(page.header("referrer-policy"), "same-origin");
        assert_eq!(page.header("cross-origin-opener-policy"), "same-origin");
    }
}

#[tokio::test]
async fn pages_are_told_apart_by_their_tags_and_files_are_kept() {
    let api = Api::new().await;
    let browser = Browser::signed_in(&api, "viewer").await;
    let page = browser.get("/").await;
    let tag = page.header("etag").to_owned();
    assert!(tag.starts_with("W/\"") && page.header("cache-control").contains("no-cache"), "{tag}");
    let again = browser.get_with("/", &[("if-none-match", &tag)]).await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    let squeezed = browser.get_with("/", &[("accept-encoding", "gzip")]).await;
    assert_eq!((squeezed.header("content-encoding"), squeezed.header("etag")), ("gzip", tag.as_str()));
    let (_, rest) = page.text.split_once("href=\"/static/page.").unwrap();
    let name = format!("/static/page.{}", rest.split('"').next().unwrap());
    let file = Browser::new(&api).get(&name).await;
    assert_eq!((file.status.as_u16(), file.header("content-type")), (200, "text/css; charset=utf-8"));
    assert_eq!(file.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(Browser::new(&api).get("/static/page.0000.css").await.status, 404);
}
