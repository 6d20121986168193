//! The MySQL store on MySQL.

use carillon_store::mysql::{MySqlStore, Options};
use carillon_tests::databases::{Brand, Server};

mod on_server;

const BRAND: Brand = Brand::MySql;

#[tokio::test]
async fn the_certificates_that_it_makes_itself_will_do() {
    let server = Server::shared(BRAND);
    let (url, ca) = (server.database().await.url(), server.data().join("ca.pem"));
    for query in ["ssl-mode=required".to_owned(), format!("ssl-mode=verify_ca&ssl-ca={}", ca.display())] {
        MySqlStore::open(&format!("{url}?{query}"), Options::default()).await.unwrap();
    }
}
