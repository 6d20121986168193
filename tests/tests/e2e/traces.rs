//! Runs of a real server as spans at a real collector, which reads the protobuf.

use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};

use carillon_domain::time::Timestamp;
use carillon_tests::collector::{Came, Collector, attribute};
use carillon_tests::ear::Ear;
use carillon_tests::fixture::{Gate, directory, wait_for_lines};
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::server::Server;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, getsockname, listen, socket};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::{Value, json};

fn config(url: &str, more: &str) -> String {
    format!("[telemetry]\notlp = \"{url}\"\n{more}\n")
}

/// A port that refuses every connection until somebody listens there. A port that was only free a moment ago may be given to another process.
fn deaf_port() -> (OwnedFd, SockaddrIn) {
    let deaf = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
    bind(deaf.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).expect("a free port");
    let address = getsockname(deaf.as_raw_fd()).expect("an address");
    (deaf, address)
}

fn listening(deaf: OwnedFd) -> TcpListener {
    listen(&deaf, Backlog::MAXCONN).expect("it can listen");
    deaf.into()
}

fn metrics(server: &Server) -> String {
    server.call_raw("GET", "/metrics", &[], None).2
}

fn time_ms(run: &Value, field: &str) -> u64 {
    let time = run[field].as_str().and_then(Timestamp::parse_rfc3339).expect("a time");
    u64::try_from(time.as_ms()).expect("after 1970")
}

fn code(came: &Came) -> StatusCode {
    came.span.status.as_ref().expect("a span has a status").code()
}

#[test]
fn each_attempt_is_a_span_that_leads_to_the_one_before() {
    let (dir, mut collector) = (directory(), Collector::open());
    let server = Server::start_with(dir.path(), &config(collector.url(), "service = \"night\""));
    let file = dir.path().join("said");
    let command = format!("echo $TRACEPARENT >> {}; test $CARILLON_ATTEMPT = 2", file.display());
    let retry = json!({"retry": {"max_attempts": 2, "backoff": "10ms"}});
    server.create(&job("flaky", NEVER, &command, retry));
    server.run_now("flaky");
    let told = wait_for_lines(&file, 2);
    let spans = collector.spans(2);
    let [first, second] = &spans[..] else { panic!("{spans:?}") };

    assert_eq!([first.traceparent(), second.traceparent()], told[..], "the jobs were told the same");
    assert_eq!(first.span.trace_id, second.span.trace_id);
    assert!(first.span.links.is_empty());
    let link = &second.span.links[0];
    assert_eq!((&link.trace_id, &link.span_id), (&first.span.trace_id, &first.span.span_id));

    let mut runs = server.all("/v1/jobs/flaky/runs");
    runs.reverse();
    for (came, run) in spans.iter().zip(&runs) {
        let text = |name: &str| came.attribute(&format!("carillon.{name}"));
        let expected = |name: &str| run[name].as_str().map(str::to_owned);
        assert_eq!((text("run_id"), text("due_at")), (expected("id"), expected("due_at")), "{run}");
        assert_eq!((text("outcome"), text("trigger")), (expected("status"), Some("manual".to_owned())), "{run}");
        assert_eq!(text("attempt"), Some(run["attempt"].to_string()));
        assert_eq!(came.span.name, "default/flaky");
        let (due, started, ended) = (time_ms(run, "due_at"), time_ms(run, "started_at"), time_ms(run, "finished_at"));
        let events = ["due", "started", "ended"].map(|name| came.event_ms(name));
        assert_eq!(events, [Some(due), Some(started), Some(ended)], "{came:?}");
        let claimed = came.event_ms("claimed").expect("when it was claimed");
        assert!(claimed <= started, "{came:?}");
        let lasted = (came.span.start_time_unix_nano / 1_000_000, came.span.end_time_unix_nano / 1_000_000);
        assert_eq!(lasted, (started, ended));
    }
    assert_eq!([code(first), code(second)], [StatusCode::Error, StatusCode::Ok]);
    assert_eq!(first.attribute("carillon.exit_code").as_deref(), Some("1"));
    assert_eq!(attribute(&first.resource, "service.name").as_deref(), Some("night"));
    assert!(attribute(&first.resource, "service.instance.id").is_some(), "{:?}", first.resource);
    server.wait_until("both are counted", || metrics(&server).contains("carillon_spans_sent_total 2\n"));
    assert!(server.drain().success());
    assert!(collector.is_silent(), "no span goes twice");
}

#[test]
fn a_rerun_at_another_node_keeps_the_trace() {
    let (dir, mut collector) = (directory(), Collector::open());
    let (file, gate) = (dir.path().join("said"), Gate::new(dir.path(), "gate"));
    let server = Server::start_with(dir.path(), &config(collector.url(), ""));
    let command = format!("echo $TRACEPARENT >> {}; test $CARILLON_ATTEMPT = 2 || {}", file.display(), gate.wait());
    server.create(&job("long", NEVER, &command, json!({"on_lost": "rerun"})));
    server.run_now("long");
    wait_for_lines(&file, 1);
    server.kill();
    let _other = Server::start(dir.path(), &["--node-name", "other"]);
    let told = wait_for_lines(&file, 2);
    let span = collector.spans(1).remove(0);
    assert_eq!(span.traceparent(), told[1]);
    assert_eq!(attribute(&span.resource, "service.instance.id").as_deref(), Some("other"));
    let parts = |traceparent: &str| traceparent.split('-').map(str::to_owned).collect::<Vec<_>>();
    let (lost, rerun) = (parts(&told[0]), parts(&told[1]));
    assert!(lost[1] == rerun[1] && lost[2] != rerun[2], "{told:?}");
    let before: String = span.span.links[0].span_id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(before, lost[2], "it leads to the run that was lost");
}

#[test]
fn runs_that_are_not_sampled_say_so_to_their_commands_and_send_nothing() {
    let (dir, collector) = (directory(), Collector::open());
    let server = Server::start_with(dir.path(), &config(collector.url(), "sample = 0.0"));
    let id = server.run_once("quiet", json!({"command": "echo $TRACEPARENT"}), json!({}))["id"].clone();
    let output = server.call_raw("GET", &format!("/v1/runs/{}/output", id.as_str().unwrap()), &[], None).2;
    assert!(
        output.trim_end().ends_with("-00") && output.starts_with("00-") && output.trim_end().len() == 55,
        "{output}"
    );
    assert!(server.drain().success());
    assert!(collector.is_silent());
}

#[test]
fn without_a_collector_nothing_is_traced_and_the_standard_variable_names_one() {
    let (dir, mut collector) = (directory(), Collector::open());
    let server = Server::start(dir.path(), &[]);
    let echo = json!({"command": "echo \"[$TRACEPARENT]\""});
    let id = server.run_once("plain", echo, json!({}))["id"].clone();
    let output = server.call_raw("GET", &format!("/v1/runs/{}/output", id.as_str().unwrap()), &[], None).2;
    assert_eq!(output, "[]\n");
    assert!(!metrics(&server).contains("carillon_spans"));
    assert!(server.drain().success());
    let server = Server::start_as(dir.path(), |command| command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()));
    server.ended(&server.run_now("plain"));
    assert_eq!(collector.spans(1)[0].span.name, "default/plain");
}

#[test]
fn a_collector_that_is_away_holds_up_no_run_and_is_told_once() {
    let dir = directory();
    let (deaf, address) = deaf_port();
    let server = Server::start_with(dir.path(), &config(&format!("http://{address}"), ""));
    server.run_once("first", json!({"command": "true"}), json!({}));
    server.wait_for_log("the collector does not take spans");
    let dropped = "carillon_spans_dropped_total{reason=\"not_taken\"} 1\n";
    server.wait_until("it is counted", || metrics(&server).contains(dropped));
    let mut collector = Collector::of(Ear::on(listening(deaf)));
    server.run_once("second", json!({"command": "true"}), json!({}));
    assert_eq!(collector.spans(1)[0].span.name, "default/second");
    server.wait_for_log("the collector takes spans again");
    assert_eq!(server.log().matches("does not take spans").count(), 1);
}
