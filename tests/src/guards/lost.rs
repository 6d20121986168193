//! Stories of a database that loses commits.

use std::time::Duration;

use carillon_domain::firing::FiringKey;
use carillon_domain::invariants::{self as must, Verdict};
use carillon_domain::job::{Job, OnLost};
use carillon_domain::node::port::{Claimed, StartAnswer};
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::{KnownRun, Me, WriteBackRequest};

use super::fixtures::{firing, memory, run, state, try_start};
use crate::conformance::StoreFixture;
use crate::conformance::fixture::{ending, job};

/// A bench whose database has lost a firing that ran: due at 10, started, acknowledged, and gone. The heartbeat that was
/// acknowledged meanwhile is lost as well.
struct Lossy {
    bench: StoreFixture,
    job: Job,
    starts: Vec<(FiringKey, u32)>,
}

impl Lossy {
    async fn new(job: Job) -> Self {
        let bench = memory().await;
        bench.create(job.clone()).await;
        Self { bench, job, starts: Vec::new() }
    }

    /// This session, to which one heartbeat was acknowledged.
    fn me(&self) -> Me {
        Me { session: self.bench.me, acked: 1 }
    }

    async fn beat(&self, me: Me) {
        self.bench.store.heartbeat(me, me.acked + 1, false).await.expect("an answer");
    }

    async fn acknowledge_one(&self) {
        self.beat(Me::new(self.bench.me)).await;
    }

    async fn start(&mut self, me: Me, claimed: &Claimed) {
        let row = state(&self.bench, "a").await;
        if try_start(&self.bench, me, claimed).await.is_some() {
            self.starts.push(firing(claimed, &row));
        }
    }

    async fn claim_as(&self, me: Me) -> Vec<Claimed> {
        let request = self.bench.claim_request(me.session, self.bench.clock_in(5), 10);
        let request = carillon_store::ClaimRequest { me, ..request };
        self.bench.store.claim(&request).await.expect("an answer")
    }

    /// The firing that was due at 10 runs; then the commits since the backup are lost.
    async fn run_and_lose(&mut self) {
        self.bench.back_up().await;
        self.acknowledge_one().await;
        let claimed = self.bench.claim_one().await;
        self.bench.go_to(10);
        self.start(self.me(), &claimed).await;
        self.bench.finish(claimed.at, Status::Succeeded).await;
        self.bench.go_to(12);
        self.bench.restore().await;
    }

    async fn accept(&self) {
        self.bench.store.accept_losses(Duration::ZERO, &author()).await.expect("an answer");
    }

    async fn claim_and_start(&mut self, me: Me) {
        for claimed in self.claim_as(me).await {
            self.start(me, &claimed).await;
        }
    }

    fn started_once(&self) -> Verdict {
        must::starts_once(&self.job, self.starts.iter().copied())
    }
}

/// The tokens that were given out in lost commits must stay smaller than those to come.
pub fn tokens_after_a_loss() -> Verdict {
    run(async {
        let lossy = Lossy::new(job("a")).await;
        let bench = &lossy.bench;
        bench.back_up().await;
        lossy.acknowledge_one().await;
        let mut newest = 0;
        for _ in 0..3 {
            let running = bench.run_next().await;
            newest = running.version;
            bench.finish(running, Status::Succeeded).await;
        }
        bench.restore().await;
        lossy.beat(lossy.me()).await;
        lossy.accept().await;
        let next = bench.run_next().await;
        must::never_decreases("the fencing token", newest, next.version)
    })
}

/// Somebody to whom nothing was lost claims it before those who can tell have said so, and starts after it was accepted.
pub fn claimed_before_the_loss_was_noticed() -> Verdict {
    run(async {
        let mut lossy = Lossy::new(job("a")).await;
        lossy.run_and_lose().await;
        let other = Me::new(lossy.bench.session(2).await);
        let claimed = lossy.claim_as(other).await;
        lossy.beat(lossy.me()).await;
        lossy.accept().await;
        for claimed in claimed {
            lossy.start(other, &claimed).await;
        }
        lossy.started_once()
    })
}

/// Once it is accepted everybody claims again.
pub fn claimed_after_the_loss_was_accepted() -> Verdict {
    run(async {
        let mut lossy = Lossy::new(job("a")).await;
        lossy.run_and_lose().await;
        lossy.beat(lossy.me()).await;
        lossy.accept().await;
        let other = Me::new(lossy.bench.session(2).await);
        lossy.claim_and_start(other).await;
        lossy.started_once()
    })
}

/// The claim is in the backup, the start is not.
pub fn a_start_after_a_loss() -> Verdict {
    run(async {
        let mut lossy = Lossy::new(job("a")).await;
        let claimed = lossy.bench.claim_one().await;
        lossy.bench.back_up().await;
        lossy.acknowledge_one().await;
        lossy.bench.go_to(10);
        lossy.start(lossy.me(), &claimed).await;
        lossy.bench.restore().await;
        lossy.start(lossy.me(), &claimed).await;
        lossy.started_once()
    })
}

/// The one who can tell claims before its next heartbeat.
pub fn a_claim_after_a_loss() -> Verdict {
    run(async {
        let mut lossy = Lossy::new(job("a")).await;
        lossy.run_and_lose().await;
        lossy.claim_and_start(lossy.me()).await;
        lossy.started_once()
    })
}

/// The one who can tell beats; then another claims.
pub fn a_heartbeat_before_the_claim_of_another() -> Verdict {
    run(async {
        let mut lossy = Lossy::new(job("a")).await;
        lossy.run_and_lose().await;
        lossy.beat(lossy.me()).await;
        let other = Me::new(lossy.bench.session(2).await);
        lossy.claim_and_start(other).await;
        lossy.started_once()
    })
}

/// A job that prefers twice to never: nothing of it starts again before somebody has looked.
pub fn a_rerun_while_the_loss_is_open() -> Verdict {
    run(async {
        let mut lossy = Lossy::new(Job { on_lost: OnLost::Rerun, ..job("a") }).await;
        lossy.run_and_lose().await;
        lossy.beat(lossy.me()).await;
        let other = Me::new(lossy.bench.session(2).await);
        lossy.claim_and_start(other).await;
        lossy.started_once()
    })
}

/// The firings of 10 and 20 ran, and the run of 20 is written back.
pub fn a_rerun_of_a_firing_that_is_known() -> Verdict {
    run(async {
        let mut lossy = Lossy::new(Job { on_lost: OnLost::Rerun, ..job("a") }).await;
        lossy.bench.back_up().await;
        lossy.acknowledge_one().await;
        let mut known = Vec::new();
        for secs in [10, 20] {
            lossy.bench.go_to(secs);
            let claimed = lossy.bench.claim_one().await;
            let row = state(&lossy.bench, "a").await;
            let StartAnswer::Started { at, held, .. } = lossy.bench.start(&claimed).await else { panic!("started") };
            lossy.starts.push(firing(&claimed, &row));
            lossy.bench.finish(at, Status::Succeeded).await;
            let ended = Some(ending(Status::Succeeded, lossy.bench.clock_in(0)));
            known = vec![KnownRun { at, held, ended }];
        }
        lossy.bench.restore().await;
        lossy.beat(lossy.me()).await;
        let until = lossy.bench.store.recorded_losses().await.expect("windows")[0].window.until_at;
        let me = Me { session: lossy.bench.me, acked: 2 };
        lossy
            .bench
            .store
            .write_back(&WriteBackRequest { me, until, runs: known, last: true })
            .await
            .expect("an answer");
        lossy.accept().await;
        lossy.claim_and_start(me).await;
        lossy.started_once()
    })
}
