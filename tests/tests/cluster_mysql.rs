//! Clusters on MySQL.

use carillon_tests::databases::Brand;

mod on_cluster;

const BRAND: Brand = Brand::MySql;
