//! The stores by themselves.

use std::sync::Arc;
use std::time::Instant;

use crate::ceilings::{Around, Sql};
use crate::cycles::{Cycles, Times};
use crate::found::{Found, Row};
use crate::lab::Lab;

/// Callers at the same time.
const CALLERS: [usize; 2] = [1, 3];

pub fn run(lab: &Lab, found: &mut Found) {
    let (batches, size) = (lab.size.store_batches, lab.size.batch);
    let mut before = Sql::measure(lab).firings;
    for callers in CALLERS {
        let scratch = lab.database();
        let cycles = Arc::new(lab.block(Cycles::on_server(&scratch.url())));
        let created = lab.block(cycles.add(callers * batches * size * 6 / 5));
        if callers == 1 {
            found.row(Row::new("store: creates, 1,000 a transaction", created, "jobs/s"));
        }
        let (rate, times) = lab.block(together(&cycles, callers, batches, size));
        drop((cycles, scratch));
        let after = Sql::measure(lab).firings;
        let what = format!("store: batches of {size}, callers: {callers}");
        let row = Row::new(what, rate, "firings/s").beside("bare client", Around { before, after });
        found.row(row.note(if callers == 1 { transitions(times) } else { String::new() }));
        before = after;
    }
    by_batch_size(lab, found);
    sqlite(lab, found);
}

async fn together(cycles: &Arc<Cycles>, callers: usize, batches: usize, size: usize) -> (f64, Times) {
    let began = Instant::now();
    let tasks = (0..callers).map(|caller| {
        let cycles = cycles.clone();
        tokio::spawn(async move { cycles.run(&Cycles::share(caller, callers), batches, size).await })
    });
    let (mut count, mut last) = (0, Times::default());
    for task in tasks.collect::<Vec<_>>() {
        last = task.await.expect("a caller ends");
        count += last.count;
    }
    (count as f64 / began.elapsed().as_secs_f64(), last)
}

fn transitions(times: Times) -> String {
    let rate = |time: std::time::Duration| times.count as f64 / time.as_secs_f64();
    let Times { claims, starts, finishes, .. } = times;
    format!("claims {:.0}/s, starts {:.0}/s, finishes {:.0}/s", rate(claims), rate(starts), rate(finishes))
}

/// One caller, batches of one and more.
fn by_batch_size(lab: &Lab, found: &mut Found) {
    let scratch = lab.database();
    let cycles = lab.block(Cycles::on_server(&scratch.url()));
    let sizes: Vec<usize> = [1, 10, 100, 1_000].into_iter().filter(|size| *size <= lab.size.batch).collect();
    let batches = |size: usize| (lab.size.batch / size).clamp(4, 100);
    lab.block(cycles.add(sizes.iter().map(|size| batches(*size) * size).sum()));
    let mut points = Vec::new();
    for size in sizes {
        let began = Instant::now();
        let times = lab.block(cycles.run(&Cycles::share(0, 1), batches(size), size));
        points.push((size as f64, times.count as f64 / began.elapsed().as_secs_f64()));
    }
    found.series("firings a second by batch size", &points);
}

/// The store of a single machine, on a file in the system's directory for temporary files.
fn sqlite(lab: &Lab, found: &mut Found) {
    let (batches, size) = (lab.size.store_batches, lab.size.batch);
    let directory = tempfile::tempdir().expect("a directory");
    let cycles = lab.block(Cycles::on_file(&directory.path().join("carillon.db")));
    let created = lab.block(cycles.add(batches * size));
    found.row(Row::new("SQLite store: creates, 1,000 a transaction", created, "jobs/s"));
    let began = Instant::now();
    let times = lab.block(cycles.run(&Cycles::share(0, 1), batches, size));
    let rate = times.count as f64 / began.elapsed().as_secs_f64();
    found.row(Row::new(format!("SQLite store: batches of {size}"), rate, "firings/s").note(transitions(times)));
}
