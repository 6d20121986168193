//! The jobs of a cluster.

use std::time::Duration;

use carillon_domain::alert::{Expect, Ping};
use carillon_domain::job::{Job, Misfire, MisfirePolicy, OnLost, Overlap, Retry};
use carillon_domain::time::Timestamp;

use super::dice::Dice;
use super::outbox::MOST_TOLD;
use super::plan::Plan;

/// When a cluster begins: an ordinary morning, or a while before the clocks change somewhere.
pub(super) fn begin(plan: Plan, dice: &mut Dice) -> Timestamp {
    const ORDINARY: i64 = 1_790_000_000;
    /// Forty minutes before: Berlin and New York in autumn and spring, Lord Howe in both.
    const CHANGES: [i64; 6] =
        [1_792_890_000, 1_793_512_800, 1_774_746_000, 1_772_953_200, 1_791_041_400, 1_775_314_800];
    let secs = if plan == Plan::Dst { dice.pick(&CHANGES) - 2_400 } else { ORDINARY };
    Timestamp::from_ms(secs * 1_000 + i64::try_from(dice.below(1_000)).unwrap_or(0))
}

fn schedule(plan: Plan, dice: &mut Dice) -> String {
    match plan {
        Plan::Calm => format!("@every {}s", dice.between(1, 4)),
        Plan::Overload => dice.pick(&["0/15 * * * * *", "@every 10s", "0/20 * * * * *", "0/15 * * * * *"]).to_owned(),
        Plan::Dst => night(dice),
        _ if dice.one_in(6) => dice.pick(&["0/10 * * * * *", "*/7 * * * * *", "H/9 * * * * *"]).to_owned(),
        _ => format!("@every {}s", dice.between(3, 30)),
    }
}

/// Around the hours at which clocks change.
fn night(dice: &mut Dice) -> String {
    let minute = dice.below(60);
    match dice.below(6) {
        0 => format!("{minute} * * * *"),
        1 => format!("{minute} {} * * *", dice.between(0, 4)),
        2 => format!("*/{} * * * *", dice.between(2, 15)),
        3 => format!("{} {minute} {} * * *", dice.below(60), dice.between(1, 3)),
        4 => format!("H H({}-{}) * * *", dice.below(2), dice.between(2, 4)),
        _ => format!("@every {}m", dice.between(2, 17)),
    }
}

/// A job as the dice want it, due until `end_at`.
pub(super) fn job(plan: Plan, dice: &mut Dice, number: u64, end_at: Timestamp) -> Job {
    let secs = Duration::from_secs;
    let zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kathmandu"];
    let calm = plan == Plan::Calm;
    let executor = if dice.one_in(5) { "http" } else { "shell" };
    let schedule = match plan {
        // The node of its partition may lack the executor. Another one takes it after `steal_after` and a look, which take up to 2.3 s.
        Plan::Calm if executor == "http" => format!("@every {}s", dice.between(3, 4)),
        _ => schedule(plan, dice),
    };
    let plain = Job::new(("default", &format!("job-{number}")), &schedule, "{}");
    let grace = if calm { 30 } else { dice.below(6) };
    let policy = if calm || dice.one_in(2) { MisfirePolicy::FireOnce } else { dice.pick(&MisfirePolicy::ALL) };
    Job {
        timezone: (plan == Plan::Dst).then(|| dice.pick(&zones).to_owned()),
        overlap: if calm { Overlap::Skip } else { dice.pick(&Overlap::ALL) },
        misfire: Misfire { policy, grace: secs(grace) },
        retry: Retry {
            max_attempts: if calm { 1 } else { 1 + u32::try_from(dice.below(3)).unwrap_or(0) },
            backoff: secs(1),
            max_backoff: secs(2),
        },
        on_lost: if dice.one_in(3) { OnLost::Rerun } else { OnLost::Skip },
        executor: executor.into(),
        jitter: if dice.one_in(4) && !calm { Duration::from_millis(dice.below(3_000)) } else { Duration::ZERO },
        end_at: Some(end_at),
        expect: expectations(dice, number),
        ping: (number % 7 == 3 && number < MOST_TOLD).then(|| Ping::of_url("https://monitor.example.org/x")),
        ..plain
    }
}

/// Half of the jobs that may be told of expect something.
fn expectations(dice: &mut Dice, number: u64) -> Option<Expect> {
    let secs = |secs| Some(Duration::from_secs(secs));
    let (start, finish) = (dice.between(1, 3), dice.between(3, 9));
    let (start_within, finish_within) = match dice.below(6) {
        0 => (secs(start), None),
        1 => (None, secs(finish)),
        2 => (secs(start), secs(finish)),
        _ => (None, None),
    };
    let expects = number < MOST_TOLD && start_within.or(finish_within).is_some();
    expects.then_some(Expect { start_within, finish_within, finish_by: None })
}

/// Another definition under the same name. The fields that say how often a firing may start stay, so that S2 can be stated.
pub(super) fn changed(plan: Plan, dice: &mut Dice, before: &Job) -> Job {
    let overlap = dice.pick(&Overlap::ALL);
    // Where the database's clock is set, nobody could tell which due times of the old schedule were still to come.
    let retimed = !plan.clocks() && dice.one_in(2);
    let schedule = if retimed { schedule(plan, dice) } else { before.schedule.clone() };
    Job { overlap, schedule, ..before.clone() }
}
