//! POSTs to receivers that answer, refuse, hang, redirect and lose the answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use carillon_alerts::{AlertsConfig, Left, Outcome, Post, Resolve, Sender, render_start, signature};
use carillon_domain::alert::Answer;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::receiver::{Receiver, Reply};
use super::sample::{AT, config, webhook};
use super::script::Authority;

fn sender() -> Sender {
    Sender::new(&config(), None).unwrap()
}

async fn outcome(reply: Reply) -> Outcome {
    let receiver = Receiver::start(reply).await;
    sender().post(&webhook(&receiver.url("/hooks/sEcReT"), None), AT).await
}

fn refused(outcome: &Outcome) -> Option<bool> {
    match outcome.answer {
        Answer::Refused { permanent, .. } => Some(permanent),
        Answer::Delivered { .. } | Answer::Partly { .. } | Answer::Unknown { .. } => None,
    }
}

#[tokio::test]
async fn a_webhook_arrives_signed() {
    let mut receiver = Receiver::start(Reply::status(204)).await;
    let post = webhook(&receiver.url("/in?key=1"), Some("a secret"));
    let outcome = sender().post(&post, AT).await;
    assert_eq!(outcome.words(), format!("http://{} took it (204).", receiver.address));
    assert!(matches!(outcome.answer, Answer::Delivered { .. }) && outcome.left == Left::Answered);

    let received = receiver.received.recv().await.unwrap();
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/in?key=1"));
    assert_eq!(received.body, post.body);
    assert_eq!(received.header("content-type"), Some("application/json"));
    assert_eq!(received.header("host"), Some(receiver.address.to_string().as_str()));
    assert!(received.header("user-agent").unwrap().starts_with("Carillon/"));
    assert_eq!(received.header("carillon-signature"), Some(signature("a secret", AT, &post.body).as_str()));
}

#[tokio::test]
async fn a_start_and_a_login_in_the_address_arrive_as_their_receiver_knows_them() {
    let mut receiver = Receiver::start(Reply::status(200)).await;
    let url = format!("http://bot:p%40ss@{}/start", receiver.address);
    assert!(matches!(sender().post(&render_start(&url), AT).await.answer, Answer::Delivered { .. }));
    let received = receiver.received.recv().await.unwrap();
    assert_eq!((received.body.as_str(), received.path.as_str()), ("", "/start"));
    assert_eq!(received.header("authorization"), Some("Basic Ym90OnBAc3M="));
    assert_eq!(received.header("carillon-signature"), None);
}

#[tokio::test]
async fn statuses_mean_what_they_say() {
    for (status, permanent) in [(302, true), (400, true), (404, true), (408, false), (429, false), (500, false)] {
        let outcome = outcome(Reply::status(status)).await;
        assert_eq!(refused(&outcome), Some(permanent), "{status}: {}", outcome.words());
        assert_eq!(outcome.left, Left::Answered, "{status}");
        assert!(!outcome.words().contains("sEcReT"), "{}", outcome.words());
    }
}

#[tokio::test]
async fn a_redirect_is_told_and_not_followed() {
    let mut elsewhere = Receiver::start(Reply::status(200)).await;
    let to = elsewhere.url("/sEcReT");
    let outcome = outcome(Reply::Says(302, vec![("location", to)], String::new())).await;
    assert!(outcome.words().contains(&format!("points to http://{}. Redirects are not", elsewhere.address)));
    assert!(elsewhere.received.try_recv().is_err());
}

#[tokio::test]
async fn a_receiver_that_asks_for_it_is_left_alone() {
    let outcome = outcome(Reply::Says(429, vec![("retry-after", "30".into())], "slow \"down\"".into())).await;
    assert_eq!(outcome.left, Left::Hold(Duration::from_secs(30)));
    assert!(outcome.words().contains("asks to wait 30 s. It says: \"slow"), "{}", outcome.words());
}

#[tokio::test]
async fn no_answer_is_no_refusal() {
    for reply in [Reply::Hangs, Reply::LosesTheAnswer] {
        let outcome = outcome(reply).await;
        assert!(matches!(outcome.answer, Answer::Unknown { .. }), "{outcome:?}");
        assert!(outcome.left == Left::Hung && outcome.words().contains("it may have the message"), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_at_once_is_tried_again() {
    let outcome = outcome(Reply::Closes).await;
    assert!(!matches!(outcome.answer, Answer::Delivered { .. }) && refused(&outcome) != Some(true), "{outcome:?}");
}

#[tokio::test]
async fn an_endless_body_changes_nothing() {
    let started = Instant::now();
    assert!(matches!(outcome(Reply::TalksForEver).await.answer, Answer::Delivered { .. }));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_receiver_that_is_not_there_is_tried_again() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let outcome = sender().post(&webhook(&format!("http://{gone}/"), None), AT).await;
    assert_eq!((refused(&outcome), outcome.left), (Some(false), Left::Hung), "{}", outcome.words());
    let outcome = sender().post(&webhook("https://no-such-host.invalid/sEcReT", None), AT).await;
    assert_eq!(refused(&outcome), Some(false));
    assert!(outcome.words().starts_with("The name no-such-host.invalid cannot be looked up"), "{}", outcome.words());
}

#[tokio::test]
async fn private_addresses_are_refused_where_the_operator_says_so() {
    let mut receiver = Receiver::start(Reply::status(200)).await;
    let strict = Sender::new(&AlertsConfig { private_addresses: false, ..config() }, None).unwrap();
    let port = receiver.address.port();
    // Spellings of 127.0.0.1, as attackers use them.
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "017700000001"] {
        let outcome = strict.post(&webhook(&format!("http://{host}:{port}/"), None), AT).await;
        assert_eq!(refused(&outcome), Some(true), "{host}: {}", outcome.words());
        assert!(outcome.words().contains("alerts.private_addresses"), "{host}: {}", outcome.words());
    }
    for host in ["169.254.169.254", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]", "0", "[::]"] {
        let outcome = sender().post(&webhook(&format!("http://{host}:{port}/latest/meta-data/"), None), AT).await;
        assert_eq!(refused(&outcome), Some(true), "{host}: {}", outcome.words());
    }
    assert!(receiver.received.try_recv().is_err());
}

/// A name server that answers otherwise the second time, and which counts.
fn rebinding(first: Vec<IpAddr>, then: IpAddr) -> (Resolve, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let resolve: Resolve = Arc::new(move |_, port| {
        let addresses = if count.fetch_add(1, Ordering::SeqCst) == 0 { first.clone() } else { vec![then] };
        Box::pin(async move { Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()) })
    });
    (resolve, asked)
}

#[tokio::test]
async fn the_checked_address_is_the_one_that_is_called() {
    let mut receiver = Receiver::start(Reply::status(200)).await;
    let (resolve, asked) = rebinding(vec!["127.0.0.1".parse().unwrap()], "169.254.169.254".parse().unwrap());
    let sender = Sender::with_resolver(&config(), None, resolve).unwrap();
    let post = webhook(&format!("http://rebinding.example.org:{}/", receiver.address.port()), None);
    assert!(matches!(sender.post(&post, AT).await.answer, Answer::Delivered { .. }));
    assert_eq!(asked.load(Ordering::SeqCst), 1, "one look-up for one message");
    let host = receiver.received.recv().await.unwrap();
    assert_eq!(host.header("host").unwrap(), format!("rebinding.example.org:{}", receiver.address.port()));
    // The second look-up leads to a metadata service.
    assert_eq!(refused(&sender.post(&post, AT).await), Some(true));
    assert!(receiver.received.try_recv().is_err());
}

#[tokio::test]
async fn one_bad_address_of_a_name_refuses_all_of_it() {
    let mut receiver = Receiver::start(Reply::status(200)).await;
    let both = vec![receiver.address.ip(), "169.254.169.254".parse().unwrap()];
    let (resolve, _) = rebinding(both, receiver.address.ip());
    let sender = Sender::with_resolver(&config(), None, resolve).unwrap();
    let post = webhook(&format!("http://both.example.org:{}/", receiver.address.port()), None);
    assert_eq!(refused(&sender.post(&post, AT).await), Some(true));
    assert!(receiver.received.try_recv().is_err());
}

#[tokio::test]
async fn plain_http_stays_out_of_the_internet() {
    let (resolve, _) = rebinding(vec!["1.1.1.1".parse().unwrap()], "1.1.1.1".parse().unwrap());
    let sender = Sender::with_resolver(&config(), None, resolve).unwrap();
    let outcome = sender.post(&webhook("http://example.org/sEcReT", None), AT).await;
    assert_eq!(refused(&outcome), Some(true));
    assert!(outcome.words().contains("alerts.plain_http"), "{}", outcome.words());
}

#[tokio::test]
async fn tls_is_checked_against_the_authorities() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::from(Arc::new(server_config(&authority)));
    let mut receiver = Receiver::with_tls(Reply::status(200), Some(acceptor)).await;
    let port = receiver.address.port();
    let trusting = AlertsConfig { ca_file: Some(authority.file.path().to_owned()), ..config() };
    let sender = Sender::new(&trusting, None).unwrap();

    let post = webhook(&format!("https://localhost:{port}/"), None);
    let outcome = sender.post(&post, AT).await;
    assert!(matches!(outcome.answer, Answer::Delivered { .. }), "{}", outcome.words());
    assert_eq!(receiver.received.recv().await.unwrap().body, post.body);

    // Another name than the certificate's, and an authority that nobody vouches for.
    let other_name = sender.post(&webhook(&format!("https://[::ffff:127.0.0.1]:{port}/"), None), AT).await;
    let unknown = self::sender().post(&post, AT).await;
    for outcome in [other_name, unknown] {
        assert_eq!(refused(&outcome), Some(false));
        assert!(
            outcome.words().contains("over TLS") && outcome.words().contains("alerts.ca_file"),
            "{}",
            outcome.words()
        );
    }
    assert!(receiver.received.try_recv().is_err());
}

fn server_config(authority: &Authority) -> rustls::ServerConfig {
    let chain = CertificateDer::from_pem_slice(authority.server.cert.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(authority.server.key.as_bytes()).unwrap();
    rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap()
}

#[tokio::test]
async fn a_missing_file_of_authorities_is_told() {
    let missing = AlertsConfig { ca_file: Some("/no/such/file.pem".into()), ..config() };
    let refused = Sender::new(&missing, None).err().unwrap();
    assert!(refused.starts_with("alerts.ca_file: /no/such/file.pem cannot be read"), "{refused}");
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    for url in ["", "nonsense", "ftp://example.org/", "https://"] {
        let post = Post { url: url.into(), ..webhook("https://example.org/", None) };
        assert_eq!(refused(&sender().post(&post, AT).await), Some(true), "{url}");
    }
}
