//! What a seed decides: jobs, fates, times. And the one configuration that all nodes share.

use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_domain::job::{Job, Misfire, MisfirePolicy, OnLost, Overlap, Retry};
use carillon_domain::lease::Timing;
use carillon_domain::node::Config;
use carillon_domain::run::{Ending, Status};
use carillon_domain::time::Timestamp;

/// A small generator of its own, so that a seed means the same everywhere.
#[derive(Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

pub fn config() -> Config {
    let ms = Duration::from_millis;
    let timing = Timing {
        heartbeat: ms(500),
        heartbeat_timeout: ms(300),
        self_kill_after: ms(2_000),
        fence_grace: ms(500),
        pause: ms(500),
        expire_after: ms(4_000),
    };
    timing.check().unwrap();
    Config {
        timing,
        self_kill: true,
        partitions: 4,
        horizon: ms(3_000),
        max_in_flight: 6,
        max_executing: 3,
        max_batch: 4,
        peek_every: ms(500),
        steal_after: ms(1_500),
        recover_every: ms(1_000),
        drain_timeout: ms(1_500),
    }
}

pub fn random_job(dice: &mut Dice, n: u64) -> Job {
    let secs = Duration::from_secs;
    let schedule = format!("@every {}s", 1 + dice.below(4));
    Job {
        overlap: dice.pick(&Overlap::ALL),
        misfire: Misfire { policy: dice.pick(&MisfirePolicy::ALL), grace: secs(dice.below(3)) },
        retry: Retry { max_attempts: 1 + dice.below(3) as u32, backoff: secs(1), max_backoff: secs(2) },
        on_lost: dice.pick(&OnLost::ALL),
        executor: if dice.one_in(4) { "http" } else { "shell" }.into(),
        ..Job::new(("default", &format!("job-{n}")), &schedule, "{}")
    }
}

/// Not every node can run every job.
pub fn executors_of(session: SessionId) -> &'static [&'static str] {
    if session.as_u64().is_multiple_of(2) { &["shell"] } else { &["http", "shell"] }
}

pub fn ending(status: Status) -> Ending {
    Ending { status, exit_code: None, signal: None, reason: None, ended_at: Timestamp::EPOCH }
}
