//! The names under which the API may be called (DNS rebinding, CSRF).
//!
//! A page on the web can make a browser connect to 127.0.0.1, under a name of its own that resolves there. Its requests
//! carry that name as `Host`, and the page's site as `Origin`; both are checked even on loopback.

use std::net::{IpAddr, SocketAddr};

use warp::http::StatusCode;
use warp::http::header::{HOST, HeaderMap, HeaderName, ORIGIN};

use crate::http::problem::Problem;

/// The names that are let in.
#[derive(Debug, Clone)]
pub struct Hosts {
    names: Vec<String>,
    any_address: bool,
}

impl Hosts {
    /// Loopback, the address that is listened on, and `configured` (`http.hosts`). Where all addresses are listened on,
    /// any address is let in: rebinding needs a name.
    pub fn new(bind: SocketAddr, configured: &[String]) -> Self {
        let own = match bind.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let fixed = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let configured = configured.iter().map(|host| name_of(host));
        Self {
            names: fixed.into_iter().chain([own]).chain(configured).collect(),
            any_address: bind.ip().is_unspecified(),
        }
    }

    /// Refuses requests that were made under another name, or from another site.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let host = single(headers, &HOST)?.ok_or_else(|| Problem::bad("the header Host is missing"))?;
        if !self.knows(host) {
            let shown: String = host.chars().take(64).collect();
            return Err(forbidden(format!(
                "this server is not known as {shown:?}; names that it may be called by are listed in http.hosts"
            )));
        }
        let Some(origin) = single(headers, &ORIGIN)? else { return Ok(()) };
        match origin.split_once("://") {
            Some(("http" | "https", site)) if site.eq_ignore_ascii_case(host) => Ok(()),
            _ => Err(forbidden("the request comes from another site: Origin does not match Host".into())),
        }
    }

    fn knows(&self, host: &str) -> bool {
        let name = name_of(host);
        let address = name.trim_start_matches('[').trim_end_matches(']');
        self.names.contains(&name) || (self.any_address && address.parse::<IpAddr>().is_ok())
    }
}

/// The host without its port and without the dot of a rooted name.
fn name_of(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        _ => Err(Problem::bad(format!("the header {name} is not one plain value"))),
    }
}

fn forbidden(detail: String) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warp::http::HeaderValue;

    fn check(bind: &str, host: Option<&str>, origin: Option<&str>) -> u16 {
        let hosts = Hosts::new(bind.parse().unwrap(), &["Carillon.Example.org".into()]);
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_str(value).unwrap());
            }
        }
        hosts.check(&headers).map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_known_names_are_let_in() {
        for (bind, host, status) in [
            ("127.0.0.1:7650", "localhost", 200),
            ("127.0.0.1:7650", "LOCALHOST:7650", 200),
            ("127.0.0.1:7650", "127.0.0.1:9999", 200),
            ("127.0.0.1:7650", "[::1]:7650", 200),
            ("127.0.0.1:7650", "carillon.example.org.:443", 200),
            ("127.0.0.1:7650", "localhost:1@evil.example", 403),
            ("127.0.0.1:7650", "evil.example", 403),
            ("127.0.0.1:7650", "localhost.evil.example", 403),
            ("127.0.0.1:7650", "10.0.0.7:7650", 403),
            ("127.0.0.1:7650", "", 403),
            ("10.0.0.7:7650", "10.0.0.7:7650", 200),
            ("[fd00::7]:7650", "[fd00::7]:7650", 200),
            ("0.0.0.0:7650", "192.168.1.4:7650", 200),
            ("0.0.0.0:7650", "[fd00::7]", 200),
            ("0.0.0.0:7650", "evil.example", 403),
        ] {
            assert_eq!(check(bind, Some(host), None), status, "{bind} {host}");
        }
        assert_eq!(check("127.0.0.1:7650", None, None), 400);
    }

    #[test]
    fn an_origin_must_be_the_host() {
        for (origin, status) in [
            ("http://localhost:7650", 200),
            ("https://LOCALHOST:7650", 200),
            ("http://localhost", 403),
            ("http://evil.example", 403),
            ("null", 403),
            ("file://localhost:7650", 403),
        ] {
            assert_eq!(check("127.0.0.1:7650", Some("localhost:7650"), Some(origin)), status, "{origin}");
        }
    }
}
