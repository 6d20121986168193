//! The faults of a cluster's members take effect, on Group Replication. They take minutes, so they run only where they are asked for.

use carillon_tests::chaos::Kind;
use carillon_tests::databases::Group;

mod chaos_faults;
#[path = "chaos_faults/of_balancers.rs"]
mod of_balancers;

const KIND: Kind = Kind::Group;

fn is_asked_for() -> bool {
    carillon_tests::skipped::can_be_tested("the faults of a group of Group Replication", Group::not_asked_for())
}
