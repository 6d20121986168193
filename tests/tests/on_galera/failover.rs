//! A member is killed under nodes that run jobs.

use carillon_tests::cluster::nodes_outlive;
use carillon_tests::databases::Galera;

use super::galera;

#[test]
fn nodes_outlive_the_member_that_they_write_through() {
    galera();
    let galera = Galera::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = runtime.block_on(galera.database());
    nodes_outlive(&galera.members()[0], &galera.url(&database, &[0, 1, 2]));
}
