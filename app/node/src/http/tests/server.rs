//! The server on a real socket: limits, and its end.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Api, token};
use crate::config::Role;
use crate::http::{ApiState, Hosts, Tokens, bind, serve};

struct Running {
    addr: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

async fn running(api: &Api) -> Running {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let tokens = Tokens::configured(&[token("admin", Role::Admin, None)]);
    let state = ApiState::new(Arc::new(api.store.clone()), api.engine.clone(), tokens, Hosts::new(addr, &[]));
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(state, listener, async move { drop(stopped.await) }));
    Running { addr, stop, server }
}

async fn exchange(addr: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    // The server may answer and close before everything was sent.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn requests_are_served_until_the_end() {
    let api = Api::new().await;
    let running = running(&api).await;
    let head = "Host: localhost\r\nAuthorization: Bearer admin\r\nConnection: close\r\n";
    let answer = exchange(running.addr, &format!("GET /v1/jobs HTTP/1.1\r\n{head}\r\n")).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("{\"items\":[],\"next_cursor\":null}"),
        "{answer}"
    );
    let answer = exchange(running.addr, &format!("HEAD /v1/jobs HTTP/1.1\r\n{head}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\n"), "{answer}");
    let head = format!("{head}Content-Type: application/json\r\nUser-Agent: curl/8\r\nX-Forwarded-For: 192.0.2.1\r\n");
    let body = super::job("a").to_string();
    let put = format!("PUT /v1/jobs/a HTTP/1.1\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len());
    assert!(exchange(running.addr, &put).await.starts_with("HTTP/1.1 201"));
    let entry = api.call("GET", "/v1/audit", None).await.json["items"][0].clone();
    assert_eq!(entry["from"], "127.0.0.1 curl/8", "the address is the connection's");
    let idle = TcpStream::connect(running.addr).await.unwrap();
    running.stop.send(()).unwrap();
    running.server.await.unwrap();
    assert!(TcpStream::connect(running.addr).await.is_err(), "nobody listens any more");
    drop(idle);
}

#[tokio::test]
async fn heads_and_bodies_beyond_bounds_are_refused() {
    let api = Api::new().await;
    let running = running(&api).await;
    let write =
        "Host: localhost\r\nAuthorization: Bearer admin\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let long = "x".repeat(200_000);
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for (request, statuses) in [
        (format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"), vec!["414", "431"]),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"), vec!["431"]),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(100)), vec!["431"]),
        ("nonsense\r\n\r\n".into(), vec!["400"]),
        (format!("POST /v1/jobs HTTP/1.1\r\n{write}Content-Length: 2000000\r\n\r\n"), vec!["413"]),
        (
            format!("POST /v1/jobs HTTP/1.1\r\n{write}Transfer-Encoding: chunked\r\n\r\n{}", chunk.repeat(17)),
            vec!["413"],
        ),
        (format!("POST /v1/jobs HTTP/1.1\r\n{write}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"), vec!["400"]),
    ] {
        let answer = exchange(running.addr, &request).await;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(statuses.contains(&status), "{} -> {answer}", &request[..request.len().min(80)]);
    }
    running.stop.send(()).unwrap();
    running.server.await.unwrap();
}

#[tokio::test]
async fn a_port_that_is_taken_is_told() {
    let first = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = first.local_addr().unwrap();
    let error = bind(addr).await.unwrap_err().to_string();
    assert!(error.contains(&addr.to_string()) && error.contains("another process listens there"), "{error}");
}
