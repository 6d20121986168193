//! `/metrics` in the text format of Prometheus.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use carillon_store::ServerReport;
use warp::filters::BoxedFilter;
use warp::http::header::{CONTENT_TYPE, HeaderValue};
use warp::reply::Response;
use warp::{Filter, path};

use crate::config::Role;
use crate::engine::{Counts, Readiness};
use crate::events::EventCounts;
use crate::http::problem::{HttpResult, answer};
use crate::http::request::caller::{Admitted, call, reading};
use crate::http::state::ApiState;
use crate::http::tls::Tls;

/// How long the database is waited for.
const COUNTED_WITHIN: Duration = Duration::from_secs(1);

const FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// `GET /metrics`
pub(in crate::http) fn route(api: &Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let route = path!("metrics").and(reading()).and(call(api, Role::Viewer));
    let handler = async |admitted: Admitted| -> HttpResult {
        let call = admitted?;
        call.no_query()?;
        let mut text = counts(&call.api.engine.counts());
        events(&call.api.events.counts(), &mut text);
        alerts(&call.api, &mut text).await;
        process(&call.api, &mut text);
        if let Some(server) = call.api.store.server() {
            database(&server, &mut text);
        }
        if let Some(tls) = &call.api.tls {
            encryption(tls, &mut text);
        }
        let mut response = Response::new(text.into());
        response.headers_mut().insert(CONTENT_TYPE, FORMAT);
        Ok(response)
    };
    route.then(move |call| answer(handler(call))).boxed()
}

fn counts(counts: &Counts) -> String {
    let mut text = String::new();
    gauge(&mut text, "carillon_prepared", "Firings claimed and not started.", counts.prepared);
    gauge(&mut text, "carillon_executing", "Runs started and not finished.", counts.executing);
    gauge(&mut text, "carillon_partitions", "Partitions that fall to this node.", counts.partitions.len());
    family(&mut text, "carillon_runs_started_total", "counter", "Runs started.");
    line(&mut text, format_args!("carillon_runs_started_total {}", counts.started_total));
    family(&mut text, "carillon_runs_finished_total", "counter", "Runs finished, by status.");
    for (status, count) in &counts.finished_total {
        line(&mut text, format_args!("carillon_runs_finished_total{{status=\"{status}\"}} {count}"));
    }
    family(&mut text, "carillon_store_errors_total", "counter", "Calls to the database that failed, by kind.");
    for (kind, count) in &counts.store_errors_total {
        line(&mut text, format_args!("carillon_store_errors_total{{kind=\"{kind}\"}} {count}"));
    }
    family(&mut text, "carillon_invariant_violations_total", "counter", "Broken invariants; anything but 0 is a bug.");
    line(&mut text, format_args!("carillon_invariant_violations_total {}", counts.invariant_violations_total));
    family(
        &mut text,
        "carillon_clock_offset_seconds",
        "gauge",
        "How far the database's clock is ahead of this machine's.",
    );
    line(&mut text, format_args!("carillon_clock_offset_seconds {:.3}", counts.clock_offset_ms as f64 / 1_000.0));
    lag(&mut text, counts);
    text
}

/// The engine counts each start in one bucket; Prometheus wants each bucket to hold those below it too.
fn lag(text: &mut String, counts: &Counts) {
    const NAME: &str = "carillon_start_lag_seconds";
    family(text, NAME, "histogram", "How long after its time a run was started.");
    let mut below = 0;
    for (bound_ms, count) in &counts.lag_ms_buckets {
        below += count;
        match *bound_ms {
            u64::MAX => {}
            bound_ms => line(text, format_args!("{NAME}_bucket{{le=\"{}\"}} {below}", seconds(bound_ms))),
        }
    }
    let all = below.max(counts.started_total);
    line(text, format_args!("{NAME}_bucket{{le=\"+Inf\"}} {all}"));
    line(text, format_args!("{NAME}_sum {}", seconds(counts.lag_ms_sum)));
    line(text, format_args!("{NAME}_count {all}"));
}

fn events(counts: &EventCounts, text: &mut String) {
    gauge(text, "carillon_event_readers", "Readers of events at this node.", counts.readers);
    family(text, "carillon_events_told_total", "counter", "Events told, counted for each reader.");
    line(text, format_args!("carillon_events_told_total {}", counts.told));
    family(text, "carillon_event_readers_cut_total", "counter", "Readers of events that were cut off.");
    line(text, format_args!("carillon_event_readers_cut_total {}", counts.cut));
    family(text, "carillon_event_looks_total", "counter", "Looks at the database for readers of events.");
    line(text, format_args!("carillon_event_looks_total {}", counts.looks));
}

/// Deliveries are counted in the database; while that is away they are left out.
async fn alerts(api: &ApiState, text: &mut String) {
    let counts = api.alerts.counts();
    family(text, "carillon_alert_notices_total", "counter", "Messages that watch steps of this node have made.");
    line(text, format_args!("carillon_alert_notices_total {}", counts.notices));
    const ATTEMPTS: &str = "carillon_alert_attempts_total";
    family(
        text,
        ATTEMPTS,
        "counter",
        "Attempts of this node to send a message, by the kind of the fact and by outcome.",
    );
    for ((when, outcome), count) in &counts.attempts {
        line(text, format_args!("{ATTEMPTS}{{when=\"{when}\",outcome=\"{outcome}\"}} {count}"));
    }
    const UNREADABLE: &str = "carillon_alert_rows_unreadable";
    family(text, UNREADABLE, "gauge", "Stored rows of alerts that this node cannot read and leaves out.");
    for noun in ["route", "incident", "delivery", "fact"] {
        let count = counts.unreadable.get(noun).copied().unwrap_or_default();
        line(text, format_args!("{UNREADABLE}{{row=\"{noun}\"}} {count}"));
    }
    let Ok(Ok(found)) = tokio::time::timeout(COUNTED_WITHIN, api.store.delivery_counts()).await else { return };
    const DELIVERIES: &str = "carillon_alert_deliveries";
    family(text, DELIVERIES, "gauge", "Messages that the database keeps, by state, each counted up to 1000.");
    let states = [("waiting", found.waiting), ("sending", found.sending), ("sent", found.sent), ("dead", found.dead)];
    for (state, count) in states {
        line(text, format_args!("{DELIVERIES}{{state=\"{state}\"}} {count}"));
    }
}

fn process(api: &ApiState, text: &mut String) {
    let ready = u8::from(api.engine.readiness() == Readiness::Ready);
    gauge(text, "carillon_ready", "Whether the node schedules.", usize::from(ready));
    family(text, "carillon_uptime_seconds", "gauge", "How long the node has been up.");
    line(text, format_args!("carillon_uptime_seconds {:.3}", api.uptime().as_secs_f64()));
    if let Some(bytes) = resident_bytes() {
        family(text, "process_resident_memory_bytes", "gauge", "Resident memory.");
        line(text, format_args!("process_resident_memory_bytes {bytes}"));
    }
    family(text, "carillon_build_info", "gauge", "The version of the binary.");
    line(text, format_args!("carillon_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")));
}

fn encryption(tls: &Tls, text: &mut String) {
    const EXPIRES: &str = "carillon_tls_certificate_expires_seconds";
    family(text, EXPIRES, "gauge", "How long the served certificate is still good for; negative once it has expired.");
    line(text, format_args!("{EXPIRES} {}", tls.expires_in_seconds()));
    const FAILED: &str = "carillon_tls_handshakes_failed_total";
    family(text, FAILED, "counter", "TLS handshakes that failed.");
    line(text, format_args!("{FAILED} {}", tls.handshakes_failed()));
    const REFUSED: &str = "carillon_tls_reloads_refused_total";
    family(
        text,
        REFUSED,
        "counter",
        "Changed certificate files that could not be used; the former ones are served on.",
    );
    line(text, format_args!("{REFUSED} {}", tls.reloads_refused()));
}

/// Values of labels may hold anything.
fn database(server: &ServerReport, text: &mut String) {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    const SERVER: &str = "carillon_database_server_info";
    family(text, SERVER, "gauge", "The database server through which this node writes.");
    let (place, identity, topology) = (escaped(&server.place), escaped(&server.identity), escaped(&server.topology));
    line(text, format_args!("{SERVER}{{place=\"{place}\",identity=\"{identity}\",topology=\"{topology}\"}} 1"));
    const CHANGES: &str = "carillon_database_server_changes_total";
    family(text, CHANGES, "counter", "How often this node went to another database server.");
    line(text, format_args!("{CHANGES} {}", server.changes));
    let trouble = usize::from(server.trouble.is_some());
    gauge(text, "carillon_database_server_trouble", "Whether nodes write through different servers.", trouble);
}

fn gauge(text: &mut String, name: &str, help: &str, value: usize) {
    family(text, name, "gauge", help);
    line(text, format_args!("{name} {value}"));
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    line(text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    Some(kib.trim().parse::<u64>().ok()? * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_lines() {
        let given = Counts {
            prepared: 3,
            started_total: 9,
            finished_total: [("succeeded", 7)].into(),
            lag_ms_sum: 1_234,
            clock_offset_ms: -1_500,
            lag_ms_buckets: vec![(5, 4), (10, 3), (u64::MAX, 2)],
            ..Counts::default()
        };
        let text = counts(&given);
        for expected in [
            "# TYPE carillon_prepared gauge\ncarillon_prepared 3\n",
            "carillon_runs_finished_total{status=\"succeeded\"} 7\n",
            "carillon_start_lag_seconds_bucket{le=\"0.005\"} 4\n",
            "carillon_start_lag_seconds_bucket{le=\"0.010\"} 7\n",
            "carillon_start_lag_seconds_bucket{le=\"+Inf\"} 9\n",
            "carillon_start_lag_seconds_sum 1.234\n",
            "carillon_clock_offset_seconds -1.500\n",
        ] {
            assert!(text.contains(expected), "{text} lacks {expected}");
        }
        let server = ServerReport {
            place: "db1:3306".into(),
            identity: "db\"1:3306".into(),
            topology: "one server".into(),
            why: String::new(),
            changes: 2,
            trouble: None,
        };
        let mut text = String::new();
        database(&server, &mut text);
        let labels = "{place=\"db1:3306\",identity=\"db\\\"1:3306\",topology=\"one server\"} 1\n";
        assert!(text.contains(labels) && text.contains("carillon_database_server_changes_total 2\n"), "{text}");
        assert!(resident_bytes().is_some_and(|bytes| bytes > 100_000));
    }
}
