//! The executor `http`: a run is a call of a URL.
//!
//! Two sides of it are not trusted. *The job* may have been saved by somebody who should not reach the addresses that the server
//! reaches. So addresses are checked (`address`, `resolver`), and headers are framed here (`headers`). *The answer* is
//! bounded in size and time (`call`) and shown as text (`printable`).

mod address;
mod answer;
mod call;
mod headers;
mod params;
mod printable;
mod resolver;
mod sentence;
mod status;
mod target;
mod trust;

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use carillon_plugin::{Failure, Plugin, Run, export_plugin};
use ureq::Agent;
use ureq::http::Method;

use crate::answer::{HttpAnswer, named};
use crate::call::{Call, Seen};
pub use crate::params::Params;
use crate::target::Target;

/// How long it takes to notice that the run is to stop.
const NOTICE: Duration = Duration::from_millis(10);
/// Pieces of the body that wait while the output is slow.
const WAITING_PIECES: usize = 4;

/// The executor `http`.
#[derive(Debug, Default)]
pub struct Http;

impl Plugin for Http {
    const NAME: &'static str = "http";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const PARAMS_SCHEMA: &'static str = include_str!("params.schema.json");
    type Params = Params;

    fn run(&self, params: Params, run: &Run<'_>) -> Result<(), Failure> {
        let call = prepare(&params, run).map_err(Failure::new)?;
        let ends = Instant::now() + params.timeout;
        let agent = call::agent(call.target.is_tls() || params.follow_redirects > 0, &params).map_err(Failure::new)?;
        let late = sentence::too_late(&call.target, params.timeout);
        let (tell, seen) = sync_channel(WAITING_PIECES);
        let client = agent.clone();
        let thread = thread::Builder::new().name("http call".to_owned());
        let thread = thread.spawn(move || call.perform(&client, &tell))?;
        let outcome = Watch { params: &params, run, seen, ends, late }.outcome();
        // Whatever the thread still waits for on a connection ends now.
        Agent::shutdown(agent);
        if outcome.is_ok() {
            // It has nothing left to wait for, and a run must leave no thread behind. Otherwise it may wait for a name.
            let _ = thread.join();
        }
        outcome
    }
}

export_plugin!(Http);

fn prepare(params: &Params, run: &Run<'_>) -> Result<Call, String> {
    let body = match (&params.json, &params.body) {
        (Some(_), Some(_)) => return Err("a call has one body: body and json cannot both be given".to_owned()),
        (Some(json), None) => Some(json.to_string().into_bytes()),
        (None, body) => body.as_ref().map(|body| body.as_str().as_bytes().to_vec()),
    };
    let method = params.method.as_deref().unwrap_or(if body.is_some() { "POST" } else { "GET" });
    Ok(Call {
        target: Target::parse(params.url.as_str())?,
        method: Method::from_bytes(method.as_bytes()).map_err(|_| format!("{method:?} is not a method"))?,
        headers: headers::of_job(params)?,
        body,
        of_run: headers::of_run(run)?,
        follow_redirects: params.follow_redirects,
        timeout: params.timeout,
    })
}

/// The run's side of a call: shows what is seen, and does not wait longer than it may.
struct Watch<'a> {
    params: &'a Params,
    run: &'a Run<'a>,
    seen: Receiver<Seen>,
    ends: Instant,
    /// The sentence for a call whose time is over.
    late: String,
}

impl Watch<'_> {
    fn outcome(self) -> Result<(), Failure> {
        let mut answer = None;
        let ended = self.show(&mut answer);
        // A wrong status says more than what happened to its body afterwards.
        if let (Some(answer), false) = (&answer, self.run.cancelled()) {
            answer.check_status(self.params).map_err(Failure::new)?;
        }
        ended?;
        let answer = answer.ok_or_else(|| Failure::new("the call ended without an answer"))?;
        answer.check_body(self.params).map_err(Failure::new)
    }

    fn show(&self, answer: &mut Option<HttpAnswer>) -> Result<(), Failure> {
        let mut output = self.run.output();
        loop {
            match (self.next()?, answer.as_mut()) {
                (Seen::Hop(status, to), _) => writeln!(output, "{}: on to {to}", named(status))?,
                (Seen::Head(head), _) => *answer = Some(HttpAnswer::begin(&head, output)?),
                (Seen::Piece(piece), Some(answer)) if piece.is_empty() => return Ok(answer.end(true, output)?),
                (Seen::Piece(piece), Some(answer)) => answer.push(&piece, self.params, output)?,
                (Seen::TooLong, Some(answer)) => return Ok(answer.end(false, output)?),
                (Seen::Failed(sentence), _) => return Err(Failure::new(sentence)),
                (Seen::Piece(_) | Seen::TooLong, None) => return Err(Failure::new("a body came before its head")),
            }
        }
    }

    fn next(&self) -> Result<Seen, Failure> {
        loop {
            self.run.go_on()?;
            let left = self.ends.saturating_duration_since(Instant::now());
            match self.seen.recv_timeout(left.min(NOTICE)) {
                Ok(seen) => return Ok(seen),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(Failure::new(&*self.late)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::new("the call ended without an answer")),
            }
        }
    }
}
