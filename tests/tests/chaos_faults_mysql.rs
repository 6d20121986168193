//! The faults of chaos runs take effect, on MySQL.

use carillon_tests::chaos::Kind;
use carillon_tests::databases::Brand;

mod chaos_faults;

const KIND: Kind = Kind::One(Brand::MySql);

fn is_asked_for() -> bool {
    true
}
