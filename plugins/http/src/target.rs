//! The address of a call, which is checked before anything is sent there.

use std::fmt;

use ureq::http::Uri;

/// A URL with a scheme, a host and a port, and nothing that a call must not have.
#[derive(Clone)]
pub(crate) struct Target {
    uri: Uri,
    tls: bool,
    port: u16,
}

impl Target {
    /// Reads a URL. The sentence does not repeat it: it may hold secrets.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("the url is not valid: {error}"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(other) => {
                return Err(format!("the url has the scheme {other}, and only http and https can be called"));
            }
            None => return Err("the url does not begin with http:// or https://".to_owned()),
        };
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or("the url has no host")?;
        if authority.as_str().contains('@') {
            return Err("the url has a user name in it, which is refused: credentials go into headers".to_owned());
        }
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            None if authority.as_str() == authority.host() => {
                if tls {
                    443
                } else {
                    80
                }
            }
            None => return Err("what stands behind the host in the url is not a port".to_owned()),
        };
        if port == 0 {
            return Err("the url has port 0, which nobody can listen on".to_owned());
        }
        Ok(Self { uri, tls, port })
    }

    /// Where a `Location` leads from here (RFC 3986, section 5.2).
    pub(crate) fn join(&self, location: &str) -> Result<Self, String> {
        let location = location.split('#').next().unwrap_or_default();
        let scheme = location.split(['/', '?']).next().is_some_and(|first| first.contains(':'));
        let base = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let path = self.uri.path();
        let joined = match location {
            _ if scheme => location.to_owned(),
            _ if location.starts_with("//") => format!("{}:{location}", self.scheme()),
            "" => self.at(base),
            _ if location.starts_with('?') => self.at(&format!("{path}{location}")),
            _ if location.starts_with('/') => self.at(&without_dots(location)),
            _ => {
                let directory = &path[..path.rfind('/').map_or(0, |at| at + 1)];
                self.at(&without_dots(&format!("{directory}{location}")))
            }
        };
        Self::parse(&joined)
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Whether two stand for the same server: what is meant for one may be sent to the other.
    pub(crate) fn same_origin(&self, other: &Self) -> bool {
        let same_host = self.host().eq_ignore_ascii_case(other.host());
        (self.tls, self.port) == (other.tls, other.port) && same_host
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls
    }

    fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }

    fn at(&self, path: &str) -> String {
        format!("{}://{self}{path}", self.scheme())
    }
}

/// `host:port`, which is no secret.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host(), self.port)
    }
}

/// A path with `.` and `..` taken out; its query stays as it is.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for segment in &segments {
        match *segment {
            "." => {}
            ".." => drop(kept.pop()),
            other => kept.push(other),
        }
    }
    if matches!(segments.last(), Some(&("." | ".."))) {
        kept.push("");
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_or_refused() {
        for (url, shown) in [
            ("http://a", "a:80"),
            ("HTTPS://A.example/x?y#z", "A.example:443"),
            ("http://[::1]:8080/", "[::1]:8080"),
            ("http://127.1:1", "127.1:1"),
        ] {
            assert_eq!(Target::parse(url).map(|target| target.to_string()), Ok(shown.to_owned()));
        }
        for (url, fault) in [
            ("ftp://a/", "only http and https"),
            ("file:///etc/passwd", "not valid"),
            ("a/b", "not valid"),
            ("/b", "does not begin with http:// or https://"),
            ("http://user:hush@a/", "credentials go into headers"),
            ("http://a@b/", "credentials go into headers"),
            ("http://a:/", "not a port"),
            ("http://a:0/", "port 0"),
            ("http://a:99999/", "not a port"),
            ("http:///x", ""),
            ("http://a b/", "not valid"),
            ("http://a/\r\nX: y", "not valid"),
        ] {
            let error = Target::parse(url).err().unwrap_or_else(|| panic!("{url} is taken"));
            assert!(error.contains(fault) && !error.contains("hush"), "{url}: {error}");
        }
    }

    #[test]
    fn a_location_is_read_from_where_it_stands() {
        let base = Target::parse("http://a:81/b/c/d?q").unwrap();
        for (location, expected) in [
            ("g", "http://a:81/b/c/g"),
            ("./g/.", "http://a:81/b/c/g/"),
            ("../g?y=./x", "http://a:81/b/g?y=./x"),
            ("../../../g", "http://a:81/g"),
            ("..", "http://a:81/b/"),
            ("/g/./h/../i", "http://a:81/g/i"),
            ("?y", "http://a:81/b/c/d?y"),
            ("", "http://a:81/b/c/d?q"),
            ("#s", "http://a:81/b/c/d?q"),
            ("//g/x", "http://g/x"),
            ("https://g/x#s", "https://g/x"),
            ("g?a:b", "http://a:81/b/c/g?a:b"),
        ] {
            let joined = base.join(location).unwrap_or_else(|error| panic!("{location}: {error}"));
            assert_eq!(joined.uri().to_string(), expected, "{location}");
        }
        for bad in ["ftp://g/", "http://u@g/", "mailto:a", "http://[", "\u{1}"] {
            assert!(base.join(bad).is_err(), "{bad}");
        }
        assert_eq!(Target::parse("http://a").unwrap().join("g").unwrap().uri().to_string(), "http://a:80/g");
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let base = Target::parse("https://A/").unwrap();
        for (url, same) in
            [("https://a:443/x", true), ("http://a:443/", false), ("https://a:444/", false), ("https://a.b/", false)]
        {
            assert_eq!(base.same_origin(&Target::parse(url).unwrap()), same, "{url}");
        }
    }
}
