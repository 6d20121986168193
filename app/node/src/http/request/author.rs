//! The author of a change, for the audit log.
//!
//! The address is the connection's, which no client can write. A header such as `X-Forwarded-For` is not believed: behind a
//! proxy the address is the proxy's.

use carillon_store::Author;
use warp::http::header::{HeaderMap, USER_AGENT};

use crate::http::connection::Connection;

/// How much of a client's name is kept, in characters.
const LONGEST_AGENT: usize = 200;

/// The author of a change: the token's name, the address, and the client as it names itself.
pub(crate) fn author(token: &str, connection: Connection, headers: &HeaderMap) -> Author {
    let address = connection.peer.ip().to_canonical();
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default().trim();
    let agent: String = agent.chars().filter(|c| !c.is_control()).take(LONGEST_AGENT).collect();
    Author::new(token, format!("{address} {agent}").trim_end())
}

#[cfg(test)]
mod tests {
    use warp::http::header::HeaderValue;

    use super::*;

    fn from(agent: Option<&[u8]>) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", HeaderValue::from_static("192.0.2.1"));
        agent.map(|agent| headers.insert(USER_AGENT, HeaderValue::from_bytes(agent).unwrap()));
        author("ops", Connection::plain("10.0.0.9:1".parse().unwrap()), &headers).origin.to_string()
    }

    #[test]
    fn an_author_is_told_by_the_connection_and_by_its_client() {
        assert_eq!(from(None), "10.0.0.9");
        assert_eq!(from(Some(b"carillon CLI/1.0 ")), "10.0.0.9 carillon CLI/1.0");
        assert_eq!(from(Some(b"a\tb")), "10.0.0.9 ab");
        assert_eq!(from(Some(b"\xff")), "10.0.0.9");
        assert_eq!(from(Some("x".repeat(5_000).as_bytes())).len(), "10.0.0.9 ".len() + LONGEST_AGENT);
    }
}
