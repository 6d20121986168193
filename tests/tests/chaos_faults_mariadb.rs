//! The faults of chaos runs take effect, on MariaDB.

use carillon_tests::chaos::Kind;
use carillon_tests::databases::Brand;

mod chaos_faults;
#[path = "chaos_faults/of_nodes.rs"]
mod of_nodes;

const KIND: Kind = Kind::One(Brand::MariaDb);

fn is_asked_for() -> bool {
    true
}
