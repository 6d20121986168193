//! `[mail]` and `[alerts]` of the configuration.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use url::{Host, Url};

use crate::Limits;
use crate::send::Policy;

/// `[alerts]`: what messages may do, and how long they may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertsConfig {
    /// `private_addresses`, true by default: whether messages and pings may go to private and loopback addresses.
    ///
    /// A Mattermost of one's own has a private address. Who may store a route may also store a job, and jobs reach every
    /// address that the machine reaches. So a stricter default would hinder many and protect nobody; it is for servers
    /// whose jobs are confined.
    pub private_addresses: bool,
    /// `plain_http`, false by default: whether `http://` may go to addresses of the internet. It may always go to private
    /// ones.
    pub plain_http: bool,
    /// `ca_file`: the authorities that vouch for receivers and for the mail server, in PEM, in place of the system's.
    pub ca_file: Option<PathBuf>,
    /// `connect_timeout`, 5 s by default: how long a connection may take, with the look-up of the name and TLS.
    pub connect_timeout: Duration,
    /// `timeout`, 15 s by default: how long the whole message may take.
    pub timeout: Duration,
    /// `at_once`, 32 by default, and the limits of one receiver, which are not configured.
    pub limits: Limits,
}

impl Default for AlertsConfig {
    fn default() -> Self {
        Self {
            private_addresses: true,
            plain_http: false,
            ca_file: None,
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(15),
            limits: Limits::default(),
        }
    }
}

impl AlertsConfig {
    /// The addresses that messages may go to.
    pub(crate) fn policy(&self) -> Policy {
        Policy { private_addresses: self.private_addresses, plain_http: self.plain_http }
    }
}

/// `[mail]`: the server that takes mail, and who sends.
#[derive(Clone, PartialEq, Eq)]
pub struct MailConfig {
    /// `smtp`: `smtp://host:587` or `smtps://host:465`.
    pub server: SmtpUrl,
    /// `from`: the sender, as `carillon@example.org` or `Carillon <carillon@example.org>`. A name is replaced by that of
    /// the message.
    pub from: String,
    /// `user` and the content of `password_file`, or both from the URL.
    pub login: Option<Login>,
    /// `plaintext`, false by default: whether mail may go to another machine without TLS. To the own machine it may.
    pub plaintext: bool,
    /// How the node calls itself to the server; its host's name.
    pub hello: String,
}

/// A user of the mail server.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

/// Where the mail server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpUrl {
    /// A name or an address.
    pub host: String,
    /// The port; 587 for `smtp` and 465 for `smtps` by default.
    pub port: u16,
    /// Whether TLS begins with the connection (`smtps`). Otherwise STARTTLS begins it.
    pub implicit_tls: bool,
}

impl MailConfig {
    /// `[mail]` with the URL of `smtp`, which may name user and password.
    ///
    /// # Errors
    /// A sentence that names the fault of a key; it shows no secret.
    pub fn new(smtp: &str, from: &str, hello: &str) -> Result<Self, String> {
        let (server, login) = SmtpUrl::parse(smtp)?;
        let from = from.trim().to_owned();
        crate::send::check_sender(&from)?;
        Ok(Self { server, from, login, plaintext: false, hello: hello.to_owned() })
    }
}

impl SmtpUrl {
    /// Reads the URL, and the user in it.
    ///
    /// # Errors
    /// A sentence without the URL, which may hold a password.
    pub fn parse(text: &str) -> Result<(Self, Option<Login>), String> {
        const ALLOWED: &str = "allowed is smtp://host:587 or smtps://host:465, with user:password@ before the host if the \
                               server asks for them, and percent-encoded where they have odd characters";
        let url = Url::parse(text).map_err(|error| format!("this is not a URL ({error}): {ALLOWED}"))?;
        let implicit_tls = match url.scheme() {
            "smtp" => false,
            "smtps" => true,
            other => return Err(format!("{other:?} is no way to send mail: {ALLOWED}")),
        };
        let rest = !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some();
        let host = match url.host() {
            Some(Host::Domain(name)) if !name.is_empty() => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            _ => return Err(format!("the host is missing: {ALLOWED}")),
        };
        if rest {
            return Err(format!("something follows the host and port: {ALLOWED}"));
        }
        let decoded = |text: &str| {
            let bytes = percent_encoding::percent_decode_str(text).decode_utf8();
            bytes.map(|text| text.into_owned()).map_err(|_| format!("user or password are not UTF-8: {ALLOWED}"))
        };
        let login = match (decoded(url.username())?, url.password()) {
            (user, _) if user.is_empty() => None,
            (_, None) => {
                return Err(format!("it has a user but no password: {ALLOWED}; or give user and password_file"));
            }
            (user, Some(password)) => Some(Login { user, password: decoded(password)? }),
        };
        let port = url.port().unwrap_or(if implicit_tls { 465 } else { 587 });
        Ok((Self { host, port, implicit_tls }, login))
    }
}

impl fmt::Debug for MailConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailConfig")
            .field("server", &self.server)
            .field("from", &self.from)
            .field("login", &self.login)
            .field("plaintext", &self.plaintext)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_server_is_read() {
        let server = |host: &str, port, implicit_tls| SmtpUrl { host: host.into(), port, implicit_tls };
        let login = |user: &str, password: &str| Some(Login { user: user.into(), password: password.into() });
        for (text, expected) in [
            ("smtp://mail.example.org", (server("mail.example.org", 587, false), None)),
            ("smtp://mail.example.org:25/", (server("mail.example.org", 25, false), None)),
            ("smtps://[::1]", (server("::1", 465, true), None)),
            (
                "smtp://ops%40example.org:p%2Fs%3Aw@10.0.0.5:2525",
                (server("10.0.0.5", 2525, false), login("ops@example.org", "p/s:w")),
            ),
        ] {
            assert_eq!(SmtpUrl::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_without_showing_the_password() {
        for text in [
            "mail.example.org",
            "mail.example.org:587",
            "https://ops:hunter2@mail.example.org",
            "smtp://",
            "smtp://ops:hunter2@mail.example.org/inbox",
            "smtp://ops:hunter2@mail.example.org?tls=no",
            "smtp://hunter2@mail.example.org",
            "smtp://ops:hunter2@mail.example.org:99999",
        ] {
            let refused = SmtpUrl::parse(text).unwrap_err();
            assert!(refused.contains("smtp://host:587") && !refused.contains("hunter2"), "{text}: {refused}");
        }
        let config = MailConfig::new("smtp://ops:hunter2@mail", "a@example.org", "host").unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        assert!(MailConfig::new("smtp://mail", "nobody", "host").unwrap_err().contains("mail.from"));
    }
}
