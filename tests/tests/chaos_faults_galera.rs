//! The faults of a cluster's members take effect, on Galera. They take minutes, so they run only where they are asked for.

use carillon_tests::chaos::Kind;
use carillon_tests::databases::Galera;

mod chaos_faults;
#[path = "chaos_faults/of_balancers.rs"]
mod of_balancers;

const KIND: Kind = Kind::Galera;

fn is_asked_for() -> bool {
    carillon_tests::skipped::can_be_tested("the faults of a Galera cluster", Galera::missing())
}
