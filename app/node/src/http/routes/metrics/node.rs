//! The node's own figures, which are read from memory.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use carillon_keeper::boottime_ms;
use carillon_store::{Clock, ServerReport, SystemClock};

use super::text::{counter, escaped, family, gauge, histogram, labelled, line, seconds};
use crate::alerts::{AlertCounts, disk};
use crate::engine::{Counts, Readiness};
use crate::events::EventCounts;
use crate::http::state::ApiState;
use crate::http::tls::Tls;
use crate::telemetry::SpanCounts;

pub(super) fn counts(counts: &Counts, text: &mut String) {
    gauge(text, "carillon_prepared", "Firings claimed and not started.", counts.prepared);
    gauge(text, "carillon_executing", "Runs started and not finished.", counts.executing);
    gauge(text, "carillon_executing_limit", "How many runs may execute at once.", counts.max_executing);
    gauge(text, "carillon_partitions", "Partitions that fall to this node.", counts.partitions.len());
    counter(text, "carillon_runs_started_total", "Runs started.", counts.started_total);
    let finished = ("carillon_runs_finished_total", "counter", "Runs finished, by status.");
    labelled(text, finished, "status", &counts.finished_total);
    let errors = ("carillon_store_errors_total", "counter", "Calls to the database that failed, by kind.");
    labelled(text, errors, "kind", &counts.store_errors_total);
    let violations = ("carillon_invariant_violations_total", "Broken invariants; anything but 0 is a bug.");
    counter(text, violations.0, violations.1, counts.invariant_violations_total);
    let offset = ("carillon_clock_offset_seconds", "How far the database's clock is ahead of this machine's.");
    gauge(text, offset.0, offset.1, counts.clock_offset_ms as f64 / 1_000.0);
    histogram(text, "carillon_start_lag_seconds", "How long after its time a run was started.", &counts.lags);
    histogram(text, "carillon_run_duration_seconds", "How long a run lasted.", &counts.durations);
}

/// When the database answered last, which a rule compares with now. Nothing before the first answer.
pub(super) fn last_answer(counts: &Counts, text: &mut String) {
    if counts.database_heard_ms > 0 {
        let ago_ms = boottime_ms().saturating_sub(counts.database_heard_ms);
        let at_ms = u64::try_from(SystemClock.now().as_ms()).unwrap_or_default().saturating_sub(ago_ms);
        let help = "When the database last answered this node, by this machine's clock.";
        gauge(text, "carillon_database_last_answer_timestamp_seconds", help, seconds(at_ms));
    }
}

pub(super) fn events(counts: &EventCounts, text: &mut String) {
    gauge(text, "carillon_event_readers", "Readers of events at this node.", counts.readers);
    counter(text, "carillon_events_told_total", "Events told, counted for each reader.", counts.told);
    counter(text, "carillon_event_readers_cut_total", "Readers of events that were cut off.", counts.cut);
    counter(text, "carillon_event_looks_total", "Looks at the database for readers of events.", counts.looks);
}

pub(super) fn alerts(counts: &AlertCounts, text: &mut String) {
    let notices = ("carillon_alert_notices_total", "Messages that watch steps of this node have made.");
    counter(text, notices.0, notices.1, counts.notices);
    const ATTEMPTS: &str = "carillon_alert_attempts_total";
    let help = "Attempts of this node to send a message, by the kind of the fact and by outcome.";
    family(text, ATTEMPTS, "counter", help);
    for ((when, outcome), count) in &counts.attempts {
        line(text, format_args!("{ATTEMPTS}{{when=\"{when}\",outcome=\"{outcome}\"}} {count}"));
    }
    let help = "Stored rows of alerts that this node cannot read and leaves out.";
    let rows = ["route", "incident", "delivery", "fact"]
        .map(|noun| (noun, counts.unreadable.get(noun).copied().unwrap_or_default()));
    labelled(text, ("carillon_alert_rows_unreadable", "gauge", help), "row", rows);
}

pub(super) fn process(api: &ApiState, text: &mut String) {
    let ready = u8::from(api.engine.readiness() == Readiness::Ready);
    gauge(text, "carillon_ready", "Whether the node schedules.", ready);
    let started_ms = SystemClock.now().as_ms().saturating_sub(i64::try_from(api.uptime().as_millis()).unwrap_or(0));
    let started_ms = u64::try_from(started_ms).unwrap_or_default();
    gauge(text, "process_start_time_seconds", "When the node began to serve.", seconds(started_ms));
    if let Some(bytes) = resident_bytes() {
        gauge(text, "process_resident_memory_bytes", "Resident memory.", bytes);
    }
    let version = [(env!("CARGO_PKG_VERSION"), 1)];
    labelled(text, ("carillon_build_info", "gauge", "The version of the binary."), "version", version);
}

/// A network disk may let it wait, so another thread asks. A place that cannot be looked at is left out.
pub(super) async fn disks(api: &ApiState, text: &mut String) {
    let places = api.places.0.clone();
    let look = move || -> Vec<(PathBuf, u64, u64)> {
        places.into_iter().filter_map(|place| disk(&place).map(|(all, free)| (place, all, free))).collect()
    };
    let found = tokio::task::spawn_blocking(look).await.unwrap_or_default();
    let named = |bytes: fn(&(PathBuf, u64, u64)) -> u64| {
        found.iter().map(move |place| (escaped(&place.0.display().to_string()), bytes(place))).collect::<Vec<_>>()
    };
    let size = ("carillon_disk_size_bytes", "gauge", "The size of the disk of a directory of this node.");
    labelled(text, size, "directory", named(|(_, all, _)| *all));
    let free = ("carillon_disk_free_bytes", "gauge", "Free bytes of the disk of a directory of this node.");
    labelled(text, free, "directory", named(|(_, _, free)| *free));
}

pub(super) fn spans(counts: &SpanCounts, text: &mut String) {
    counter(text, "carillon_spans_sent_total", "Spans that the collector took.", counts.sent.load(Ordering::Relaxed));
    let dropped = [("queue_full", &counts.dropped), ("not_taken", &counts.refused)];
    let dropped = dropped.map(|(reason, count)| (reason, count.load(Ordering::Relaxed)));
    let family = ("carillon_spans_dropped_total", "counter", "Spans that did not reach the collector, by reason.");
    labelled(text, family, "reason", dropped);
}

pub(super) fn encryption(tls: &Tls, text: &mut String) {
    let expires = ("carillon_tls_certificate_expires_timestamp_seconds", "When the served certificate expires.");
    gauge(text, expires.0, expires.1, tls.expires_at().as_ms() / 1_000);
    counter(text, "carillon_tls_handshakes_failed_total", "TLS handshakes that failed.", tls.handshakes_failed());
    let help = "Changed certificate files that could not be used; the former ones are served on.";
    counter(text, "carillon_tls_reloads_refused_total", help, tls.reloads_refused());
}

pub(super) fn server(server: &ServerReport, text: &mut String) {
    const SERVER: &str = "carillon_database_server_info";
    family(text, SERVER, "gauge", "The database server through which this node writes.");
    let (place, identity, topology) = (escaped(&server.place), escaped(&server.identity), escaped(&server.topology));
    line(text, format_args!("{SERVER}{{place=\"{place}\",identity=\"{identity}\",topology=\"{topology}\"}} 1"));
    let changes = ("carillon_database_server_changes_total", "How often this node went to another database server.");
    counter(text, changes.0, changes.1, server.changes);
    let trouble = u8::from(server.trouble.is_some());
    gauge(text, "carillon_database_server_trouble", "Whether nodes write through different servers.", trouble);
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    Some(kib.trim().parse::<u64>().ok()? * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Histogram;

    #[test]
    fn counts_become_lines() {
        let lags = Histogram { buckets: vec![(5, 4), (10, 3), (1_000, 0)], count: 9, sum_ms: 1_234 };
        let given = Counts {
            prepared: 3,
            started_total: 9,
            finished_total: [("succeeded", 7)].into(),
            clock_offset_ms: -1_500,
            lags,
            ..Counts::default()
        };
        let mut text = String::new();
        counts(&given, &mut text);
        for expected in [
            "# TYPE carillon_prepared gauge\ncarillon_prepared 3\n",
            "carillon_runs_finished_total{status=\"succeeded\"} 7\n",
            "carillon_start_lag_seconds_bucket{le=\"0.005\"} 4\n",
            "carillon_start_lag_seconds_bucket{le=\"0.01\"} 7\n",
            "carillon_start_lag_seconds_bucket{le=\"1\"} 7\n",
            "carillon_start_lag_seconds_bucket{le=\"+Inf\"} 9\n",
            "carillon_start_lag_seconds_sum 1.234\n",
            "carillon_start_lag_seconds_count 9\n",
            "carillon_clock_offset_seconds -1.5\n",
        ] {
            assert!(text.contains(expected), "{text} lacks {expected}");
        }
        let report = ServerReport {
            place: "db1:3306".into(),
            identity: "db\"1:3306".into(),
            topology: "one server".into(),
            why: String::new(),
            changes: 2,
            trouble: None,
        };
        let mut text = String::new();
        server(&report, &mut text);
        let labels = "{place=\"db1:3306\",identity=\"db\\\"1:3306\",topology=\"one server\"} 1\n";
        assert!(text.contains(labels) && text.contains("carillon_database_server_changes_total 2\n"), "{text}");
        assert!(resident_bytes().is_some_and(|bytes| bytes > 100_000));
    }
}
