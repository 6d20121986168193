//! Clusters on MariaDB.

use carillon_tests::databases::Brand;

mod on_cluster;

const BRAND: Brand = Brand::MariaDb;
