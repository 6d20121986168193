//! Calls of a heartbeat monitor at the start and the end of runs, as Healthchecks.io takes them.

pub(super) mod calls;

use crate::id::{JobId, RunId};
use crate::time::Timestamp;

use super::notice::NoticeId;
use super::target::check_url;

/// The addresses of a job's monitor. A start is called by the node that starts, without a promise; an end is a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Ping {
    /// Called when an attempt starts.
    pub start: Option<String>,
    /// Called when a run succeeded.
    pub success: Option<String>,
    /// Called when a run failed for good, timed out or was lost.
    pub failure: Option<String>,
}

/// Which of the addresses is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PingKind {
    /// A run started.
    Start,
    /// A run succeeded.
    Success,
    /// A run failed for good.
    Failure,
}

impl PingKind {
    /// Every value.
    pub const ALL: [PingKind; 3] = [PingKind::Start, PingKind::Success, PingKind::Failure];

    /// The name of its field in a definition.
    pub const fn as_str(self) -> &'static str {
        match self {
            PingKind::Start => "start",
            PingKind::Success => "success",
            PingKind::Failure => "failure",
        }
    }
}

/// One call that is to be delivered: a POST whose body is the tail of the run's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PingCall {
    /// Tells repeats of one call apart.
    pub id: NoticeId,
    /// The job.
    pub job: JobId,
    /// The run that ended.
    pub run: RunId,
    /// `Success` or `Failure`.
    pub kind: PingKind,
    /// The address.
    pub url: String,
    /// When the run ended.
    pub at: Timestamp,
}

impl Ping {
    /// The most bytes of output in the body of a call.
    pub const MOST_OUTPUT: usize = 10_000;

    /// The three addresses that follow from the one that a monitor shows: itself, `/start` and `/fail` below it.
    pub fn of_url(url: &str) -> Self {
        let (base, query) = url.find('?').map_or((url, ""), |at| url.split_at(at));
        let base = base.trim_end_matches('/');
        let [start, success, failure] = ["/start", "", "/fail"].map(|end| Some(format!("{base}{end}{query}")));
        Self { start, success, failure }
    }

    /// The one address from which all three follow, if they do.
    pub fn as_url(&self) -> Option<&str> {
        self.success.as_deref().filter(|url| *self == Self::of_url(url))
    }

    /// The address of one kind.
    pub fn url(&self, kind: PingKind) -> Option<&str> {
        match kind {
            PingKind::Start => self.start.as_deref(),
            PingKind::Success => self.success.as_deref(),
            PingKind::Failure => self.failure.as_deref(),
        }
    }

    /// Whether every address can be called, and there is one.
    ///
    /// # Errors
    /// The faulty field, empty for the whole, and a sentence about it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        for kind in PingKind::ALL {
            self.url(kind).map_or(Ok(()), check_url).map_err(|fault| (kind.as_str(), fault))?;
        }
        if *self == Self::default() {
            return Err(("", "it names no address: give start, success or failure, or one URL for all".into()));
        }
        Ok(())
    }
}
