//! How a run or a job stands: word, colour and shape, always the three together.

use carillon_domain::firing::Phase;
use carillon_domain::run::Status;
use carillon_store::{JobView, RunStage};
use maud::{Markup, html};

/// A state that people see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    Succeeded,
    Failed,
    TimedOut,
    Cancelled,
    Lost,
    Skipped,
    Running,
    Waiting,
    Paused,
    Idle,
    Completed,
}

impl Mark {
    /// The part of the class.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mark::Succeeded => "succeeded",
            Mark::Failed => "failed",
            Mark::TimedOut => "timed_out",
            Mark::Cancelled => "cancelled",
            Mark::Lost => "lost",
            Mark::Skipped => "skipped",
            Mark::Running => "running",
            Mark::Waiting => "waiting",
            Mark::Paused => "paused",
            Mark::Idle => "idle",
            Mark::Completed => "completed",
        }
    }

    /// The word.
    pub const fn word(self) -> &'static str {
        match self {
            Mark::TimedOut => "timed out",
            other => other.as_str(),
        }
    }

    /// The shape, in a square of 12: whether it is filled, and its path.
    const fn shape(self) -> (bool, &'static str) {
        match self {
            Mark::Succeeded => (false, "M2 6.5l3 3 5-7"),
            Mark::Failed => (false, "M2.5 2.5l7 7m0-7l-7 7"),
            Mark::TimedOut => (false, "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1M6 3.5V6l2 1.5"),
            Mark::Cancelled => (true, "M2 2h8v8H2z"),
            Mark::Lost => (false, "M3.5 4a2.5 2.5 0 1 1 3.5 2.3Q6 7 6 8M6 10v.6"),
            Mark::Skipped => (false, "M6 1.5L10.5 6 6 10.5 1.5 6z"),
            Mark::Running => (true, "M3 1.5v9L10.5 6z"),
            Mark::Waiting => (false, "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1"),
            Mark::Paused => (true, "M2.5 2h2.5v8H2.5zM7 2h2.5v8H7z"),
            Mark::Idle => (true, "M6 4a2 2 0 1 0 0 4 2 2 0 0 0 0-4"),
            Mark::Completed => (false, "M1.5 6l2.5 3 5-7M6.5 9l4-6"),
        }
    }

    /// Shape and word.
    pub fn badge(self) -> Markup {
        html! { span class=(format!("o o-{}", self.as_str())) { (self.icon()) (self.word()) } }
    }

    /// The shape alone, for a place whose text says the same.
    pub fn icon(self) -> Markup {
        let (filled, path) = self.shape();
        html! { svg viewBox="0 0 12 12" aria-hidden="true" { path class=[(!filled).then_some("h")] d=(path) {} } }
    }
}

impl From<Status> for Mark {
    fn from(status: Status) -> Self {
        match status {
            Status::Running => Mark::Running,
            Status::Succeeded => Mark::Succeeded,
            Status::Failed => Mark::Failed,
            Status::TimedOut => Mark::TimedOut,
            Status::Cancelled => Mark::Cancelled,
            Status::Lost => Mark::Lost,
            Status::Skipped => Mark::Skipped,
        }
    }
}

/// How a job stands now.
pub(crate) fn of_job(view: &JobView) -> Mark {
    match &view.state.phase {
        Phase::Executing(_) => Mark::Running,
        _ if view.pause().is_some() => Mark::Paused,
        _ if view.state.manual.is_some() => Mark::Waiting,
        _ if view.state.is_completed() => Mark::Completed,
        _ => Mark::Idle,
    }
}

/// How a run stands now.
pub(crate) fn of_run(stage: &RunStage) -> Mark {
    match stage {
        RunStage::Waiting { .. } => Mark::Waiting,
        RunStage::Running { .. } => Mark::Running,
        RunStage::Recorded { record, .. } => record.status.into(),
    }
}
