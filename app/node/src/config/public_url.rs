//! `http.public_url`: the scheme and host under which readers reach the server, whatever stands between.

use std::fmt;

/// Scheme and host, such as `https://cron.example.org`; without a path, which `http.base_path` adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    is_https: bool,
    /// The host in lower case, with its port unless that is the scheme's own.
    host: String,
}

impl PublicUrl {
    /// Reads a text.
    ///
    /// # Errors
    /// A phrase that says the allowed form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let allowed = || {
            "http:// or https:// with a host, and a port if need be, such as \"https://cron.example.org\"; no path"
                .to_owned()
        };
        let (scheme, host) = text.split_once("://").ok_or_else(allowed)?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(allowed()),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let (name, port) = parts(host);
        if name.is_empty() || !host.chars().all(plain) || port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(allowed());
        }
        Ok(Self { is_https, host: without_own_port(host, is_https) })
    }

    /// Whether readers reach the server by TLS.
    pub const fn is_https(&self) -> bool {
        self.is_https
    }

    /// The host without its port.
    pub fn name(&self) -> &str {
        parts(&self.host).0
    }

    /// Whether the header `Host` of a request names it.
    pub fn is_named(&self, host: &str) -> bool {
        without_own_port(host, self.is_https) == self.host
    }
}

/// The host and the port, if it names one. An IPv6 address stands in brackets.
fn parts(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}

fn without_own_port(host: &str, is_https: bool) -> String {
    let own = if is_https { "443" } else { "80" };
    let (name, port) = parts(host);
    if port == Some(own) { name.to_ascii_lowercase() } else { host.to_ascii_lowercase() }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_https { "https" } else { "http" }, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_scheme_and_a_host() {
        for (text, shown, name) in [
            ("https://cron.example.org", "https://cron.example.org", "cron.example.org"),
            ("HTTPS://Cron.Example.org:443", "https://cron.example.org", "cron.example.org"),
            ("http://10.0.0.7:8080", "http://10.0.0.7:8080", "10.0.0.7"),
            ("https://[fd00::7]:8443", "https://[fd00::7]:8443", "[fd00::7]"),
            ("https://[fd00::7]", "https://[fd00::7]", "[fd00::7]"),
        ] {
            let url = PublicUrl::parse(text).unwrap();
            assert_eq!((url.to_string().as_str(), url.name()), (shown, name), "{text}");
        }
        for bad in [
            "",
            "cron.example.org",
            "ftp://cron.example.org",
            "https://",
            "https://:443",
            "https://a/b",
            "https://a/",
            "https://u@a",
            "https://a:x",
            "https://a:",
            "https://a b",
            "https://é",
        ] {
            assert!(PublicUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_request_names_it_with_and_without_the_own_port() {
        let url = PublicUrl::parse("https://cron.example.org").unwrap();
        assert!(url.is_named("cron.example.org") && url.is_named("Cron.example.org:443"));
        assert!(!url.is_named("cron.example.org:80") && !url.is_named("example.org") && !url.is_named(""));
    }
}
