//! The one thread that writes, and the group commit.
//!
//! SQLite has one writer at a time anyway; a thread of its own makes waiting for it a queue instead of a busy loop. What
//! waits is gathered into one transaction, because the sync at its end costs more than everything before it. Each request
//! has a savepoint: one that fails takes nothing of the others with it. Answers go out after the COMMIT.

use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::StoreError;
use crate::cache::definition_cache::Cache;
use crate::sqlite::client::error;

/// No more than this is gathered into one transaction.
const GROUP: usize = 64;
/// How many requests wait before callers do.
const QUEUE: usize = 1024;

/// The thread's own values.
pub(in crate::sqlite) struct WriterConnection {
    pub conn: Connection,
    pub cache: Cache,
}

/// Something to do inside the transaction.
trait Request: Send {
    /// Does it; `true` when its savepoint stands.
    fn run(&mut self, writer: &mut WriterConnection) -> bool;
    /// Tells the caller, with what became of the COMMIT.
    fn reply(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Call<O, T, E> {
    operation: Option<O>,
    answer: Option<Result<T, E>>,
    tell: oneshot::Sender<Result<T, E>>,
}

impl<O, T, E> Request for Call<O, T, E>
where
    O: FnOnce(&mut WriterConnection) -> Result<T, E> + Send,
    T: Send,
    E: From<StoreError> + Send,
{
    fn run(&mut self, writer: &mut WriterConnection) -> bool {
        self.answer = self.operation.take().map(|operation| operation(writer));
        matches!(self.answer, Some(Ok(_)))
    }

    fn reply(self: Box<Self>, committed: Result<(), StoreError>) {
        let unasked = || StoreError::Retryable("the request was not run".to_owned()).into();
        let answer = match (self.answer, committed) {
            (Some(Err(own)), _) => Err(own),
            (Some(Ok(_)) | None, Err(error)) => Err(error.into()),
            (Some(Ok(answer)), Ok(())) => Ok(answer),
            (None, Ok(())) => Err(unasked()),
        };
        // A caller that has gone does not want to know.
        let _gone = self.tell.send(answer);
    }
}

/// The way to the writing thread.
#[derive(Debug)]
pub(in crate::sqlite) struct Writer {
    requests: Option<mpsc::Sender<Box<dyn Request>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Hands the connection and what it remembers to a thread of its own.
    pub fn spawn(conn: Connection, cache: Cache) -> std::io::Result<Self> {
        let (requests, mut queue) = mpsc::channel(QUEUE);
        let mut writer = WriterConnection { conn, cache };
        let thread = std::thread::Builder::new().name("carillon-sqlite".to_owned()).spawn(move || {
            while let Some(first) = queue.blocking_recv() {
                let further = std::iter::from_fn(|| queue.try_recv().ok());
                let group = std::iter::once(first).chain(further).take(GROUP).collect();
                commit_group(&mut writer, group);
            }
        })?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Runs `operation` in a transaction and waits for its COMMIT.
    pub async fn call<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        operation: impl FnOnce(&mut WriterConnection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (tell, told) = oneshot::channel();
        let request = Box::new(Call { operation: Some(operation), answer: None, tell });
        let accepted = match &self.requests {
            Some(requests) => requests.send(request).await.is_ok(),
            None => false,
        };
        if !accepted {
            return Err(StoreError::Retryable("the database is closed".to_owned()).into());
        }
        let lost = |_| Err(StoreError::Unknown("the thread that writes the database has ended".to_owned()).into());
        told.await.unwrap_or_else(lost)
    }
}

impl Drop for Writer {
    /// Waits until everything accepted is written and the file is closed.
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn commit_group(writer: &mut WriterConnection, group: Vec<Box<dyn Request>>) {
    let mut done: Vec<Box<dyn Request>> = Vec::with_capacity(group.len());
    for mut request in group {
        if let Err(error) = begin(writer).and_then(|()| one(writer, request.as_mut())) {
            request.reply(Err(error::statement(error)));
        } else {
            done.push(request);
        }
        // Some errors roll the whole transaction back: a full disk, a failing one.
        if writer.conn.is_autocommit() {
            writer.cache.clear();
            let lost = StoreError::Retryable("rolled back together with a request that failed".to_owned());
            done.drain(..).for_each(|request| request.reply(Err(lost.clone())));
        }
    }
    if writer.conn.is_autocommit() {
        return;
    }
    let committed = writer.conn.execute_batch("COMMIT").map_err(error::commit);
    if committed.is_err() {
        roll_back(writer);
    }
    done.into_iter().for_each(|request| request.reply(committed.clone()));
}

fn begin(writer: &WriterConnection) -> rusqlite::Result<()> {
    if writer.conn.is_autocommit() { writer.conn.execute_batch("BEGIN IMMEDIATE") } else { Ok(()) }
}

/// A connection with a cache that holds only what it has read or committed.
pub(in crate::sqlite) trait Cached {
    fn conn(&self) -> &Connection;
    fn cache(&mut self) -> &mut Cache;
}

impl Cached for WriterConnection {
    fn conn(&self) -> &Connection {
        &self.conn
    }

    fn cache(&mut self) -> &mut Cache {
        &mut self.cache
    }
}

/// One request under its savepoint.
fn one(writer: &mut WriterConnection, request: &mut dyn Request) -> rusqlite::Result<()> {
    savepoint(writer, |writer| if request.run(writer) { Ok(()) } else { Err(()) }).map(|_refused| ())
}

/// Runs `part` so that nothing of it stays if it fails.
pub(in crate::sqlite) fn savepoint<C: Cached, T, E>(
    on: &mut C,
    part: impl FnOnce(&mut C) -> Result<T, E>,
) -> rusqlite::Result<Result<T, E>> {
    run(on.conn(), "SAVEPOINT part")?;
    let answer = part(on);
    if on.conn().is_autocommit() {
        return Ok(answer);
    }
    if answer.is_err() {
        on.cache().clear();
        run(on.conn(), "ROLLBACK TO part")?;
    }
    run(on.conn(), "RELEASE part")?;
    Ok(answer)
}

fn roll_back(writer: &mut WriterConnection) {
    writer.cache.clear();
    if !writer.conn.is_autocommit()
        && let Err(error) = writer.conn.execute_batch("ROLLBACK")
    {
        tracing::error!(%error, "a transaction cannot be rolled back");
    }
}

fn run(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(|_| ())
}
