//! TLS: who is trusted, and what is said when somebody is not.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use crate::server::{Server, read_request, reason, response, run};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

/// The port of a server that shows this certificate and answers with `answer`.
fn serve(certificate: &str, answer: String) -> u16 {
    let chain = vec![CertificateDer::from_pem_file(file(certificate)).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
            if read_request(&mut stream).len() > 1 {
                let _ = stream.write_all(answer.as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    port
}

#[test]
fn a_server_is_believed_by_the_authorities_that_the_job_names() {
    let port = serve("server.pem", response("200 OK", "", "safe"));
    let url = format!("https://localhost:{port}/");
    let (outcome, output) = run(json!({"url": url, "ca_file": file("authority.pem"), "expect_body": "safe"}));
    assert_eq!(outcome, Ok(()));
    assert!(output.ends_with("\n\nsafe"), "{output}");
}

#[test]
fn a_certificate_that_proves_nothing_is_refused() {
    let good = serve("server.pem", response("200 OK", "", ""));
    let expired = serve("expired.pem", response("200 OK", "", ""));
    let authority = file("authority.pem");
    for (params, fault) in [
        (json!({"url": format!("https://localhost:{good}/")}), "nobody that is trusted here has issued it"),
        (json!({"url": format!("https://localhost:{expired}/"), "ca_file": authority}), "certificate expired"),
        (
            json!({"url": format!("https://127.0.0.1:{good}/"), "ca_file": authority}),
            "not valid for name \"127.0.0.1\"",
        ),
    ] {
        let sentence = reason(params);
        assert!(sentence.starts_with("the certificate of ") && sentence.contains(fault), "{sentence}");
    }
}

#[test]
fn a_server_without_tls_is_told_from_one_with_it() {
    let server = Server::answering("200 OK", "");
    let port = server.port();
    let sentence = reason(json!({"url": format!("https://localhost:{port}/")}));
    assert!(sentence.starts_with(&format!("TLS with localhost:{port} failed: ")), "{sentence}");
}

#[test]
fn a_redirect_that_gives_up_tls_is_not_followed() {
    let plain = Server::answering("200 OK", "");
    let to = format!("Location: {}\r\n", plain.url("/"));
    let port = serve("server.pem", response("302 Found", &to, ""));
    let url = format!("https://localhost:{port}/");
    let sentence = reason(json!({"url": url, "ca_file": file("authority.pem"), "follow_redirects": 1}));
    let to = plain.port();
    assert_eq!(sentence, format!("the server redirected from https to http (127.0.0.1:{to}), which is not followed"));
    assert_eq!(plain.asked(), [""; 0]);
}

#[test]
fn a_ca_file_without_authorities_is_told_and_not_shown() {
    for (file, fault) in [("/nowhere/ca.pem", "cannot be read: "), ("/etc/passwd", "holds no certificate in PEM")] {
        let sentence = reason(json!({"url": "https://localhost:1/", "ca_file": file}));
        assert!(sentence.starts_with(&format!("the ca_file {file} {fault}")), "{sentence}");
        assert!(!sentence.contains("root:"), "{sentence}");
    }
}
