//! The faults of chaos runs take effect, on MySQL.

use carillon_tests::databases::Brand;

mod chaos_faults;

const BRAND: Brand = Brand::MySql;
