//! Where the stories get their stores, and the questions that many of them ask.

use std::sync::Arc;

use carillon_domain::firing::{FiringKey, Held, JobState, Phase};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::invariants::{self as must, Verdict};
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{Claimed, RunRef, StartAnswer};
use carillon_domain::run::Trigger;
use carillon_doubles::{author, memory_store};
use carillon_store::mysql::{MySqlStore, Options};
use carillon_store::sqlite::{OpenOptions, SqliteStore};
use carillon_store::{JobQuery, ManualClock, Me, RunStage};

use crate::conformance::fixture::{BEGIN, PARTITIONS, key};
use crate::conformance::{Backups, StoreFixture};
use crate::databases::Database;

/// Names the MariaDB of the stories: `PORT NAME`.
pub const DATABASE: &str = "CARILLON_GUARDS_DATABASE";

/// Runs a story that waits.
pub fn run(story: impl Future<Output = Verdict>) -> Verdict {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(story)
}

/// A store in memory that may go back in time.
pub async fn memory() -> StoreFixture {
    let clock = ManualClock::at(BEGIN);
    let store = memory_store(Arc::new(clock.clone()), PARTITIONS);
    let mut bench = StoreFixture::new(Arc::new(store.clone()), clock).await;
    bench.backups = Some(Backups::memory(&store));
    bench
}

/// A store in a file.
pub async fn sqlite() -> StoreFixture {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = ManualClock::at(BEGIN);
    let options = OpenOptions { partitions: PARTITIONS, ..OpenOptions::default() };
    let store = SqliteStore::open(&directory.path().join("carillon.db"), Arc::new(clock.clone()), options);
    let mut bench = StoreFixture::new(Arc::new(store.expect("a database")), clock).await;
    bench.keep = Some(Box::new(directory));
    bench
}

/// The database that was made for this story.
pub fn database() -> Database {
    let named = std::env::var(DATABASE).expect("the story was given a database");
    let (port, name) = named.split_once(' ').expect("a port and a name");
    Database::existing(name, port.parse().expect("a port"))
}

/// A store on MariaDB, as another process would have one.
pub async fn open(url: &str, clock: &ManualClock) -> MySqlStore {
    let clock = Some(Arc::new(clock.clone()) as Arc<dyn carillon_store::Clock>);
    let statement_timeout = std::time::Duration::from_secs(60);
    MySqlStore::open(url, Options { partitions: PARTITIONS, clock, statement_timeout, ..Options::default() })
        .await
        .expect("a database")
}

/// A store on MariaDB with one session.
pub async fn mariadb() -> StoreFixture {
    let clock = ManualClock::at(BEGIN);
    let store = open(&database().url(), &clock).await;
    StoreFixture::new(Arc::new(store), clock).await
}

/// The same story on every kind of store; the first one in which something breaks tells.
pub async fn on_every_store(story: impl AsyncFn(StoreFixture) -> Verdict) -> Verdict {
    let verdicts = [story(memory().await).await, story(sqlite().await).await, story(mariadb().await).await];
    let broken = verdicts.iter().filter(|verdict| verdict.is_err()).count();
    assert!(broken == 0 || broken == verdicts.len(), "the stores differ: {verdicts:?}");
    verdicts.into_iter().find(Result::is_err).unwrap_or(Ok(()))
}

/// The row of a job.
pub async fn state(bench: &StoreFixture, name: &str) -> JobState {
    bench.view(name).await.state
}

/// The phase of the row that carries a run, as far as it runs.
pub async fn phase(bench: &StoreFixture, run: RunId) -> Option<Phase> {
    match bench.store.run(run).await.ok()?.stage {
        RunStage::Running { held, .. } => Some(Phase::Executing(held)),
        RunStage::Waiting { .. } | RunStage::Recorded { .. } => None,
    }
}

/// S3 of a child that lives.
pub async fn child_has_its_row(bench: &StoreFixture, session: SessionId, run: RunId) -> Verdict {
    must::child_has_its_row(session, run, phase(bench, run).await.as_ref())
}

/// Starts what was claimed; where it runs, if it does.
pub async fn try_start(bench: &StoreFixture, me: Me, claimed: &Claimed) -> Option<RunRef> {
    match bench.store.start(me, &[claimed.at]).await.expect("an answer").remove(0) {
        StartAnswer::Started { at, .. } => Some(at),
        _ => None,
    }
}

/// S5 of a start: `before` is the job's row as it was then.
pub async fn may_start(bench: &StoreFixture, before: &JobState, claimed: &Claimed) -> Verdict {
    // The start may be of another due time than the claim.
    let StartAnswer::Started { held: Held { firing, .. }, .. } = bench.start(claimed).await else { return Ok(()) };
    let now = bench.clock_in(0);
    must::starts_where_allowed(before, firing.trigger, now)?;
    must::starts_in_time(&claimed.job, &firing, now)
}

/// The firing of what was claimed, and its attempt.
pub fn firing(claimed: &Claimed, job: &JobState) -> (FiringKey, u32) {
    let firing = claimed.held.firing;
    let trigger = if firing.trigger == Trigger::Misfire { Trigger::Schedule } else { firing.trigger };
    (FiringKey { job: job.id, due_at: firing.due_at, trigger }, firing.attempt)
}

/// Does as survivors do: sweeps every session that was ended, as `me` sees it. Then nothing may be held.
pub async fn survivors_leave_nothing_held(bench: &StoreFixture, me: SessionId) -> Verdict {
    let seq = bench.store.sessions().await.expect("sessions").iter().map(|one| one.beat.seq).max().unwrap_or(0) + 1;
    if let BeatAnswer::Alive { peers, .. } = bench.store.heartbeat(Me::new(me), seq, false).await.expect("an answer") {
        for ended in peers.iter().filter(|peer| peer.ended) {
            while bench.store.sweep(ended.session, 10).await.expect("an answer") == 10 {}
        }
    }
    all_idle(bench).await
}

/// L1 over all jobs.
pub async fn all_idle(bench: &StoreFixture) -> Verdict {
    let query = JobQuery { limit: 1_000, ..JobQuery::default() };
    let jobs = bench.store.jobs(&query).await.expect("jobs").items;
    must::all_idle(jobs.iter().map(|job| &job.state.phase))
}

/// Pauses a job without end.
pub async fn pause(bench: &StoreFixture, name: &str) {
    bench.store.pause(&key(name), None, None, &author()).await.expect("an answer");
}
