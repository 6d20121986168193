//! How much may happen in one exploration: nodes, firings, runs, and how much of what goes wrong.

use std::time::Duration;

use carillon_domain::job::{Job, OnLost, Overlap, Retry};
use carillon_domain::lease::Timing;
use carillon_domain::node::Config;
use carillon_domain::time::Timestamp;

use super::state::UTC0_MS;

/// The faults that are still allowed, and the requests of operators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Calls to the store that do not go as they should: refused, lost, late, applied without an answer.
    pub deviations: u8,
    /// Node processes that are killed.
    pub crashes: u8,
    /// Node processes that are frozen; each may go on at any later time.
    pub freezes: u8,
    /// Nodes that are cut off from the database for good.
    pub cuts: u8,
    /// Nodes that are told to end in good order.
    pub drains: u8,
    /// Nodes that start in the place of one that is gone.
    pub boots: u8,
    /// Pauses; each may be resumed at any later time.
    pub pauses: u8,
    /// Deletions.
    pub deletes: u8,
    /// Runs that a person asks for.
    pub triggers: u8,
    /// Runs that a person asks to end.
    pub cancels: u8,
    /// Times at which the database goes back to what it was at an earlier moment.
    pub restores: u8,
}

/// The subject of one exploration.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Its name in reports.
    pub name: &'static str,
    /// Node processes.
    pub nodes: u64,
    /// Due times of each job.
    pub firings: u64,
    /// Starts at the most; what would need more is not explored.
    pub runs: usize,
    /// Jobs, which are alike.
    pub jobs: u64,
    /// Rows of a call: what waits beyond that goes beside it in a call of its own.
    pub max_batch: usize,
    /// The policy for a job that falls due while it runs.
    pub overlap: Overlap,
    /// The policy for a run whose node died.
    pub on_lost: OnLost,
    /// Attempts of a firing; with more than one, a run may fail.
    pub attempts: u32,
    /// After how long without a heartbeat the others end a session; shorter than [`Timing::check`] allows, it breaks S8.
    pub expire_after: Duration,
    /// The faults that are allowed.
    pub budget: Budget,
}

/// Between two due times.
const PERIOD_MS: u64 = 2_000;
/// How long a run lasts at the most: longer than a period, so that firings come due while one lives.
pub(super) const LONGEST_RUN_US: u64 = 2_500_000;

impl Bounds {
    /// One job of the defaults, without faults.
    pub fn calm(name: &'static str, nodes: u64, firings: u64, runs: usize) -> Self {
        let (overlap, on_lost, budget) = (Overlap::Skip, OnLost::Skip, Budget::default());
        let expire_after = Duration::from_millis(4_200);
        let (jobs, max_batch) = (1, 2);
        Self { name, nodes, firings, runs, jobs, max_batch, overlap, on_lost, attempts: 1, expire_after, budget }
    }

    /// The explorations that together cover what is promised: each kind of fault with calls that go wrong around it, up to
    /// `deviations` of them in each. All faults at once would be too many states for any machine.
    pub fn all(nodes: u64, firings: u64, runs: usize, deviations: u8) -> Vec<Self> {
        let calm = |name| Self::calm(name, nodes, firings, runs);
        let with = |of_one: Bounds, budget: Budget| Self { budget, ..of_one };
        let some = Budget { deviations, ..Budget::default() };
        let crash = Budget { crashes: 1, boots: 1, ..some };
        let people = Budget { pauses: 1, deletes: 1, ..some };
        vec![
            with(calm("network"), some),
            with(calm("crash"), crash),
            with(Self { on_lost: OnLost::Rerun, ..calm("crash, rerun") }, crash),
            with(calm("freeze"), Budget { freezes: 1, ..some }),
            with(calm("cut off"), Budget { cuts: 1, ..some }),
            with(calm("pause and delete"), people),
            with(Self { attempts: 2, ..calm("retry") }, Budget { pauses: 1, ..some }),
            with(Self { overlap: Overlap::Delay, ..calm("delay") }, Budget { triggers: 1, ..some }),
            with(Self { overlap: Overlap::Replace, ..calm("replace") }, Budget { cancels: 1, ..some }),
            with(Self { overlap: Overlap::Allow, ..calm("allow") }, Budget { crashes: 1, pauses: 1, ..some }),
            with(Self { jobs: 2, ..calm("two jobs") }, some),
            with(Self { jobs: 2, max_batch: 1, ..calm("two lanes") }, some),
            with(calm("drain"), Budget { drains: 1, ..some }),
            with(calm("restore"), Budget { restores: 1, ..some }),
            with(Self { overlap: Overlap::Allow, ..calm("restore, allow") }, Budget { restores: 1, ..some }),
        ]
    }

    /// The configuration of every node.
    pub(super) fn config(&self) -> Config {
        let ms = Duration::from_millis;
        let timing = Timing {
            heartbeat: ms(1_000),
            heartbeat_timeout: ms(500),
            self_kill_after: ms(3_500),
            fence_grace: ms(250),
            pause: ms(250),
            expire_after: self.expire_after,
        };
        Config {
            timing,
            self_kill: true,
            partitions: 2,
            horizon: ms(1_000),
            max_in_flight: 4,
            max_executing: 4,
            max_batch: self.max_batch,
            peek_every: ms(1_000),
            peek_every_at_rest: ms(1_000),
            steal_after: ms(2_000),
            recover_every: ms(2_000),
            remembered_ends: usize::from(self.budget.restores) * 4,
            flow: carillon_domain::node::FlowKind::Eager,
            drain_timeout: ms(3_000),
        }
    }

    /// The definitions of the jobs.
    pub(super) fn definitions(&self) -> Vec<Job> {
        let one = |n: u64| Job {
            overlap: self.overlap,
            on_lost: self.on_lost,
            retry: Retry {
                max_attempts: self.attempts,
                backoff: Duration::from_millis(500),
                max_backoff: Duration::from_millis(500),
            },
            end_at: Some(due_time(self.firings)),
            ..Job::new(("default", &format!("job-{n}")), &format!("@every {}s", PERIOD_MS / 1_000), "{}")
        };
        (1..=self.jobs).map(one).collect()
    }

    /// When the exploration ends, whatever is still to come: long after the last session that can have died was swept.
    pub(super) fn end_us(&self) -> u64 {
        (self.firings * PERIOD_MS + 12_000) * 1_000
    }
}

fn due_time(n: u64) -> Timestamp {
    Timestamp::from_ms(UTC0_MS) + Duration::from_millis(n * PERIOD_MS)
}
