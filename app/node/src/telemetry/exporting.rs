//! The thread that sends spans.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::trace::SpanExporter as _;
use tokio::runtime::Handle;
use tracing::{debug, info, warn};

use super::client::Client;
use super::span::{EndedRun, resource, span_data};

/// How long one batch may take, tries again included.
pub(super) const SENT_WITHIN: Duration = Duration::from_secs(10);
/// How long spans wait for others to go with.
const GATHERED_WITHIN: Duration = Duration::from_secs(1);
/// How many spans go in one message.
pub(super) const MOST_AT_ONCE: usize = 512;

/// Why no span can be sent: a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("spans cannot be sent to telemetry.otlp: {0}")]
pub struct TelemetryError(String);

/// The spans of this node since it began.
#[derive(Debug, Default)]
pub struct SpanCounts {
    /// Taken by the collector.
    pub sent: AtomicU64,
    /// Left out as too many waited.
    pub dropped: AtomicU64,
    /// Not taken by the collector.
    pub refused: AtomicU64,
}

/// The thread that sends; it ends when the [`super::Tracer`] is gone.
#[derive(Debug)]
pub struct Exporting {
    counts: Arc<SpanCounts>,
    ended: Receiver<()>,
}

impl Exporting {
    pub(super) fn start(
        collector: &str,
        (service, node): (&str, &str),
        waiting: Receiver<Box<EndedRun>>,
        counts: Arc<SpanCounts>,
    ) -> Result<Self, TelemetryError> {
        let traces = format!("{}/v1/traces", collector.trim_end_matches('/'));
        let builder = SpanExporter::builder().with_http().with_http_client(Client::new(SENT_WITHIN));
        let builder = builder.with_protocol(Protocol::HttpBinary).with_timeout(SENT_WITHIN).with_endpoint(traces);
        let sentence = |error: &dyn fmt::Display| TelemetryError(error.to_string());
        let mut exporter = builder.build().map_err(|error| sentence(&error))?;
        exporter.set_resource(&resource(service, node));
        let (is_over, ended) = sync_channel(1);
        let sending = Sending { exporter, waiting, counts: counts.clone(), runtime: Handle::current(), is_away: false };
        let thread = Builder::new().name("spans".into()).spawn(move || sending.run(is_over));
        thread.map_err(|error| sentence(&error))?;
        Ok(Self { counts, ended })
    }

    /// The counters.
    pub fn counts(&self) -> Arc<SpanCounts> {
        self.counts.clone()
    }

    /// Waits until all spans are sent, for so long at the most. Blocks. The tracer must have gone.
    pub fn finish(self, within: Duration) {
        if self.ended.recv_timeout(within) == Err(RecvTimeoutError::Timeout) {
            warn!("the collector did not take the last spans within {within:?}");
        }
    }
}

struct Sending {
    exporter: SpanExporter,
    waiting: Receiver<Box<EndedRun>>,
    counts: Arc<SpanCounts>,
    runtime: Handle,
    /// Whether the collector did not take the last batch.
    is_away: bool,
}

impl Sending {
    /// `_is_over` tells by its end that this is over.
    fn run(mut self, _is_over: SyncSender<()>) {
        while let Ok(first) = self.waiting.recv() {
            let (mut batch, until) = (vec![span_data(&first)], Instant::now() + GATHERED_WITHIN);
            while batch.len() < MOST_AT_ONCE {
                let left = until.saturating_duration_since(Instant::now());
                let Ok(next) = self.waiting.recv_timeout(left) else { break };
                batch.push(span_data(&next));
            }
            let count = batch.len() as u64;
            match self.runtime.block_on(self.exporter.export(batch)) {
                Ok(()) => {
                    self.counts.sent.fetch_add(count, Ordering::Relaxed);
                    self.note(None);
                }
                Err(error) => {
                    self.counts.refused.fetch_add(count, Ordering::Relaxed);
                    self.note(Some(&error));
                }
            }
        }
        debug!("all spans are sent or counted");
    }

    /// Once for each time that the collector goes away and comes back.
    fn note(&mut self, error: Option<&dyn fmt::Display>) {
        match (error, std::mem::replace(&mut self.is_away, error.is_some())) {
            (Some(error), false) => warn!("the collector does not take spans: {error}; they are dropped and counted"),
            (None, true) => info!("the collector takes spans again"),
            (Some(_), true) | (None, false) => {}
        }
    }
}
