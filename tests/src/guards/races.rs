//! Stories of two transactions on MariaDB, one of which is held in the middle while the other one commits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_domain::invariants::{self as must, Verdict};
use carillon_domain::node::port::{RunRef, StartAnswer};
use carillon_domain::run::{Status, Trigger};
use carillon_doubles::author;
use carillon_store::mysql::MySqlStore;
use carillon_store::{ControlStore, Finished, Me, NodeStore};
use mysql_async::prelude::Queryable;
use tokio::task::{JoinHandle, block_in_place};

use super::concurrent::{overlapping, start_what_comes};
use super::fixtures::survivors_leave_nothing_held;
use super::fixtures::{child_has_its_row, database, mariadb, may_start, open, pause, run, state};
use crate::conformance::StoreFixture;
use crate::conformance::fixture::{ending, job, key};
use crate::databases::proxy::{Proxy, Trap};

/// Words that only a packet with rows to be written contains.
const ROWS: &str = "[[";

/// A second store on the database, through a wire that can hold its packets.
async fn held_up(bench: &StoreFixture) -> (Proxy, Arc<MySqlStore>) {
    let database = database();
    let wire = Proxy::to(database.port());
    let store = open(&database.url_through(wire.port()), &bench.clock).await;
    (wire, Arc::new(store))
}

/// Waits until the packet with the words is held, while the others do something.
fn wait_until_held(wire: &Proxy) {
    block_in_place(|| wire.wait_until_sprung());
}

async fn answer<T>(call: JoinHandle<T>) -> T {
    call.await.expect("the call does not panic")
}

/// The start has read the row when the pause commits.
pub fn a_pause_passes_a_start() -> Verdict {
    run(async {
        let bench = mariadb().await;
        bench.create(job("a")).await;
        let claimed = bench.claim_one().await;
        bench.go_to(10);
        let (wire, late) = held_up(&bench).await;
        wire.set(Trap::Hold, ROWS);
        let (me, at) = (bench.me, claimed.at);
        let start = tokio::spawn(async move { late.start(Me::new(me), &[at]).await });
        wait_until_held(&wire);
        pause(&bench, "a").await;
        let before = state(&bench, "a").await;
        wire.release();
        match answer(start).await.expect("an answer").remove(0) {
            StartAnswer::Started { .. } => must::starts_where_allowed(&before, Trigger::Schedule, bench.clock_in(0)),
            _ => Ok(()),
        }
    })
}

/// A second attempt beside the row of a job that is in trouble already: its end writes the row of the run alone.
async fn second_attempt(bench: &StoreFixture) -> RunRef {
    bench.create(overlapping()).await;
    let first = bench.run_next().await;
    bench.finish(first, Status::Failed).await;
    let claimed = bench.claim().await.into_iter().find(|claimed| claimed.held.firing.attempt == 2);
    let claimed = claimed.expect("a retry");
    bench.clock.set(claimed.held.firing.start_at);
    bench.started(&claimed).await
}

/// The end of a run beside the row has read its row when the pause commits.
pub fn a_pause_passes_an_end_beside() -> Verdict {
    run(async {
        let bench = mariadb().await;
        let running = second_attempt(&bench).await;
        let (wire, late) = held_up(&bench).await;
        wire.set(Trap::Hold, ROWS);
        let request = Finished {
            at: running,
            ending: ending(Status::Failed, bench.clock_in(0)),
            next: None,
            output: Default::default(),
        };
        let (me, ended) = (bench.me, request);
        let finish = tokio::spawn(async move { late.finish(Me::new(me), &[ended], &[]).await });
        wait_until_held(&wire);
        pause(&bench, "a").await;
        wire.release();
        answer(finish).await.expect("an answer");
        start_what_comes(&bench).await
    })
}

/// The deletion has read the row when it is claimed and started; answers the run that lives.
async fn start_while_deleting(bench: &StoreFixture) -> RunRef {
    bench.create(job("a")).await;
    let (wire, late) = held_up(bench).await;
    wire.set(Trap::Hold, "DELETE FROM job_state");
    let deletion = tokio::spawn(async move { late.delete_job(&key("a"), None, &author()).await });
    wait_until_held(&wire);
    let running = bench.run_next().await;
    wire.release();
    answer(deletion).await.expect("an answer");
    running
}

/// S3 of what started meanwhile.
pub fn a_start_passes_a_deletion() -> Verdict {
    run(async {
        let bench = mariadb().await;
        let running = start_while_deleting(&bench).await;
        child_has_its_row(&bench, bench.me, running.run).await
    })
}

/// The deletion was answered: whatever comes after what runs must not start.
pub fn a_start_passes_a_deletion_that_is_answered() -> Verdict {
    run(async {
        let bench = mariadb().await;
        let running = start_while_deleting(&bench).await;
        bench.finish(running, Status::Succeeded).await;
        for claimed in bench.claim().await {
            bench.clock.set(claimed.held.firing.start_at);
            bench.create(job("b")).await;
            let deleted = carillon_domain::firing::JobState { deleted: true, ..state(&bench, "b").await };
            may_start(&bench, &deleted, &claimed).await?;
        }
        Ok(())
    })
}

/// The cancellation has read the row beside when that starts.
pub fn a_start_passes_a_cancellation_beside() -> Verdict {
    run(async {
        let bench = mariadb().await;
        bench.create(overlapping()).await;
        let manual = bench.draw();
        bench.store.trigger(&key("a"), manual, &author()).await.expect("an answer");
        let claimed = bench.claim().await.into_iter().find(|one| one.at.run == manual).expect("the manual run");
        let (wire, late) = held_up(&bench).await;
        wire.set(Trap::Hold, "DELETE FROM concurrent_run");
        let cancellation = tokio::spawn(async move { late.cancel(manual, &author()).await });
        wait_until_held(&wire);
        bench.started(&claimed).await;
        wire.release();
        // Its answer depends on who came first.
        let _answered = answer(cancellation).await;
        child_has_its_row(&bench, bench.me, manual).await
    })
}

/// The claim of a session has read the rows when that is ended and swept.
async fn sweep_while_claiming(bench: &StoreFixture, before: &[&str], after: &[&str]) -> Verdict {
    bench.create(job("a")).await;
    let other = bench.session(2).await;
    let (wire, late) = held_up(bench).await;
    database().run(before).await;
    wire.set(Trap::Hold, ROWS);
    let request = bench.claim_request(bench.me, bench.clock_in(30), 10);
    let claim = tokio::spawn(async move { late.claim(&request).await });
    // A claim that finds no lock fails before it writes.
    while wire.sprung() == 0 && !claim.is_finished() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (store, me) = (bench.store.clone(), bench.me);
    let sweep = tokio::spawn(async move {
        store.expire(None, me, 0).await.expect("an answer");
        store.sweep(me, 10).await
    });
    wait_until_done_or_waiting(&sweep).await;
    wire.release();
    let _may_be_refused = answer(claim).await;
    let _may_be_refused = answer(sweep).await;
    database().run(after).await;
    survivors_leave_nothing_held(bench, other).await
}

/// Until the sweep is over, or waits for a lock row that the claim has: none that is free takes so long.
async fn wait_until_done_or_waiting<T>(sweep: &JoinHandle<T>) {
    let (database, begun) = (database(), Instant::now());
    let mut root = database.root().await;
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
         WHERE DB = '{}' AND INFO LIKE 'UPDATE lock_row%' AND TIME_MS > 500",
        database.name
    );
    while !sweep.is_finished() {
        let waiting: Option<u64> = root.query_first(sql.as_str()).await.expect("a number");
        if waiting.unwrap_or(0) > 0 {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "the sweep neither ends nor waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// With the lock rows there.
pub fn a_sweep_passes_a_claim() -> Verdict {
    run(async { sweep_while_claiming(&mariadb().await, &[], &[]).await })
}

/// Somebody has deleted the lock rows of the partitions; later they are put back.
pub fn a_sweep_passes_a_claim_without_lock_rows() -> Verdict {
    let away = ["CREATE TABLE kept AS SELECT * FROM lock_row WHERE id <> 0", "DELETE FROM lock_row WHERE id <> 0"];
    let back = ["INSERT INTO lock_row SELECT * FROM kept"];
    run(async { sweep_while_claiming(&mariadb().await, &away, &back).await })
}
