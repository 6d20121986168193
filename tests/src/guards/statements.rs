//! Stories of rows that are there already.

use carillon_domain::invariants::Verdict;
use carillon_domain::run::Status;
use carillon_store::{Finished, Me, Output};

use super::fixtures::{all_idle, database, mariadb, run};
use crate::conformance::Backups;
use crate::conformance::fixture::{ending, job};

/// The database lost the end of a run, and not its record: the node says again how it ended, as it does for ever.
async fn end_twice(keep: &[&str]) -> Verdict {
    let mut bench = mariadb().await;
    bench.backups = Some(Backups::MySql(database().url()));
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    bench.back_up().await;
    let request = Finished {
        at: running,
        ending: ending(Status::Succeeded, bench.clock_in(0)),
        next: None,
        output: Default::default(),
    };
    let ended = Finished { output: Output { bytes: b"said".to_vec(), truncated: false }.into(), ..request };
    bench.store.finish(Me::new(bench.me), std::slice::from_ref(&ended), &[]).await.expect("an answer");
    let back = ["DELETE FROM job_state", "INSERT INTO job_state SELECT * FROM backup_job_state"];
    database().run(&back).await;
    database().run(keep).await;
    let _refused = bench.store.finish(Me::new(bench.me), &[ended], &[]).await;
    all_idle(&bench).await
}

/// The record is there.
pub fn a_record_is_there_already() -> Verdict {
    run(end_twice(&["DELETE FROM output"]))
}

/// So is the output.
pub fn an_output_is_there_already() -> Verdict {
    run(end_twice(&[]))
}
