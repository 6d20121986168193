//! The connection that a request came over: who is at its other end, and whether others can read along.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use warp::Filter;

/// The SHA-256 of a client's certificate in DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

/// The connection of a request, which the server puts into the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// The other end: the client, or the proxy before this server.
    pub peer: SocketAddr,
    /// Whether this server speaks TLS on it. A proxy may speak TLS with the client all the same.
    pub tls: bool,
    /// The certificate that the client has shown, verified against `http.tls.client_ca`.
    pub certificate: Option<Fingerprint>,
}

impl Connection {
    /// A connection in the clear.
    pub const fn plain(peer: SocketAddr) -> Self {
        Self { peer, tls: false, certificate: None }
    }
}

/// The connection of a request. One that came over no socket, as in tests, is from 0.0.0.0, in the clear.
pub(crate) fn connection() -> impl Filter<Extract = (Connection,), Error = Infallible> + Copy {
    warp::ext::optional().map(|found: Option<Connection>| found.unwrap_or(NOBODY))
}

const NOBODY: Connection = Connection::plain(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn handlers_are_told_the_connection() {
        let given =
            Connection { peer: "10.0.0.7:9".parse().unwrap(), tls: true, certificate: Some(Fingerprint([7; 32])) };
        assert_eq!(warp::test::request().extension(given).filter(&connection()).await.unwrap(), given);
        assert_eq!(warp::test::request().filter(&connection()).await.unwrap(), NOBODY);
    }
}
