//! The fake InnoDB of the simulator held against the real one: small scripts of interleaved transactions, run on both, whose
//! steps must answer the same and in the same order.
//!
//! A step that waits is told from one that takes long by asking the server who waits, never by sleeping.

mod fake;
mod real;
mod scripts;

use std::time::Duration;

use carillon_domain::id::JobId;
use carillon_doubles::{author, innodb::Refused};
use carillon_store::{ControlStore, NodeStore, PutIf, PutJob};
use carillon_tests::conformance::fixture::{job, key};

use fake::Fake;
use real::Real;
use scripts::SCRIPTS;

/// The next step of one connection. Jobs are told by their place, versions by how often they were raised.
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

/// Who does it.
type Step = (char, Do);

/// The answer of a step: a number, how it was refused, or that it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Done,
    Number(u64),
    Nothing,
    Refused(Refused),
    Waits,
}

/// The events, in order: who said what, also of steps that had waited.
type Heard = Vec<(char, Said)>;

async fn jobs_of(store: &(impl ControlStore + NodeStore + ?Sized)) -> Vec<(JobId, u64)> {
    let mut jobs = Vec::new();
    for name in ["j0", "j1", "j2", "j3"] {
        let put = [PutJob { job: job(name), paused: None, when: PutIf::Any, author: author() }];
        store.put_jobs(&put).await.unwrap().pop().unwrap().unwrap();
        let state = store.job(&key(name)).await.unwrap().state;
        jobs.push((state.id, state.version));
    }
    jobs
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulators_fake_locks_as_the_server_does() {
    for (shows, script) in SCRIPTS {
        let fake = Fake::new().await.run(script);
        let real = tokio::time::timeout(Duration::from_secs(60), Real::new().await.run(script)).await;
        assert_eq!(fake, real.expect("a script comes to its end"), "{shows}: the fake's answers, and the server's");
    }
}
