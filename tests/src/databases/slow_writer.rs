//! A writer that has drawn a number of the history and takes its time to commit.

use carillon_domain::id::{JobId, RunId};
use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::Database;

/// The record of a manual run that has ended, in a transaction that has not committed yet.
pub struct SlowWriter(Conn);

impl SlowWriter {
    /// Writes the record.
    ///
    /// # Panics
    /// If the database refuses it.
    pub async fn write(database: &Database, job: JobId, run: RunId, (status, at): (Status, Timestamp)) -> Self {
        let mut conn = database.connect().await;
        conn.query_drop("START TRANSACTION").await.expect("a transaction");
        let ((high, low), status, at) = (run.parts(), status.as_str(), at.as_ms());
        let sql = format!(
            "INSERT INTO run (id, job_id, due_at, trigger_name, attempt, status, finished_at, due_count, first_due_at) \
             VALUES (UNHEX('{high:016x}{low:016x}'), {}, 1, 'manual', 1, '{status}', {at}, 1, 1)",
            job.0
        );
        conn.query_drop(sql).await.expect("the row is taken");
        Self(conn)
    }

    /// Now others see it.
    ///
    /// # Panics
    /// If the database refuses it.
    pub async fn commit(mut self) {
        self.0.query_drop("COMMIT").await.expect("it commits");
    }

    /// Nobody will ever see it.
    ///
    /// # Panics
    /// If the database refuses it.
    pub async fn roll_back(mut self) {
        self.0.query_drop("ROLLBACK").await.expect("it rolls back");
    }
}
