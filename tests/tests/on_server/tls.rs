//! Encryption on the way to the server, in each mode.

use std::path::Path;
use std::process::Command;

use carillon_store::ManualClock;
use carillon_store::Me;
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::{BEGIN, job};
use carillon_tests::databases::proxy::{Proxy, Trap};
use carillon_tests::databases::{Brand, Server};
use mysql_async::prelude::Queryable;
use tempfile::TempDir;

use super::races::{holder, waiting};
use super::{open, options, refusal, wait_until};

fn openssl(directory: &Path, words: &str) {
    let words = words.split_whitespace();
    let ran = Command::new("openssl").args(words).current_dir(directory).output().expect("openssl is installed");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// `ca.pem`, `cert.pem` and `key.pem` of a server at 127.0.0.1 and under no name; `other.pem` of another authority.
fn certificates() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    for authority in ["ca", "other"] {
        openssl(directory.path(), &format!("{new} -subj /CN={authority} -keyout {authority}.key -out {authority}.pem"));
    }
    let server = "-CA ca.pem -CAkey ca.key -addext basicConstraints=CA:FALSE -addext subjectAltName=IP:127.0.0.1";
    openssl(directory.path(), &format!("{new} {server} -subj /CN=server -keyout key.pem -out cert.pem"));
    directory
}

/// A server with such a certificate.
fn encrypting(certificates: &TempDir) -> Server {
    let read = |name: &str| std::fs::read_to_string(certificates.path().join(name)).unwrap();
    let files = [("cert.pem", &*read("cert.pem")), ("key.pem", &*read("key.pem"))];
    Server::start_with(crate::BRAND, &files, &["--ssl-cert=../cert.pem", "--ssl-key=../key.pem"])
}

fn clock() -> ManualClock {
    ManualClock::at(BEGIN)
}

async fn opens(url: &str) {
    open(url, options(&clock())).await;
}

fn with_ca(url: &str, mode: &str, ca: &Path) -> String {
    format!("{url}?ssl-mode={mode}&ssl-ca={}", ca.display())
}

#[tokio::test]
async fn a_certificate_is_looked_at_as_the_mode_says() {
    let certificates = certificates();
    let server = encrypting(&certificates);
    let database = server.database().await;
    let (ca, other) = (certificates.path().join("ca.pem"), certificates.path().join("other.pem"));
    let (address, name) = (database.url(), database.url_on("localhost"));

    for mode in ["disabled", "preferred", "REQUIRED"] {
        opens(&format!("{address}?ssl-mode={mode}")).await;
    }
    opens(&with_ca(&address, "verify_ca", &ca)).await;
    opens(&with_ca(&name, "VERIFY_CA", &ca)).await;
    opens(&with_ca(&address, "verify_identity", &ca)).await;

    for (url, mode) in [(&address, "verify_ca"), (&name, "verify_ca"), (&address, "verify_identity")] {
        let said = refusal(&with_ca(url, mode, &other), options(&clock())).await;
        assert!(said.contains("cannot be used: TLS failed") && said.contains("UnknownIssuer"), "{said}");
        assert!(said.contains("must name the authority") && !said.contains("secret"), "{said}");
    }
    let said = refusal(&with_ca(&name, "verify_identity", &ca), options(&clock())).await;
    assert!(said.contains("not valid for name \"localhost\"") && said.contains("for the host"), "{said}");
}

#[tokio::test]
async fn every_connection_of_a_store_is_encrypted_the_one_that_kills_too() {
    let certificates = certificates();
    let server = encrypting(&certificates);
    let database = server.database().await;
    let mut root = server.root().await;
    // A connection is ended only where it is certain that the server, which counts whole seconds, was there before it.
    wait_until("two seconds on the server's clock", async || {
        let up: Option<(String, u64)> = root.query_first("SHOW GLOBAL STATUS LIKE 'Uptime'").await.unwrap();
        up.is_some_and(|(_, uptime_s)| uptime_s >= 2)
    })
    .await;
    let wire = Proxy::to(server.port());
    let url = database.url_through(wire.port()).replace("disabled", "required");
    let clock = ManualClock::at(BEGIN);
    let bench = StoreFixture::new(open(&url, options(&clock)).await, clock.clone()).await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    let mut holder = holder(&database, &claimed).await;
    // From here on the server takes nobody who comes unencrypted.
    root.query_drop("ALTER USER carillon@'%' REQUIRE SSL").await.unwrap();
    let said = refusal(&database.url_through(server.port()), options(&clock)).await;
    assert!(said.contains("cannot be used"), "{said}");

    bench.go_to(10);
    let (store, me) = (bench.store.clone(), bench.me);
    let gone = tokio::spawn(async move { store.start(Me::new(me), &[claimed.at]).await });
    wait_until("a start that waits", async || waiting(&mut root, &database).await == 1).await;
    gone.abort();
    wait_until("its connection is killed", async || {
        let killed: Option<(String, u64)> = root.query_first("SHOW GLOBAL STATUS LIKE 'Com_kill'").await.unwrap();
        killed.is_some_and(|(_, count)| count == 1)
    })
    .await;
    holder.query_drop("COMMIT").await.unwrap();

    wire.set(Trap::CutBefore, "session");
    bench.store.heartbeat(Me::new(bench.me), 1, false).await.unwrap();
    assert_eq!(wire.sprung(), 0, "the wire could be read");
}

#[tokio::test]
async fn a_server_without_tls_will_do_unless_it_is_required() {
    let options_without: &[&str] = match crate::BRAND {
        Brand::MariaDb => &["--skip-ssl"],
        Brand::MySql => &["--tls-version="],
    };
    let server = Server::start(crate::BRAND, options_without);
    let database = server.database().await;
    opens(&database.url()).await;
    let said = refusal(&format!("{}?ssl-mode=required", database.url()), options(&clock())).await;
    assert!(said.contains("it offers no TLS") && !said.contains("secret"), "{said}");
}
