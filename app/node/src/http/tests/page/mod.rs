//! The page: what a browser is answered.

mod alerts;
mod edit;
mod schedules;
mod screens;
mod sign_in;
mod timeline;
mod trust;
mod undo;

use warp::http::{HeaderMap, StatusCode};

use super::Api;

/// A browser that has signed in, or not.
pub struct Browser<'a> {
    api: &'a Api,
    pub cookie: String,
}

/// An answer to a browser.
#[derive(Debug)]
pub struct Page {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Page {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The CSRF token that the forms of the page carry.
    pub fn csrf(&self) -> String {
        let (_, rest) = self.text.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

impl<'a> Browser<'a> {
    pub fn new(api: &'a Api) -> Self {
        Self { api, cookie: String::new() }
    }

    /// One that signed in with this token.
    pub async fn signed_in(api: &'a Api, token: &str) -> Self {
        let mut browser = Self::new(api);
        let page = browser.post("/sign-in", &[], &format!("token={token}")).await;
        assert_eq!(page.status, 303, "{}", page.text);
        browser.take_cookie(&page);
        browser
    }

    /// Keeps the cookie of an answer.
    pub fn take_cookie(&mut self, page: &Page) {
        self.cookie = page.header("set-cookie").split(';').next().unwrap().to_owned();
    }

    pub async fn get(&self, path: &str) -> Page {
        self.send("GET", path, &[], None).await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Page {
        self.send("GET", path, headers, None).await
    }

    pub async fn post(&self, path: &str, headers: &[(&str, &str)], form: &str) -> Page {
        self.send("POST", path, headers, Some(form)).await
    }

    /// A form of a page, with its CSRF token.
    pub async fn submit(&self, path: &str, form: &str) -> Page {
        let csrf = self.get("/").await.csrf();
        self.post(path, &[], &format!("csrf={csrf}&{form}")).await
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], form: Option<&str>) -> Page {
        let mut request = warp::test::request().method(method).path(path).header("host", "localhost:7650");
        request = request.header("accept", "text/html,application/xhtml+xml");
        if !self.cookie.is_empty() {
            request = request.header("cookie", &self.cookie);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(form) = form {
            request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
        }
        let response = request.reply(&self.api.routes).await;
        let (status, headers) = (response.status(), response.headers().clone());
        Page { status, headers, text: String::from_utf8_lossy(response.body()).into_owned() }
    }
}
