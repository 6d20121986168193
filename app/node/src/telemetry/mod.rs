//! Traces: a span for each run that is sampled, sent to a collector by OTLP over HTTP.
//!
//! The engine notes a run at its start and hands its span over once the run is recorded. A thread of its own makes batches
//! and sends them. The queue between them is bounded: while the collector is away spans are dropped and counted, and no run waits.
//! Ids and sampling follow from the firing alone ([`carillon_domain::run::trace`]).

mod client;
mod exporting;
mod span;
mod tracer;

pub use exporting::{Exporting, SpanCounts, TelemetryError};
pub use tracer::Tracer;

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use crate::config::TelemetryConfig;

/// How many spans wait for the collector at the most: those of two seconds at 1,000 runs a second.
const MOST_WAITING: usize = 2_048;

/// Starts to send spans; `None` where no collector is configured.
///
/// # Errors
/// [`TelemetryError`] when the collector's address or the environment's `OTEL_*` variables cannot be used.
pub fn start(config: &TelemetryConfig, node: &str) -> Result<Option<(Tracer, Exporting)>, TelemetryError> {
    let Some(collector) = &config.otlp else { return Ok(None) };
    let (queue, waiting) = sync_channel(MOST_WAITING);
    let counts = Arc::new(SpanCounts::default());
    let exporting = Exporting::start(collector, (&config.service, node), waiting, counts.clone())?;
    Ok(Some((Tracer::new(config, queue, counts), exporting)))
}

#[cfg(test)]
mod tests;
