//! A private database of a server.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::server::Server;

/// A database of a server.
#[derive(Debug, Clone)]
pub struct Database {
    /// Its name.
    pub name: String,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Database {
    /// One that another process has made on a server of its own.
    pub fn existing(name: &str, port: u16) -> Self {
        Self { name: name.to_owned(), host: "127.0.0.1".to_owned(), port }
    }

    /// The same database at another member of its cluster.
    #[must_use]
    pub fn at_member(&self, member: &Server) -> Self {
        Self { name: self.name.clone(), host: member.host().to_owned(), port: member.port() }
    }

    /// The port of its server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A connection that may do anything on its server.
    pub async fn root(&self) -> Conn {
        let url = format!("mysql://root@{}:{}/mysql?prefer_socket=false", self.host, self.port);
        Conn::from_url(url).await.expect("the server answers")
    }

    /// The address of the database, for a user who may do nothing outside of it.
    pub fn url(&self) -> String {
        self.at(&format!("{}:{}", self.host, self.port))
    }

    /// The same under another name of the host.
    pub fn url_on(&self, host: &str) -> String {
        self.at(&format!("{host}:{}", self.port))
    }

    /// The same through another port, in words that can be read on the way.
    pub fn url_through(&self, port: u16) -> String {
        self.url_through_all(&[port])
    }

    /// The same through several ports, which are asked in this order.
    pub fn url_through_all(&self, ports: &[u16]) -> String {
        let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("{}?ssl-mode=disabled", self.at(&hosts.join(",")))
    }

    /// The address with these members of its cluster, in this order.
    pub fn url_of<'a>(&self, members: impl IntoIterator<Item = &'a Server>) -> String {
        let hosts: Vec<String> =
            members.into_iter().map(|member| format!("{}:{}", member.host(), member.port())).collect();
        self.at(&hosts.join(","))
    }

    fn at(&self, hosts: &str) -> String {
        format!("mysql://carillon:secret@{hosts}/{}", self.name)
    }

    /// A connection to it.
    pub async fn connect(&self) -> Conn {
        Conn::from_url(self.url()).await.expect("the server answers")
    }

    /// Runs statements on a connection of their own.
    pub async fn run(&self, statements: &[&str]) {
        let mut conn = self.connect().await;
        for statement in statements {
            conn.query_drop(*statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }
}
