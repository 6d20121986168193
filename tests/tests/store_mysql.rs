//! The MySQL store on MySQL.

use carillon_tests::databases::Brand;

mod on_server;

const BRAND: Brand = Brand::MySql;
