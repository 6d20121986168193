//! A private database of a server.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

/// A database of a server.
#[derive(Debug, Clone)]
pub struct Database {
    /// Its name.
    pub name: String,
    pub(super) port: u16,
}

impl Database {
    /// One that another process has made on a server of its own.
    pub fn existing(name: &str, port: u16) -> Self {
        Self { name: name.to_owned(), port }
    }

    /// The port of its server on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A connection that may do anything on its server.
    pub async fn root(&self) -> Conn {
        let url = format!("mysql://root@127.0.0.1:{}/mysql?prefer_socket=false", self.port);
        Conn::from_url(url).await.expect("the server answers")
    }

    /// The address of the database, for a user who may do nothing outside of it.
    pub fn url(&self) -> String {
        self.at("127.0.0.1", self.port)
    }

    /// The same under another name of the host.
    pub fn url_on(&self, host: &str) -> String {
        self.at(host, self.port)
    }

    /// The same through another port, in words that can be read on the way.
    pub fn url_through(&self, port: u16) -> String {
        format!("{}?ssl-mode=disabled", self.at("127.0.0.1", port))
    }

    fn at(&self, host: &str, port: u16) -> String {
        format!("mysql://carillon:secret@{host}:{port}/{}", self.name)
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
