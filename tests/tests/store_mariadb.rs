//! The MySQL store on MariaDB.

use carillon_tests::databases::Brand;

mod on_server;

const BRAND: Brand = Brand::MariaDb;
