//! How many statements a server was asked.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::runtime::Runtime;

use super::Server;

/// Counts the statements of a whole server, whoever sent them, without those that count.
pub struct StatementCount {
    runtime: Runtime,
    conn: Conn,
    own: u64,
}

impl StatementCount {
    /// A connection to the server that does nothing else.
    ///
    /// # Panics
    /// Where the server does not answer.
    pub fn on(server: &Server) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let conn = runtime.block_on(server.root());
        Self { runtime, conn, own: 0 }
    }

    /// The count since the server was started. What opening this connection took is in it.
    pub fn now(&mut self) -> u64 {
        self.own += 1;
        let asked: Option<(String, u64)> = self.runtime.block_on(async {
            self.conn.query_first("SHOW GLOBAL STATUS LIKE 'Questions'").await.expect("the server counts")
        });
        asked.expect("the server counts questions").1 - self.own
    }

    /// The statements that `ask` takes: the fewest of several tries, as nodes ask of their own accord meanwhile.
    pub fn fewest(&mut self, tries: usize, mut ask: impl FnMut()) -> u64 {
        let one = |_| {
            let before = self.now();
            ask();
            self.now() - before
        };
        (0..tries).map(one).min().unwrap_or(0)
    }
}
