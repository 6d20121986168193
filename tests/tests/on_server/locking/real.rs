//! A real server runs a script.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use carillon_domain::id::{JobId, SessionId};
use carillon_doubles::innodb::Refused;
use carillon_tests::databases::Database;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Row};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;

use super::super::{bench, server, wait_until};
use super::Do::{
    Beat, Begin, Close, Commit, Hasty, InsertSession, Lock, OutWait, Read, ReadSession, RollBack, Write, WriteBatch,
};
use super::{Do, Heard, Said, Step, jobs_of};

/// The real one.
pub(super) struct Real {
    database: Database,
    root: Conn,
    jobs: Vec<(JobId, u64)>,
    wires: BTreeMap<char, (Arc<AsyncMutex<Conn>>, u32)>,
    waiting: Vec<(char, JoinHandle<()>)>,
    heard: Arc<Mutex<Heard>>,
}

fn refused(error: &Error) -> Refused {
    match error {
        Error::Server(server) => match server.code {
            1205 => Refused::LockWaitTimeout,
            1213 => Refused::Deadlock,
            1062 => Refused::Duplicate,
            _ => Refused::Lost,
        },
        _ => Refused::Lost,
    }
}

async fn on_real(conn: &mut Conn, what: Do, jobs: &[(JobId, u64)]) -> mysql_async::Result<Said> {
    let write = async |conn: &mut Conn, sql: String| {
        conn.query_drop(sql).await?;
        Ok(Said::Number(conn.affected_rows()))
    };
    match what {
        Begin => conn.query_drop("START TRANSACTION").await?,
        Lock(ids) => {
            let list = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            let sql = format!("UPDATE lock_row FORCE INDEX (PRIMARY) SET epoch = epoch + 1 WHERE id IN ({list})");
            conn.query_drop(sql).await?;
        }
        Write(at, raised) => {
            let ((id, first), set) = (jobs[at], "SET version = version + 1");
            let sql = format!("UPDATE job_state {set} WHERE id = {id} AND version = {}", first + raised);
            return write(conn, sql).await;
        }
        WriteBatch(at, raised) => {
            let (id, first) = jobs[at];
            let sql = format!(
                "UPDATE JSON_TABLE('[[{id},{}]]', '$[*]' COLUMNS (id BIGINT UNSIGNED PATH '$[0]', guard BIGINT UNSIGNED \
                 PATH '$[1]')) t STRAIGHT_JOIN job_state s ON s.id = t.id SET s.version = s.version + 1 \
                 WHERE s.version = t.guard",
                first + raised
            );
            return write(conn, sql).await;
        }
        Read(at) => {
            let (id, first) = jobs[at];
            let version: Option<u64> =
                conn.query_first(format!("SELECT version FROM job_state WHERE id = {id}")).await?;
            return Ok(version.map_or(Said::Nothing, |version| Said::Number(version - first)));
        }
        InsertSession(id) => {
            let sql = "INSERT INTO session (id, node, address, version, state, seq, started_at, heartbeat_at) \
                       VALUES (?, 'n', 'a', 'v', 'live', 0, 0, 0)";
            conn.exec_drop(sql, (SessionId::from_random(id).as_u64(),)).await?;
        }
        Beat(id, seq) => {
            let sql = "UPDATE session SET seq = ?, state = 'live' WHERE id = ? AND state <> 'ended' AND seq < ?";
            conn.exec_drop(sql, (seq, SessionId::from_random(id).as_u64(), seq)).await?;
        }
        ReadSession(id) => {
            let sql = "SELECT seq FROM session WHERE id = ?";
            let seq: Option<u64> = conn.exec_first(sql, (SessionId::from_random(id).as_u64(),)).await?;
            return Ok(seq.map_or(Said::Nothing, Said::Number));
        }
        Commit => conn.query_drop("COMMIT").await?,
        RollBack => conn.query_drop("ROLLBACK").await?,
        Hasty => conn.query_drop("SET SESSION innodb_lock_wait_timeout = 4").await?,
        Close | OutWait => {}
    }
    Ok(Said::Done)
}

/// A step has come to its end, or waits for a lock, as the server says. Its table of transactions stands still while it is
/// read more often than each 100 ms.
async fn ends_or_waits(root: &mut Conn, step: &JoinHandle<()>, id: u32) {
    let sql = format!(
        "SELECT 1 FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = {id} AND trx_state = 'LOCK WAIT'"
    );
    let mut looks = 0;
    wait_until("a step ends or waits", async || {
        looks += 1;
        step.is_finished() || looks % 40 == 0 && root.query_first::<Row, _>(&sql).await.unwrap().is_some()
    })
    .await;
}

impl Real {
    pub async fn new() -> Self {
        let (bench, database) = bench().await;
        let jobs = jobs_of(&*bench.store).await;
        let root = server().root().await;
        Self { database, root, jobs, wires: BTreeMap::new(), waiting: Vec::new(), heard: Arc::default() }
    }

    async fn wire(&mut self, who: char) -> (Arc<AsyncMutex<Conn>>, u32) {
        if !self.wires.contains_key(&who) {
            let mut conn = self.database.connect().await;
            conn.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await.unwrap();
            conn.query_drop("SET SESSION innodb_lock_wait_timeout = 60").await.unwrap();
            let id = conn.id();
            self.wires.insert(who, (Arc::new(AsyncMutex::new(conn)), id));
        }
        self.wires[&who].clone()
    }

    /// Every step that waited and does not any more has been heard.
    async fn gather(&mut self) {
        let ids: BTreeMap<char, u32> = self.wires.iter().map(|(who, (_, id))| (*who, *id)).collect();
        let Self { waiting, root, .. } = self;
        for (who, step) in waiting.iter() {
            let id = ids.get(who).copied().unwrap_or(0);
            ends_or_waits(root, step, id).await;
        }
        self.waiting.retain(|(_, step)| !step.is_finished());
    }

    pub async fn run(mut self, script: &[Step]) -> Heard {
        for (who, what) in script {
            let (wire, id) = self.wire(*who).await;
            let before = self.heard.lock().unwrap().len();
            match what {
                Close => {
                    self.root.query_drop(format!("KILL CONNECTION {id}")).await.unwrap();
                    let sql = format!("SELECT 1 FROM information_schema.processlist WHERE id = {id}");
                    let root = &mut self.root;
                    wait_until("the connection is gone", async || {
                        root.query_first::<Row, _>(&sql).await.unwrap().is_none()
                    })
                    .await;
                    self.wires.remove(who);
                    if let Some(at) = self.waiting.iter().position(|(waiter, _)| waiter == who) {
                        let (_, step) = self.waiting.remove(at);
                        step.await.unwrap();
                        // Its client may hear another thing than others see.
                        self.heard.lock().unwrap().pop();
                    }
                }
                OutWait => {
                    let at = self.waiting.iter().position(|(waiter, _)| waiter == who).expect("it waits");
                    self.waiting.remove(at).1.await.unwrap();
                }
                _ => self.start(*who, *what, wire, id).await,
            }
            self.gather().await;
            // A step that went on because of this one may be heard before it.
            self.heard.lock().unwrap()[before..].sort_by_key(|(speaker, _)| (speaker != who, *speaker));
        }
        assert!(self.waiting.is_empty(), "a script leaves nobody waiting");
        Arc::try_unwrap(self.heard).expect("all steps are over").into_inner().unwrap()
    }

    async fn start(&mut self, who: char, what: Do, wire: Arc<AsyncMutex<Conn>>, id: u32) {
        let (heard, jobs) = (self.heard.clone(), self.jobs.clone());
        let step = tokio::spawn(async move {
            let mut conn = wire.lock().await;
            let answer = on_real(&mut conn, what, &jobs).await;
            let said = answer.unwrap_or_else(|error| Said::Refused(refused(&error)));
            heard.lock().unwrap().push((who, said));
        });
        ends_or_waits(&mut self.root, &step, id).await;
        if !step.is_finished() {
            self.heard.lock().unwrap().push((who, Said::Waits));
            self.waiting.push((who, step));
        }
    }
}
