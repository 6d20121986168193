//! The session timing as JSON.

use carillon_domain::duration;
use carillon_store::TimingReport;
use serde_json::{Value, json};

/// The periods on which a node's life depends, and where they come from.
pub fn timing_json(report: &TimingReport) -> Value {
    let timing = &report.chosen.timing;
    json!({
        "heartbeat": duration::format(timing.heartbeat),
        "self_kill_after": duration::format(timing.self_kill_after),
        "expire_after": duration::format(timing.expire_after),
        "source": report.chosen.source.to_string(),
    })
}
