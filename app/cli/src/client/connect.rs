//! How the server is reached: its address, the limits of time, the token.

use std::time::Duration;
use std::{env, fs, io};

use ureq::config::ConfigBuilder;
use ureq::http::Uri;
use ureq::tls::TlsConfig;
use ureq::typestate::AgentScope;
use ureq::{Agent, Proxy};

use super::is_loopback;
use crate::args::DEFAULT_SERVER;
use crate::failure::CommandFailure;

/// The longest answer that is read as a whole, in bytes.
pub(super) const MOST_ANSWER: u64 = 256 * 1024 * 1024;
const CONNECTS_WITHIN: Duration = Duration::from_secs(5);
/// A batch of 10,000 jobs takes a while on a slow disk.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// How long a person waits for the end of a word.
const IN_HASTE: Duration = Duration::from_secs(1);
/// Where `serve` writes the token that it made.
const TOKEN_FILE: &str = "carillon.token";

/// The address without a slash at its end.
pub(super) fn base_of(server: &str) -> Result<(String, Uri), CommandFailure> {
    let refused = || {
        CommandFailure::usage(format!(
            "{server:?} is not the address of a server: write http://HOST:PORT or https://HOST:PORT (--server, \
             CARILLON_SERVER)"
        ))
    };
    // A variable that is set to nothing counts as not set.
    let server = if server.is_empty() { DEFAULT_SERVER } else { server };
    let base = server.trim_end_matches('/');
    let uri: Uri = base.parse().map_err(|_| refused())?;
    let known = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
    if known && uri.query().is_none() { Ok((base.to_owned(), uri)) } else { Err(refused()) }
}

/// A client without redirects: the API has none, and the token is for this server only.
pub(super) fn agent(server: &Uri, tls: TlsConfig) -> Agent {
    settings(server, tls).build().new_agent()
}

/// The same, which gives up soon.
pub(super) fn hasty_agent(server: &Uri, tls: TlsConfig) -> Agent {
    settings(server, tls).timeout_global(Some(IN_HASTE)).build().new_agent()
}

fn settings(server: &Uri, tls: TlsConfig) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("carillon CLI/", env!("CARGO_PKG_VERSION")))
        .proxy(if is_loopback(server) { None } else { Proxy::try_from_env() })
        .timeout_connect(Some(CONNECTS_WITHIN))
        .timeout_send_body(Some(ANSWERS_WITHIN))
        .timeout_recv_response(Some(ANSWERS_WITHIN))
        .tls_config(tls)
}

/// The token of the environment, or else of the file in the working directory; none when there is neither. The server looks at a token
/// before a certificate. So a file that happens to be there must not hide the certificate that was asked for.
pub(super) fn token(certificate_shown: bool) -> Result<Option<String>, CommandFailure> {
    let (token, place) = match env::var("CARILLON_TOKEN") {
        Ok(token) if !token.trim().is_empty() => (token, "CARILLON_TOKEN"),
        _ if certificate_shown => return Ok(None),
        _ => match fs::read_to_string(TOKEN_FILE) {
            Ok(token) => (token, TOKEN_FILE),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(CommandFailure::failed(format!(
                    "cannot read ./{TOKEN_FILE}: {error}; become its owner, or set CARILLON_TOKEN"
                )));
            }
        },
    };
    let token = token.trim();
    match token.bytes().all(|byte| byte.is_ascii_graphic()) && !token.is_empty() {
        true => Ok(Some(token.to_owned())),
        false => {
            Err(CommandFailure::failed(format!("{place} does not hold a token: one printable ASCII word is expected")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host() {
        assert_eq!(base_of("http://127.0.0.1:7650/").unwrap().0, "http://127.0.0.1:7650");
        assert_eq!(base_of("https://cron.example/behind/proxy").unwrap().0, "https://cron.example/behind/proxy");
        assert_eq!(base_of("").unwrap().0, DEFAULT_SERVER);
        for bad in ["/", "127.0.0.1:7650", "localhost", "ftp://x", "http://", "http://x y", "unix:///x", "http://x?a=b"]
        {
            assert!(base_of(bad).is_err(), "{bad}");
        }
    }
}
