//! Random events for a job.

use carillon_domain::job::{Job, Misfire, MisfirePolicy, OnLost, Overlap, Retry};
use carillon_domain::run::Status;
use proptest::prelude::*;

use super::fixture::{at, every, secs};

#[derive(Debug, Clone)]
pub enum Op {
    Wait {
        ms: i64,
    },
    Claim {
        ahead: u64,
    },
    Start,
    Finish {
        status: Status,
        ago_ms: i64,
    },
    Reset,
    Sweep,
    Pause {
        until_ms: Option<i64>,
    },
    Resume,
    Retime {
        period: u64,
    },
    Redefine {
        overlap: Overlap,
        policy: MisfirePolicy,
    },
    Delete,
    Trigger,
    CancelHeld,
    CancelManual,
    /// The database loses commits up to now.
    LoseCommits,
    Concurrent {
        which: usize,
        op: Box<Op>,
    },
}

fn moves() -> impl Strategy<Value = Op> {
    let status = prop_oneof![
        3 => Just(Status::Succeeded), 3 => Just(Status::Failed), 1 => Just(Status::TimedOut), 1 => Just(Status::Cancelled),
        1 => Just(Status::Lost)
    ];
    prop_oneof![
        6 => prop_oneof![4 => 1i64..15_000, 2 => 10_000i64..90_000, 1 => Just(10_000i64), 1 => 100_000i64..2_500_000]
            .prop_map(|ms| Op::Wait { ms }),
        6 => (0u64..30).prop_map(|ahead| Op::Claim { ahead }),
        6 => Just(Op::Start),
        6 => (status, 0i64..20_000).prop_map(|(status, ago_ms)| Op::Finish { status, ago_ms }),
        1 => Just(Op::Reset),
        1 => Just(Op::Sweep),
    ]
}

pub fn ops() -> impl Strategy<Value = Op> {
    let overlap = prop::sample::select(&Overlap::ALL[..]);
    let policy = prop::sample::select(&MisfirePolicy::ALL[..]);
    prop_oneof![
        20 => moves(),
        6 => (0usize..4, moves()).prop_map(|(which, op)| Op::Concurrent { which, op: Box::new(op) }),
        2 => prop::option::of(1i64..100_000).prop_map(|until_ms| Op::Pause { until_ms }),
        2 => Just(Op::Resume),
        1 => (1u64..30).prop_map(|period| Op::Retime { period }),
        1 => (overlap, policy).prop_map(|(overlap, policy)| Op::Redefine { overlap, policy }),
        2 => Just(Op::Trigger),
        1 => Just(Op::CancelHeld),
        1 => Just(Op::CancelManual),
        1 => Just(Op::Delete),
        1 => Just(Op::LoseCommits),
    ]
}

pub fn jobs() -> impl Strategy<Value = Job> {
    let overlap = prop::sample::select(&Overlap::ALL[..]);
    let policy = prop::sample::select(&MisfirePolicy::ALL[..]);
    let on_lost = prop::sample::select(&OnLost::ALL[..]);
    let end = prop::option::weighted(0.2, 20i64..2_000);
    (overlap, policy, on_lost, 1u64..30, 0u64..40, 1u32..4, 0u64..40, end).prop_map(
        |(overlap, policy, on_lost, period, grace, max_attempts, backoff, end)| Job {
            overlap,
            on_lost,
            misfire: Misfire { policy, grace: secs(grace) },
            retry: Retry { max_attempts, backoff: secs(backoff), max_backoff: secs(60) },
            end_at: end.map(|end| at(end.max(period as i64 + 1))),
            ..every(period)
        },
    )
}
