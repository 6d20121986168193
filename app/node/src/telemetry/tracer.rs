//! The engine's side: the runs that are sampled, from their start until they are recorded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use carillon_domain::firing::Held;
use carillon_domain::id::RunId;
use carillon_domain::job::Job;
use carillon_domain::run::Ending;
use carillon_domain::run::trace::{RunTrace, Sample};

use super::exporting::SpanCounts;
use super::span::EndedRun;
use crate::config::TelemetryConfig;

/// Notes runs and hands their spans over.
#[derive(Debug)]
pub struct Tracer {
    service: String,
    sample: Sample,
    queue: SyncSender<Box<EndedRun>>,
    counts: Arc<SpanCounts>,
    open: BTreeMap<RunId, Open>,
}

/// A sampled run that is not recorded yet.
#[derive(Debug)]
struct Open {
    trace: RunTrace,
    held: Held,
    job: Arc<Job>,
    ending: Option<Ending>,
}

impl Tracer {
    pub(super) fn new(config: &TelemetryConfig, queue: SyncSender<Box<EndedRun>>, counts: Arc<SpanCounts>) -> Self {
        Self { service: config.service.clone(), sample: config.sample, queue, counts, open: BTreeMap::new() }
    }

    /// A run starts; its place in its trace.
    pub fn started(&mut self, held: &Held, job: &Arc<Job>) -> RunTrace {
        let trace = RunTrace::of(&self.service, &job.key(), &held.firing, self.sample);
        if trace.is_sampled() {
            let open = Open { trace, held: *held, job: Arc::clone(job), ending: None };
            self.open.insert(held.run, open);
        }
        trace
    }

    /// A run is about to be recorded so.
    pub fn ended(&mut self, run: RunId, ending: &Ending) {
        if let Some(open) = self.open.get_mut(&run) {
            open.ending = Some(ending.clone());
        }
    }

    /// A run is recorded, or its row is another's: its span goes out, unless too many wait.
    pub fn recorded(&mut self, run: RunId) {
        let Some(Open { trace, held, job, ending }) = self.open.remove(&run) else { return };
        let Some(ending) = ending else { return };
        if self.queue.try_send(Box::new(EndedRun { trace, held, job, ending })).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
