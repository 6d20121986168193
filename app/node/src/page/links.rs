//! The one place where addresses of this server are made, so that a proxy may serve it under any prefix.

use carillon_domain::id::RunId;
use carillon_store::JobKey;

use crate::page::params::{Params, encode};

/// Makes addresses.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    base: String,
}

impl Links {
    /// Under this prefix, which is empty or begins with a slash.
    pub fn under(base: &str) -> Self {
        Self { base: base.to_owned() }
    }

    /// A path of this server, which begins with a slash and is encoded already.
    pub fn to(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// A path with a query.
    pub fn with(&self, path: &str, params: &Params) -> String {
        format!("{}{path}{}", self.base, params.to_query())
    }

    /// The page of a job.
    pub fn job(&self, key: &JobKey) -> String {
        self.to(&job_path(key))
    }

    /// The page of a run.
    pub fn run(&self, run: RunId) -> String {
        self.to(&format!("/runs/{run}"))
    }

    /// Where cookies are good.
    pub fn cookie_path(&self) -> &str {
        if self.base.is_empty() { "/" } else { &self.base }
    }
}

/// The page of a job, without the prefix.
pub(crate) fn job_path(key: &JobKey) -> String {
    format!("/jobs/{}/{}", encode(&key.namespace), encode(&key.name))
}

/// A path of this server that a request named, or nothing: another site's address is none, however it is written.
pub(crate) fn local_path(text: &str) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'<' | b'>');
    let local = text.starts_with('/') && !text.starts_with("//") && text.len() <= 2_048 && text.bytes().all(plain);
    local.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_led_to() {
        for good in ["/", "/jobs?q=a%20b&state=idle", "/runs/8000000000000007-f"] {
            assert_eq!(local_path(good), Some(good));
        }
        for bad in [
            "",
            "jobs",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/\t/evil.example",
            "/a\r\nX: y",
            "javascript:alert(1)",
            "/é",
            "\\/evil.example",
            "/a\"b",
        ] {
            assert_eq!(local_path(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn every_address_stands_under_the_prefix() {
        let links = Links::under("/cron");
        let key = JobKey { namespace: "default".into(), name: "a.b-c".into() };
        assert_eq!(links.job(&key), "/cron/jobs/default/a.b-c");
        assert_eq!(links.with("/jobs", &Params::parse("q=x")), "/cron/jobs?q=x");
        assert_eq!((links.cookie_path(), Links::under("").cookie_path()), ("/cron", "/"));
    }
}
