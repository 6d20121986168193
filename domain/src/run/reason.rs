//! Why a due time did not run, or why a run ended as it did.

use std::fmt;

/// The reason why a due time did not run, or why a run ended as it did.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The previous run was still executing.
    Overlap,
    /// No node started it in time.
    Misfire,
    /// The job was paused.
    Paused,
    /// A new definition came before the start.
    Updated,
    /// The job was deleted before the start.
    Deleted,
    /// A newer firing took its place (`overlap = replace`).
    Replaced,
    /// A person cancelled it.
    Cancelled,
    /// The session that ran it ended, and did not record its outcome.
    SessionEnded,
    /// It may have started in commits that the database lost.
    CommitsLost,
    /// The executor's own text.
    Said(String),
}

impl Reason {
    /// The reason of a text that `Display` wrote.
    pub fn from_text(text: &str) -> Self {
        let fixed = [
            Reason::Overlap,
            Reason::Misfire,
            Reason::Paused,
            Reason::Updated,
            Reason::Deleted,
            Reason::Replaced,
            Reason::Cancelled,
            Reason::SessionEnded,
            Reason::CommitsLost,
        ];
        fixed.into_iter().find(|reason| reason.to_string() == text).unwrap_or_else(|| Reason::Said(text.to_owned()))
    }

    /// The part of a derived run id that tells apart the records of one due time. Stored ids contain it, so it never
    /// changes.
    pub(super) const fn kind(&self) -> u8 {
        match self {
            Reason::Overlap => 1,
            Reason::Misfire => 2,
            Reason::Paused => 3,
            Reason::Updated => 4,
            Reason::Deleted => 5,
            Reason::Replaced => 6,
            Reason::Cancelled => 7,
            Reason::SessionEnded => 8,
            Reason::Said(_) => 9,
            Reason::CommitsLost => 10,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Overlap => "overlap",
            Reason::Misfire => "misfire",
            Reason::Paused => "paused",
            Reason::Updated => "updated",
            Reason::Deleted => "deleted",
            Reason::Replaced => "replaced",
            Reason::Cancelled => "cancelled",
            Reason::SessionEnded => "the node's session ended while it ran",
            Reason::CommitsLost => "the database went back in time: nobody knows whether it started",
            Reason::Said(text) => text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_read_back_from_its_text() {
        for reason in
            [Reason::Overlap, Reason::SessionEnded, Reason::CommitsLost, Reason::Said("no such program: foo".into())]
        {
            assert_eq!(Reason::from_text(&reason.to_string()), reason);
        }
    }
}
