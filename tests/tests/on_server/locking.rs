//! The fake InnoDB of the simulator held against the real one: small scripts of interleaved transactions, run on both, whose
//! steps must answer the same and in the same order.
//!
//! A step that waits is told from one that takes long by asking the server who waits, never by sleeping.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use carillon_adapters::store::memory::innodb::{Calm, Connection, InnoDb, Limits, Refused};
use carillon_adapters::store::{ControlStore, ManualClock, NodeStore, PutIf, PutJob};
use carillon_domain::id::{JobId, SessionId};
use carillon_tests::conformance::bench::{BEGIN, PARTITIONS, job, key};
use carillon_tests::databases::Database;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Row};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;

use super::{bench, server, wait_until};

/// What one connection does next. Jobs are told by their place, versions by how often they were raised.
#[derive(Debug, Clone, Copy)]
enum Do {
    Begin,
    /// Writes lock rows.
    Lock(&'static [u32]),
    /// Raises the version of a job's row that is at this version.
    Write(usize, u64),
    /// The same through a batch, as the store does it.
    WriteBatch(usize, u64),
    Read(usize),
    InsertSession(u64),
    Beat(u64, u64),
    ReadSession(u64),
    Commit,
    RollBack,
    /// The connection is closed under its client.
    Close,
    /// From now on the server lets this connection wait for a lock for a few seconds only.
    Hasty,
    /// The statement that waits is seen to wait for too long.
    OutWait,
}

use Do::{
    Beat, Begin, Close, Commit, Hasty, InsertSession, Lock, OutWait, Read, ReadSession, RollBack, Write, WriteBatch,
};

/// Who does it.
type Step = (char, Do);

/// What a step answered: a number, how it was refused, or that it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Done,
    Number(u64),
    Nothing,
    Refused(Refused),
    Waits,
}

/// What happened, in order: who said what, also of steps that had waited.
type Heard = Vec<(char, Said)>;

/// Scripts: each names what it shows.
const SCRIPTS: &[(&str, &[Step])] = &[
    (
        "lock rows are granted in the order in which they were asked for",
        &[
            ('a', Begin),
            ('b', Begin),
            ('c', Begin),
            ('a', Lock(&[1, 2])),
            ('b', Lock(&[2])),
            ('c', Lock(&[2])),
            ('a', Commit),
            ('b', Commit),
            ('c', Commit),
        ],
    ),
    (
        "a guarded write waits for the other's and matches nothing after it committed",
        &[
            ('a', Begin),
            ('b', Begin),
            ('a', Write(0, 0)),
            ('b', Write(0, 0)),
            ('a', Commit),
            ('b', Read(0)),
            ('b', RollBack),
        ],
    ),
    (
        "a guarded write waits for the other's and matches after it rolled back",
        &[
            ('a', Begin),
            ('b', Begin),
            ('a', Write(0, 0)),
            ('b', Write(0, 0)),
            ('a', RollBack),
            ('b', Commit),
            ('a', Begin),
            ('a', Read(0)),
            ('a', RollBack),
        ],
    ),
    (
        "a batch waits and matches as a single statement does",
        &[
            ('a', Begin),
            ('b', Begin),
            ('a', WriteBatch(0, 0)),
            ('b', WriteBatch(0, 0)),
            ('a', Commit),
            ('b', RollBack),
            ('a', Begin),
            ('b', Begin),
            ('a', Write(0, 1)),
            ('b', WriteBatch(0, 1)),
            ('a', RollBack),
            ('b', Commit),
        ],
    ),
    (
        "a statement reads what is committed, and what its own transaction wrote, and nothing else",
        &[
            ('a', Begin),
            ('b', Begin),
            ('b', Read(0)),
            ('a', Write(0, 0)),
            ('a', Read(0)),
            ('b', Read(0)),
            ('a', Commit),
            ('b', Read(0)),
            ('b', RollBack),
        ],
    ),
    (
        "of a wait that takes too long only the statement is rolled back",
        &[
            ('a', Begin),
            ('b', Begin),
            ('c', Begin),
            ('a', Lock(&[1])),
            ('b', Write(1, 0)),
            ('b', Hasty),
            ('b', Lock(&[1])),
            ('b', OutWait),
            ('b', Read(1)),
            ('c', Write(1, 0)),
            ('b', Commit),
            ('a', Commit),
            ('c', RollBack),
        ],
    ),
    (
        "of a cycle the one that wrote least is rolled back as a whole",
        &[
            ('a', Begin),
            ('b', Begin),
            ('b', Write(2, 0)),
            ('b', Write(3, 0)),
            ('b', Write(1, 0)),
            ('a', Write(0, 0)),
            ('a', Write(1, 0)),
            ('b', Write(0, 0)),
            ('b', Commit),
            ('a', Begin),
            ('a', Read(0)),
            ('a', RollBack),
        ],
    ),
    (
        "a transaction that closes a cycle and wrote least goes itself",
        &[
            ('a', Begin),
            ('b', Begin),
            ('a', Write(2, 0)),
            ('a', Write(3, 0)),
            ('a', Write(0, 0)),
            ('b', Write(1, 0)),
            ('a', Write(1, 0)),
            ('b', Write(0, 0)),
            ('a', Commit),
            ('b', Begin),
            ('b', Read(0)),
            ('b', RollBack),
        ],
    ),
    (
        "a connection that is closed gives its locks back and leaves nothing",
        &[
            ('a', Begin),
            ('b', Begin),
            ('a', Write(0, 0)),
            ('b', Write(0, 0)),
            ('a', Close),
            ('b', Commit),
            ('b', Begin),
            ('b', Read(0)),
            ('b', RollBack),
        ],
    ),
    (
        "who is closed while it waits leaves the queue",
        &[
            ('a', Begin),
            ('b', Begin),
            ('c', Begin),
            ('a', Lock(&[1])),
            ('b', Lock(&[1])),
            ('c', Lock(&[1])),
            ('b', Close),
            ('a', Commit),
            ('c', Commit),
        ],
    ),
    (
        "an insert waits for the same one that is not committed, and finds it there",
        &[('a', Begin), ('b', Begin), ('a', InsertSession(7)), ('b', InsertSession(7)), ('a', Commit), ('b', RollBack)],
    ),
    (
        "an insert waits for the same one that is not committed, and takes its place",
        &[
            ('a', Begin),
            ('b', Begin),
            ('a', InsertSession(7)),
            ('b', InsertSession(7)),
            ('a', RollBack),
            ('b', Commit),
            ('a', Begin),
            ('a', ReadSession(7)),
            ('a', RollBack),
        ],
    ),
    (
        "heartbeats of one session queue, and the older one changes nothing",
        &[
            ('a', Begin),
            ('a', InsertSession(8)),
            ('a', Commit),
            ('a', Begin),
            ('b', Begin),
            ('a', Beat(8, 5)),
            ('b', Beat(8, 4)),
            ('a', Commit),
            ('b', ReadSession(8)),
            ('b', Commit),
        ],
    ),
];

fn said(answer: Result<Option<u64>, Refused>) -> Said {
    match answer {
        Ok(Some(number)) => Said::Number(number),
        Ok(None) => Said::Nothing,
        Err(refused) => Said::Refused(refused),
    }
}

fn done(answer: Result<(), Refused>) -> Said {
    answer.map_or_else(Said::Refused, |()| Said::Done)
}

/// A step under way.
type FakeStep = Pin<Box<dyn Future<Output = Said> + Send>>;

/// The fake.
struct Fake {
    database: InnoDb,
    jobs: Vec<(JobId, u64)>,
    wires: BTreeMap<char, Arc<AsyncMutex<Connection>>>,
    waiting: Vec<(char, FakeStep)>,
    now_us: u64,
}

async fn on_fake(wire: Arc<AsyncMutex<Connection>>, what: Do, jobs: Vec<(JobId, u64)>) -> Said {
    let mut wire = wire.lock().await;
    match what {
        Begin => done(wire.begin().await),
        Lock(ids) => done(wire.write_lock_rows(ids).await),
        Write(at, raised) | WriteBatch(at, raised) => {
            let (id, first) = jobs[at];
            said(wire.write_job(id, first + raised).await.map(Some))
        }
        Read(at) => {
            let (id, first) = jobs[at];
            said(wire.read_job(id).await.map(|version| version.map(|version| version - first)))
        }
        InsertSession(id) => done(wire.insert_session(SessionId::from_random(id)).await),
        Beat(id, seq) => done(wire.beat(SessionId::from_random(id), seq).await),
        ReadSession(id) => said(wire.read_session(SessionId::from_random(id)).await),
        Commit => done(wire.commit().await),
        RollBack => {
            wire.roll_back().await;
            Said::Done
        }
        Hasty | Close | OutWait => Said::Done,
    }
}

impl Fake {
    async fn new() -> Self {
        let clock = ManualClock::at(BEGIN);
        let database = InnoDb::new(Arc::new(clock), PARTITIONS, Limits::default(), Calm);
        let jobs = jobs_of(&database.client(1)).await;
        Self { database, jobs, wires: BTreeMap::new(), waiting: Vec::new(), now_us: 0 }
    }

    fn wire(&mut self, who: char) -> Arc<AsyncMutex<Connection>> {
        let database = &self.database;
        self.wires.entry(who).or_insert_with(|| Arc::new(AsyncMutex::new(database.connection()))).clone()
    }

    fn run(mut self, script: &[Step]) -> Heard {
        let mut heard = Heard::new();
        for (who, what) in script {
            match what {
                Close => {
                    self.waiting.retain(|(waiter, _)| waiter != who);
                    if let Some(wire) = self.wires.remove(who) {
                        wire.try_lock().expect("nobody uses it").close();
                    }
                    // Killed at once: what is due then is done.
                    self.database.advance_to(self.now_us);
                }
                OutWait => {
                    self.now_us += Limits::default().lock_wait.as_micros() as u64;
                    self.database.advance_to(self.now_us);
                }
                _ => {
                    let mut step: FakeStep = Box::pin(on_fake(self.wire(*who), *what, self.jobs.clone()));
                    match step.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(said) => heard.push((*who, said)),
                        Poll::Pending => {
                            heard.push((*who, Said::Waits));
                            self.waiting.push((*who, step));
                        }
                    }
                }
            }
            let mut context = Context::from_waker(Waker::noop());
            self.waiting.retain_mut(|(who, step)| match step.as_mut().poll(&mut context) {
                Poll::Ready(said) => {
                    heard.push((*who, said));
                    false
                }
                Poll::Pending => true,
            });
        }
        assert!(self.waiting.is_empty(), "a script leaves nobody waiting");
        heard
    }
}

async fn jobs_of(store: &(impl ControlStore + NodeStore + ?Sized)) -> Vec<(JobId, u64)> {
    let mut jobs = Vec::new();
    for name in ["j0", "j1", "j2", "j3"] {
        let put = [PutJob { job: job(name), paused: None, when: PutIf::Any }];
        store.put_jobs(&put).await.unwrap().pop().unwrap().unwrap();
        let state = store.job(&key(name)).await.unwrap().state;
        jobs.push((state.id, state.version));
    }
    jobs
}

/// The real one.
struct Real {
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
    async fn new() -> Self {
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

    async fn run(mut self, script: &[Step]) -> Heard {
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
                        // What its client hears is not what others see.
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
            // Whoever went on because of this step may be heard before it.
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

#[tokio::test(flavor = "multi_thread")]
async fn the_simulators_fake_locks_as_the_server_does() {
    for (shows, script) in SCRIPTS {
        let fake = Fake::new().await.run(script);
        let real = tokio::time::timeout(Duration::from_secs(60), Real::new().await.run(script)).await;
        assert_eq!(fake, real.expect("a script comes to its end"), "{shows}: the fake's answers, and the server's");
    }
}
