//! Firings through all three transitions of a store, a batch at a time, with no engine around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::StartAnswer;
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::mysql::{MySqlStore, Options};
use carillon_store::sqlite::{OpenOptions, SqliteStore};
use carillon_store::{ClaimRequest, Finished, ManualClock, Me, NewSession, Output, PutIf, PutJob, Store};
use carillon_tests::conformance::fixture::{BEGIN, at, ending, job, refs};

/// Of every store that is measured: enough for callers that have nothing to do with each other.
const PARTITIONS: u16 = 12;
/// Jobs of one transaction.
const AT_ONCE: usize = 1_000;
/// When the jobs are due, in seconds after the beginning.
const DUE: u64 = 10;

/// How long each of the transitions took, all batches together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// Firings.
    pub count: usize,
    /// Idle -> Prepared.
    pub claims: Duration,
    /// Prepared -> Executing.
    pub starts: Duration,
    /// Executing -> Idle.
    pub finishes: Duration,
}

/// A store with one session and jobs that are all due.
pub struct Cycles {
    store: Arc<dyn Store>,
    clock: ManualClock,
    me: SessionId,
    drawn: AtomicU64,
}

impl Cycles {
    /// On an empty database of a server.
    pub async fn on_server(url: &str) -> Self {
        let clock = ManualClock::at(BEGIN);
        let options = Options { partitions: PARTITIONS, clock: Some(Arc::new(clock.clone())), ..Options::default() };
        let store = MySqlStore::open(url, options).await.expect("a store");
        Self::of(Arc::new(store), clock).await
    }

    /// On a new file of SQLite.
    pub async fn on_file(path: &std::path::Path) -> Self {
        let clock = ManualClock::at(BEGIN);
        let options = OpenOptions { partitions: PARTITIONS, ..OpenOptions::default() };
        let store = SqliteStore::open(path, Arc::new(clock.clone()), options).expect("a store");
        Self::of(Arc::new(store), clock).await
    }

    async fn of(store: Arc<dyn Store>, clock: ManualClock) -> Self {
        let me = SessionId::from_random(1);
        let (node, address, version) = ("bench".to_owned(), "127.0.0.1:7650".to_owned(), "0.1.0".to_owned());
        let opened = store.open_session(&NewSession { id: me, node, address, version }).await.expect("a session");
        assert_eq!(opened.partitions, PARTITIONS, "partitions of a new database");
        Self { store, clock, me, drawn: AtomicU64::new(0) }
    }

    /// Adds so many jobs, a transaction per 1,000, and lets them come due; how many a second.
    pub async fn add(&self, count: usize) -> f64 {
        let began = Instant::now();
        for first in (0..count).step_by(AT_ONCE) {
            let put = |n| PutJob { job: job(&format!("j{n}")), paused: None, when: PutIf::Any, author: author() };
            let puts: Vec<_> = (first..count.min(first + AT_ONCE)).map(put).collect();
            self.store.put_jobs(&puts).await.expect("created");
        }
        self.clock.set(at(DUE));
        count as f64 / began.elapsed().as_secs_f64()
    }

    /// The partitions of one of `callers` that share nothing.
    pub fn share(caller: usize, callers: usize) -> Vec<u16> {
        (0..PARTITIONS).filter(|partition| usize::from(*partition) % callers == caller).collect()
    }

    /// Batches of `size` firings in some partitions, one after another.
    pub async fn run(&self, partitions: &[u16], batches: usize, size: usize) -> Times {
        let mut times = Times::default();
        for _ in 0..batches {
            self.batch(partitions, size, &mut times).await;
        }
        times
    }

    async fn batch(&self, partitions: &[u16], size: usize, times: &mut Times) {
        let me = Me::new(self.me);
        let runs = (0..size).map(|_| RunId::drawn(self.me, self.drawn.fetch_add(1, Ordering::Relaxed) + 1)).collect();
        let executors = vec!["shell".to_owned()];
        let request = ClaimRequest { me, partitions: partitions.to_vec(), until: at(DUE), runs, places: 0, executors };
        let began = Instant::now();
        let claimed = self.store.claim(&request).await.expect("claimed");
        times.claims += began.elapsed();
        assert_eq!(claimed.len(), size, "enough jobs are due");
        let began = Instant::now();
        let answers = self.store.start(me, &refs(&claimed)).await.expect("started");
        times.starts += began.elapsed();
        let ended: Vec<_> = answers.into_iter().filter_map(ended).collect();
        assert_eq!(ended.len(), size, "all were started");
        let began = Instant::now();
        self.store.finish(Me::new(self.me), &ended, &[]).await.expect("finished");
        times.finishes += began.elapsed();
        times.count += size;
    }
}

fn ended(answer: StartAnswer) -> Option<Finished> {
    let StartAnswer::Started { at: running, .. } = answer else { return None };
    let request =
        Finished { at: running, ending: ending(Status::Succeeded, at(DUE)), next: None, output: Default::default() };
    Some(Finished { output: Output { bytes: b"done\n".to_vec(), truncated: false }.into(), ..request })
}
