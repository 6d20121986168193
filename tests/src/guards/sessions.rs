//! Stories of sessions: what they may do once they are over, and who may end them.

use std::time::Duration;

use carillon_domain::invariants::{self as must, Verdict};
use carillon_domain::job::Job;
use carillon_domain::lease::Timing;
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::time::BootTime;
use carillon_store::sqlite::Lease;
use carillon_store::{LivePart, Me};

use super::fixtures::{
    child_has_its_row, mariadb, memory, on_every_store, run, survivors_leave_nothing_held, try_start,
};
use crate::conformance::StoreFixture;
use crate::conformance::fixture::{at, job};

/// It was ended, swept and removed; its claim was on its way all the time.
pub fn a_session_that_is_gone_claims() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        let other = bench.session(2).await;
        bench.store.expire(None, bench.me, 0).await.expect("an answer");
        bench.store.sweep(bench.me, 10).await.expect("an answer");
        bench.claim().await;
        survivors_leave_nothing_held(&bench, other).await
    })
}

/// Its lease was over before it was ended; its start was on its way all the time.
async fn ended_before_a_start(bench: StoreFixture) -> Verdict {
    bench.create(Job::new(("default", "a"), "@every 60s", "{}")).await;
    bench.go_to(45);
    let (timing, registered) = (Timing::default(), BootTime::from_ms(45_000));
    let claimed = bench.claim_one().await;
    bench.clock.set(at(45) + timing.expire_after);
    bench.store.expire(None, bench.me, 0).await.expect("an answer");
    match try_start(&bench, Me::new(bench.me), &claimed).await {
        None => Ok(()),
        Some(_) => must::starts_within_lease(registered + timing.self_kill_after, registered + timing.expire_after),
    }
}

/// It asks how it stands.
pub fn a_session_that_was_ended_starts() -> Verdict {
    run(async { ended_before_a_start(memory().await).await })
}

/// It knows what it claimed, and how it stood then.
pub fn a_session_that_was_ended_starts_what_it_knows() -> Verdict {
    run(async { ended_before_a_start(mariadb().await).await })
}

/// S8 of a sweep of this bench's session, whose child lives: it swept so many rows.
fn swept(bench: &StoreFixture, child: carillon_domain::id::RunId, rows: usize) -> Verdict {
    if rows == 0 { Ok(()) } else { must::dead_before_sweep(bench.me, [(bench.me, child)]) }
}

/// Somebody who takes it for dead without having ended it.
pub fn a_session_that_lives_is_swept() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        let child = bench.run_next().await.run;
        let rows = bench.store.sweep(bench.me, 10).await.expect("an answer");
        swept(&bench, child, rows)
    })
}

/// Two rows, and a batch of one; whoever sweeps goes away in between.
pub fn a_sweep_takes_less_than_all() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        bench.create(job("b")).await;
        assert_eq!(bench.claim().await.len(), 2);
        let other = bench.session(2).await;
        bench.store.expire(None, bench.me, 0).await.expect("an answer");
        bench.store.sweep(bench.me, 1).await.expect("an answer");
        survivors_leave_nothing_held(&bench, other).await
    })
}

/// It was ended and half swept when a heartbeat of it comes through.
pub fn a_heartbeat_comes_after_the_end() -> Verdict {
    run(on_every_store(async |bench| {
        bench.create(job("a")).await;
        bench.create(job("b")).await;
        let mut children = Vec::new();
        for claimed in bench.claim().await {
            bench.go_to(10);
            children.push(bench.started(&claimed).await.run);
        }
        bench.store.expire(None, bench.me, 0).await.expect("an answer");
        bench.store.sweep(bench.me, 1).await.expect("an answer");
        match bench.store.heartbeat(Me::new(bench.me), 1, false).await.expect("an answer") {
            BeatAnswer::Fenced | BeatAnswer::WentBack => Ok(()),
            // It goes on as before, with both.
            BeatAnswer::Alive { .. } => {
                for child in children {
                    child_has_its_row(&bench, bench.me, child).await?;
                }
                Ok(())
            }
        }
    }))
}

/// An older one is overtaken by a newer one.
pub fn a_heartbeat_comes_late() -> Verdict {
    run(on_every_store(async |bench| {
        let seq = async || bench.store.sessions().await.expect("sessions")[0].beat.seq;
        bench.store.heartbeat(Me::new(bench.me), 6, false).await.expect("an answer");
        let newest = seq().await;
        bench.store.heartbeat(Me::new(bench.me), 5, false).await.expect("an answer");
        must::never_decreases("the heartbeat's sequence", newest, seq().await)
    }))
}

/// A survivor saw an older heartbeat for long enough, and the newer one comes before its statement.
pub fn an_end_comes_after_a_new_heartbeat() -> Verdict {
    run(on_every_store(async |bench| {
        bench.create(job("a")).await;
        let child = bench.run_next().await.run;
        bench.store.heartbeat(Me::new(bench.me), 5, false).await.expect("an answer");
        let rows = match bench.store.expire(None, bench.me, 4).await.expect("an answer") {
            true => bench.store.sweep(bench.me, 10).await.expect("an answer"),
            false => 0,
        };
        swept(&bench, child, rows)
    }))
}

/// A survivor saw it silent for long enough; then the commits were lost in which its heartbeats had come back.
pub fn an_end_comes_after_a_loss() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        let child = bench.run_next().await.run;
        let other = bench.session(2).await;
        let beat = async |session, seq| {
            let me = Me { session, acked: seq - 1 };
            bench.store.heartbeat(me, seq, false).await.expect("an answer");
        };
        beat(bench.me, 1).await;
        beat(other, 1).await;
        bench.back_up().await;
        beat(other, 2).await;
        beat(bench.me, 2).await;
        bench.restore().await;
        let by = Some(Me { session: other, acked: 2 });
        let rows = match bench.store.expire(by, bench.me, 1).await.expect("an answer") {
            true => bench.store.sweep(bench.me, 10).await.expect("an answer"),
            false => 0,
        };
        swept(&bench, child, rows)
    })
}

/// An older part of an output is overtaken by a newer one.
pub fn an_output_comes_late() -> Verdict {
    run(on_every_store(async |bench| {
        bench.create(job("a")).await;
        let run = bench.run_next().await.run;
        let shown = async || bench.store.ask_output(run).await.expect("an answer").map_or(0, |part| part.written);
        shown().await;
        let part = |written: u64| (run, LivePart { written, tail: vec![b'x'; 2] });
        bench.store.publish_output(&[part(9)]).await.expect("an answer");
        let newest = shown().await;
        assert_eq!(newest, 9);
        bench.store.publish_output(&[part(5)]).await.expect("an answer");
        must::never_decreases("what is shown of an output", newest, shown().await)
    }))
}

/// The first one has a child; whoever has the lease ends and sweeps its predecessor at once.
pub fn a_second_server_comes_to_a_file() -> Verdict {
    run(async {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("carillon.db");
        let _first = Lease::acquire(&path, Duration::ZERO).expect("the lease");
        let bench = memory().await;
        bench.create(job("a")).await;
        let child = bench.run_next().await.run;
        if Lease::acquire(&path, Duration::ZERO).is_err() {
            return Ok(());
        }
        bench.store.expire(None, bench.me, 0).await.expect("an answer");
        let rows = bench.store.sweep(bench.me, 10).await.expect("an answer");
        swept(&bench, child, rows)
    })
}
