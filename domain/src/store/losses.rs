//! Lost commits: a call notices them when the database had acknowledged more to its session than it knows.

use std::fmt;
use std::time::Duration;

use super::{
    Action, AuditDocument, AuditEntry, Author, Decided, Need, RecordedLoss, Refusal, Rows, SessionState, Standing,
    WriteSet, WritingSession,
};
use crate::guard::{Guard, enabled};
use crate::lost_commits::{LossWindow, commits_were_lost};
use crate::node::call::Me;
use crate::time::Timestamp;

/// The loss to record, if the session can tell that commits were lost.
pub(super) fn notice(me: Me, standing: &Standing, rows: &Rows) -> Result<Option<RecordedLoss>, Need> {
    let known = match &standing.session {
        Some(own) => Some(own.beat.seq),
        None if me.acked == 0 || !enabled(Guard::EndedSequenceKept) => None,
        None => rows.spent_seq.ok_or(Need::SpentSeq(me.session))?,
    };
    if !commits_were_lost(me.acked, known) {
        return Ok(None);
    }
    let last_known = match &standing.session {
        Some(own) => Some(own.heartbeat_at),
        None => rows.last_heard.ok_or(Need::LastHeard)?,
    };
    let window =
        LossWindow { from_at: last_known.unwrap_or(rows.now).min(rows.now), until_at: rows.now, noticed_at: rows.now };
    let node = standing.session.as_ref().map(|own| own.node.clone());
    Ok(Some(RecordedLoss { window, session: me.session, node, accepted_at: None }))
}

/// The open window once `loss` is recorded.
pub(super) fn open_window(loss: &RecordedLoss, standing: &Standing) -> LossWindow {
    standing.open.map_or(loss.window, |open| open.with(loss.window))
}

/// Why a loss cannot be accepted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StillUnknown {
    /// The nodes that have not written their runs back, in order.
    pub nodes: Vec<String>,
    /// A node that is silent does not count from then on, and those that the database has forgotten have ended.
    pub until: Timestamp,
}

impl fmt::Display for StillUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, until } = self;
        if nodes.is_empty() {
            return write!(
                f,
                "a node that the database has forgotten may run jobs until {until}; accept the loss then"
            );
        }
        write!(
            f,
            "these nodes have not yet written back what they run: {}; try again in a few seconds. A node that is dead does not \
             count from {until} on",
            nodes.join(", ")
        )
    }
}

/// Whether all live sessions have written back what they know for this window. `patience` is the time after which a session without a
/// heartbeat is dead, and with it one that the database has forgotten. Zero where only one process uses the database.
pub fn still_unknown(
    window: &LossWindow,
    sessions: &[WritingSession],
    patience: Duration,
    now: Timestamp,
) -> Option<StillUnknown> {
    // A heartbeat from before the loss tells nothing: it may have come back.
    let dead_at = |session: &WritingSession| session.heartbeat_at.max(window.until_at) + patience;
    let owes = |session: &&WritingSession| {
        let has_not = session.wrote_back.is_some_and(|until| until < window.until_at);
        has_not && session.state != SessionState::Ended && now < dead_at(session)
    };
    let owing: Vec<&WritingSession> = sessions.iter().filter(owes).collect();
    let forgotten_until = window.until_at + patience;
    let until = owing.iter().map(|session| dead_at(session)).fold(forgotten_until, Timestamp::max);
    let mut nodes: Vec<String> = owing.into_iter().map(|session| session.node.clone()).collect();
    nodes.sort_unstable();
    (now < until).then_some(StillUnknown { nodes, until })
}

/// The windows that an acceptance at `now` closes, as they stand afterwards, and its entry in the audit log.
///
/// # Errors
/// [`Refusal::StillUnknown`] as long as runs may live of which the database does not know.
pub fn accept(
    windows: Vec<RecordedLoss>,
    sessions: &[WritingSession],
    patience: Duration,
    author: &Author,
    now: Timestamp,
) -> Result<Decided<Vec<RecordedLoss>>, Refusal> {
    let open: Vec<_> = windows.into_iter().filter(|loss| loss.is_open()).collect();
    if open.is_empty() {
        return Ok(Decided::answer(open));
    }
    let unknown = || open.iter().find_map(|loss| still_unknown(&loss.window, sessions, patience, now));
    if let Some(unknown) = unknown().filter(|_| enabled(Guard::AcceptAfterWriteBack)) {
        return Err(Refusal::StillUnknown(unknown));
    }
    let accepted = |loss: &RecordedLoss| RecordedLoss { accepted_at: Some(now), ..loss.clone() };
    let accepted: Vec<_> = open.iter().map(accepted).collect();
    let entry = AuditEntry {
        at: now,
        author: author.clone(),
        action: Action::LossesAccepted,
        job: None,
        generation: None,
        run: None,
        before: Some(AuditDocument::LossWindows(open)),
        after: Some(AuditDocument::LossWindows(accepted.clone())),
    };
    Ok(Decided { write: WriteSet { audit: vec![entry], ..WriteSet::default() }, answer: accepted })
}
