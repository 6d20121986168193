//! How many statements a node asks when nothing happens. They come on top of those of each firing.

use carillon_tests::databases::{Server, StatementCount};

use super::bench_on;

/// The first try of each call prepares what later ones know.
const TRIES: usize = 3;

#[test]
fn a_node_that_waits_asks_with_single_statements() {
    // Questions are counted for the whole server.
    let server = Server::start(crate::BRAND, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = runtime.block_on(server.database());
    let bench = runtime.block_on(bench_on(&database));
    let mut count = StatementCount::on(&server);

    let peek = count.fewest(TRIES, || assert!(runtime.block_on(bench.peek()).unclaimed.is_empty()));
    assert_eq!(peek, 3, "claimable firings, claimants with what is cancelled, and wanted output");
    let routes = count.fewest(TRIES, || assert!(runtime.block_on(bench.store.routes()).unwrap().is_empty()));
    assert_eq!(routes, 1);
    let step = count.fewest(TRIES, || assert_eq!(runtime.block_on(bench.store.alert_step(10)).unwrap().facts, 0));
    assert_eq!(step, 1, "the cursor says that there is nobody to tell");
    let watch =
        count.fewest(TRIES, || assert_eq!(runtime.block_on(bench.store.watch_expectations(10)).unwrap().jobs, 0));
    assert_eq!(watch, 1, "nothing is to be looked at");
}
