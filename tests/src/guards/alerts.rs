//! Stories of messages: a writer that is slow, and whole clusters of the simulator, in trouble that each of these guards is there for.

use carillon_domain::alert::When;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::invariants::{self as must, Verdict};
use carillon_domain::run::Status;

use super::fixtures::{database, mariadb, pause, run, state};
use crate::conformance::alerts;
use crate::conformance::fixture::job;
use crate::databases::SlowWriter;
use carillon_simulation::simulator::{self, Plan};

/// Few jobs, so that a story is told quickly.
const JOBS: u64 = 6;

fn clusters(plan: Plan, seeds: std::ops::Range<u64>) -> Verdict {
    seeds.into_iter().try_for_each(|seed| simulator::run(plan, seed, JOBS).map(drop))
}

/// Each node steps every other second, so some step at once.
pub fn nodes_step_at_once() -> Verdict {
    clusters(Plan::Locks, 0..2)
}

/// A failure becomes visible after another one whose record has a higher number, with a look in between.
pub fn a_failure_commits_late() -> Verdict {
    run(async {
        let bench = mariadb().await;
        bench.create(job("a")).await;
        bench.create(job("b")).await;
        pause(&bench, "b").await;
        alerts::put(&bench, &alerts::route("ops", &[When::Failed])).await;
        let late = RunId::drawn(SessionId::from_random(99), 1);
        let of_late = (Status::Failed, bench.clock_in(0));
        let slow = SlowWriter::write(&database(), state(&bench, "b").await.id, late, of_late).await;
        let running = bench.run_next().await;
        bench.finish(running, Status::Failed).await;
        alerts::step(&bench).await;
        slow.commit().await;
        alerts::step(&bench).await;
        let is_told = alerts::notices(&bench).await.iter().any(|notice| notice.run == Some(late));
        must::is_told(&late, is_told)
    })
}

/// Nodes crash with messages on their way.
pub fn senders_die() -> Verdict {
    clusters(Plan::Nodes, 0..3)
}
