//! Runs: spawned through their executor, followed while they live, turned into endings when they end.

use std::sync::Arc;

use carillon_domain::firing::Held;
use carillon_domain::id::RunId;
use carillon_domain::invariants;
use carillon_domain::job::Job;
use carillon_domain::node::{Input, StopReason};
use carillon_domain::run::trace::RunTrace;
use carillon_domain::run::{Ending, Reason, Status};
use carillon_domain::time::Timestamp;
use carillon_executors::execution::Execution;
use carillon_executors::executor::{Exit, Live, Outcome, RunFacts, StoredParams};
use carillon_keeper::boottime_ms;
use carillon_store::Output;
use tracing::{debug, info};

use super::{Engine, Message};

/// A run that lives here.
pub(super) struct Running {
    /// `None` where it could not even begin.
    execution: Option<Execution>,
    job: Arc<Job>,
    /// On the boot clock, in milliseconds.
    began_ms: u64,
}

impl Engine {
    pub(super) fn spawn(&mut self, held: Held, job: Arc<Job>) {
        let run = held.run;
        if let Err(violation) = invariants::not_live_yet(run, self.running.contains_key(&run)) {
            debug_assert!(false, "{violation}");
            self.counters.violated(&violation);
            return;
        }
        self.handle.begin_output(run);
        if let Some(url) = job.ping.as_ref().and_then(|ping| ping.start.as_deref()) {
            self.handle.tell_start(url);
        }
        self.counters.started(&held);
        debug!(job = job.key(), %run, due_at = %held.firing.due_at, attempt = held.firing.attempt, "run started");
        let trace = self.parts.tracer.as_mut().map(|tracer| tracer.started(&held, &job));
        let execution = match self.begin(&held, &job, trace) {
            Ok(execution) => Some(execution),
            Err(sentence) => {
                let exit = Exit::without_process(Outcome::Failed, sentence);
                let _ = self.send.send(Message::Exited(run, Box::new(exit)));
                None
            }
        };
        self.running.insert(run, Running { execution, job, began_ms: boottime_ms() });
    }

    /// Hands a run to its executor; the error is a sentence.
    fn begin(&self, held: &Held, job: &Job, trace: Option<RunTrace>) -> Result<Execution, String> {
        let executor = self.parts.executors.find(&job.executor);
        let executor = executor.ok_or_else(|| format!("this node has no executor \"{}\"", job.executor))?;
        let (run, handle, send) = (held.run, self.handle.clone(), self.send.clone());
        let live = Live::to(move |printed| handle.add_output(run, printed));
        let done = move |exit| drop(send.send(Message::Exited(run, Box::new(exit))));
        Ok(Execution::start(executor, facts(held, job, trace)?, live, done))
    }

    pub(super) fn stop(&mut self, run: RunId, reason: StopReason) {
        if let Some(running) = self.running.get(&run) {
            info!(job = running.job.key(), %run, ?reason, "run asked to stop");
            running.execution.iter().for_each(Execution::stop);
        }
    }

    pub(super) fn exited(&mut self, run: RunId, exit: Exit) -> Input {
        let status = Status::from(exit.how);
        let running = self.running.remove(&run);
        if let Some(running) = &running {
            tell_of_end(&running.job, run, status, &exit);
        }
        let began_ms = running.and_then(|running| running.execution.map(|_| running.began_ms));
        self.counters.finished(status, began_ms.map(|began_ms| boottime_ms().saturating_sub(began_ms)));
        self.handle.complete_output(run, &exit.output);
        // The node sets the times, on the database's clock.
        let ending = Ending {
            exit_code: exit.exit_code,
            signal: exit.signal,
            reason: exit.reason.map(Reason::Said),
            usage: exit.usage,
            ..Ending::new(status, Timestamp::EPOCH)
        };
        let output = Arc::new(Output { bytes: exit.output, truncated: exit.output_truncated });
        Input::Exited { run, ending, output }
    }
}

/// A run that succeeds has no line in the log: it is in the history, and the line would cost more than a short run.
fn tell_of_end(job: &Job, run: RunId, status: Status, exit: &Exit) {
    let (name, reason) = (status.as_str(), exit.reason.as_deref());
    match status {
        Status::Succeeded => debug!(job = job.key(), %run, status = name, exit_code = exit.exit_code, "run ended"),
        _ => info!(job = job.key(), %run, status = name, exit_code = exit.exit_code, reason, "run ended"),
    }
}

fn facts(held: &Held, job: &Job, trace: Option<RunTrace>) -> Result<RunFacts, String> {
    Ok(RunFacts {
        run_id: held.run,
        namespace: job.namespace.clone(),
        job: job.name.clone(),
        due_at: held.firing.due_at,
        attempt: held.firing.attempt,
        fencing_token: held.fencing_token,
        timeout: job.timeout,
        kill_grace: job.kill_grace,
        trace,
        params: StoredParams::of(&job.params)?,
    })
}
