//! The faults of a MariaDB source and its asynchronous replica take effect. They take minutes, so they run only where they are asked for.

use carillon_tests::chaos::Kind;
use carillon_tests::databases::{Brand, Replicated};

mod chaos_faults;
#[path = "chaos_faults/of_balancers.rs"]
mod of_balancers;

const KIND: Kind = Kind::Replicated(Brand::MariaDb);

fn is_asked_for() -> bool {
    carillon_tests::skipped::can_be_tested("the faults of a source and its asynchronous replica", Replicated::missing())
}
