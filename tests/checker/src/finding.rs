//! Findings that should not be, and their names.

use std::fmt;

/// The questions that people ask first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// A firing that started twice and was not to.
    Duplicates,
    /// Two runs of one job at the same time where that was not to be.
    Overlaps,
    /// A due time of which the records say nothing.
    SilentMisses,
    /// Records that say something else than the jobs themselves, or than what was asked for.
    Contradictions,
    /// Runs that had not come to rest in the end.
    Unsettled,
    /// Failures that a route asks for, and that its receiver never heard of.
    LostAlerts,
    /// Alerts of what did not happen, or out of order.
    GroundlessAlerts,
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 7] = [
        Group::Duplicates,
        Group::Overlaps,
        Group::SilentMisses,
        Group::Contradictions,
        Group::Unsettled,
        Group::LostAlerts,
        Group::GroundlessAlerts,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Duplicates => "duplicates",
            Group::Overlaps => "overlaps",
            Group::SilentMisses => "silent misses",
            Group::Contradictions => "contradictions",
            Group::Unsettled => "unsettled",
            Group::LostAlerts => "lost alerts",
            Group::GroundlessAlerts => "alerts without reason",
        }
    }
}

/// Everything that can be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One firing started twice in the same attempt.
    StartedTwice,
    /// Two processes had one run id.
    TwoProcesses,
    /// A further attempt that neither retry nor `on_lost` asked for.
    AttemptNotAllowed,
    /// Two runs lived at the same time.
    Overlap,
    /// A due time without a record.
    SilentMiss,
    /// A due time in two records.
    RecordedTwice,
    /// A record of a time at which the job is not due.
    NotDue,
    /// A stretch that stands for another number of due times than there are in it.
    WrongCount,
    /// A run that lived and has no record.
    NoRecord,
    /// A run that lived and is recorded as one that never started.
    RecordedAsUnstarted,
    /// A record of a run that is about another firing than the run itself was.
    OtherFiring,
    /// Recorded with an outcome that only a run can have, and never started.
    NeverStarted,
    /// Recorded as ended by itself with an exit code, which it did not announce.
    OtherEnd,
    /// Recorded as failed, with nothing that explains it.
    UnexplainedFailure,
    /// Recorded as lost, with nothing that explains it.
    UnexplainedLoss,
    /// Recorded as cancelled, and nobody asked for that.
    UnaskedCancel,
    /// A manual run that nobody asked for.
    UnaskedRun,
    /// A due time skipped for a reason that did not exist.
    UnexplainedSkip,
    /// A run was asked for, the answer was its id, and there is no record of it.
    ForgottenRun,
    /// A firing of the schedule started after a pause was answered.
    StartedWhilePaused,
    /// A firing of the schedule started after a deletion was answered.
    StartedAfterDeletion,
    /// A run started before its due time.
    Early,
    /// A later run carried a fencing token that is not higher.
    TokenWentBack,
    /// The lines of a run cannot be read.
    Torn,
    /// A job that nobody asked for.
    UnknownJob,
    /// A run that had no outcome when all had come to rest.
    Unsettled,
    /// A failure of which the receiver that asked for it never heard.
    AlertLost,
    /// An alert of what no record tells.
    AlertWithoutReason,
    /// A trouble is told to be over that was never told.
    RecoveryWithoutAlert,
    /// A repeat of an alert with another content.
    AlertDiffers,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 30] = [
        Kind::StartedTwice,
        Kind::TwoProcesses,
        Kind::AttemptNotAllowed,
        Kind::Overlap,
        Kind::SilentMiss,
        Kind::RecordedTwice,
        Kind::NotDue,
        Kind::WrongCount,
        Kind::NoRecord,
        Kind::RecordedAsUnstarted,
        Kind::OtherFiring,
        Kind::NeverStarted,
        Kind::OtherEnd,
        Kind::UnexplainedFailure,
        Kind::UnexplainedLoss,
        Kind::UnaskedCancel,
        Kind::UnaskedRun,
        Kind::UnexplainedSkip,
        Kind::ForgottenRun,
        Kind::StartedWhilePaused,
        Kind::StartedAfterDeletion,
        Kind::Early,
        Kind::TokenWentBack,
        Kind::Torn,
        Kind::UnknownJob,
        Kind::Unsettled,
        Kind::AlertLost,
        Kind::AlertWithoutReason,
        Kind::RecoveryWithoutAlert,
        Kind::AlertDiffers,
    ];

    /// The question that it counts for.
    pub const fn group(self) -> Group {
        match self {
            Kind::StartedTwice | Kind::TwoProcesses | Kind::AttemptNotAllowed => Group::Duplicates,
            Kind::Overlap => Group::Overlaps,
            Kind::SilentMiss => Group::SilentMisses,
            Kind::Unsettled => Group::Unsettled,
            Kind::AlertLost => Group::LostAlerts,
            Kind::AlertWithoutReason | Kind::RecoveryWithoutAlert | Kind::AlertDiffers => Group::GroundlessAlerts,
            Kind::RecordedTwice
            | Kind::NotDue
            | Kind::WrongCount
            | Kind::NoRecord
            | Kind::RecordedAsUnstarted
            | Kind::OtherFiring
            | Kind::NeverStarted
            | Kind::OtherEnd
            | Kind::UnexplainedFailure
            | Kind::UnexplainedLoss
            | Kind::UnaskedCancel
            | Kind::UnaskedRun
            | Kind::UnexplainedSkip
            | Kind::ForgottenRun
            | Kind::StartedWhilePaused
            | Kind::StartedAfterDeletion
            | Kind::Early
            | Kind::TokenWentBack
            | Kind::Torn
            | Kind::UnknownJob => Group::Contradictions,
        }
    }
}

/// One thing that should not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of the finding.
    pub kind: Kind,
    /// Whose job.
    pub job: String,
    /// The observation, with ids and times.
    pub what: String,
}

impl Finding {
    /// A finding.
    pub fn new(kind: Kind, job: &str, what: String) -> Self {
        Self { kind, job: job.to_owned(), what }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.kind, self.job, self.what)
    }
}
