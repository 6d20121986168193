//! The simulator's fake runs a script.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use carillon_domain::id::{JobId, SessionId};
use carillon_doubles::innodb::{Calm, InnoDb, Limits, Refused, ScriptConnection};
use carillon_store::ManualClock;
use carillon_tests::conformance::fixture::{BEGIN, PARTITIONS};
use tokio::sync::Mutex as AsyncMutex;

use super::Do::{
    Beat, Begin, Close, Commit, Hasty, InsertSession, Lock, OutWait, Read, ReadSession, RollBack, Write, WriteBatch,
};
use super::{Do, Heard, Said, Step, jobs_of};

/// A step under way.
type FakeStep = Pin<Box<dyn Future<Output = Said> + Send>>;

/// The fake.
pub(super) struct Fake {
    database: InnoDb,
    jobs: Vec<(JobId, u64)>,
    connections: BTreeMap<char, Arc<AsyncMutex<ScriptConnection>>>,
    waiting: Vec<(char, FakeStep)>,
    now_us: u64,
}

async fn on_fake(connection: Arc<AsyncMutex<ScriptConnection>>, what: Do, jobs: Vec<(JobId, u64)>) -> Said {
    let mut connection = connection.lock().await;
    match what {
        Begin => done(connection.begin().await),
        Lock(ids) => done(connection.write_lock_rows(ids).await),
        Write(at, raised) | WriteBatch(at, raised) => {
            let (id, first) = jobs[at];
            said(connection.write_job(id, first + raised).await.map(Some))
        }
        Read(at) => {
            let (id, first) = jobs[at];
            said(connection.read_job(id).await.map(|version| version.map(|version| version - first)))
        }
        InsertSession(id) => done(connection.insert_session(SessionId::from_random(id)).await),
        Beat(id, seq) => done(connection.beat(SessionId::from_random(id), seq).await),
        ReadSession(id) => said(connection.read_session(SessionId::from_random(id)).await),
        Commit => done(connection.commit().await),
        RollBack => {
            connection.roll_back().await;
            Said::Done
        }
        Hasty | Close | OutWait => Said::Done,
    }
}

impl Fake {
    pub async fn new() -> Self {
        let clock = ManualClock::at(BEGIN);
        let database = InnoDb::new(Arc::new(clock), PARTITIONS, Limits::default(), Calm);
        let jobs = jobs_of(&database.client(1)).await;
        Self { database, jobs, connections: BTreeMap::new(), waiting: Vec::new(), now_us: 0 }
    }

    fn connection(&mut self, who: char) -> Arc<AsyncMutex<ScriptConnection>> {
        let database = &self.database;
        self.connections.entry(who).or_insert_with(|| Arc::new(AsyncMutex::new(database.connection()))).clone()
    }

    pub fn run(mut self, script: &[Step]) -> Heard {
        let mut heard = Heard::new();
        for (who, what) in script {
            match what {
                Close => {
                    self.waiting.retain(|(waiter, _)| waiter != who);
                    if let Some(connection) = self.connections.remove(who) {
                        connection.try_lock().expect("nobody uses it").close();
                    }
                    // Killed at once: what is due then is done.
                    self.database.advance_to(self.now_us);
                }
                OutWait => {
                    self.now_us += Limits::default().lock_wait.as_micros() as u64;
                    self.database.advance_to(self.now_us);
                }
                _ => {
                    let mut step: FakeStep = Box::pin(on_fake(self.connection(*who), *what, self.jobs.clone()));
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
