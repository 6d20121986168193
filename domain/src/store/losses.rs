//! Lost commits: a call notices them when the database had acknowledged more to its session than it knows.

use super::{Action, AuditDocument, AuditEntry, Author, Decided, Need, RecordedLoss, Rows, Standing, WriteSet};
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

/// The windows that an acceptance at `now` closes, as they stand afterwards, and its entry in the audit log.
pub fn accept(windows: Vec<RecordedLoss>, author: &Author, now: Timestamp) -> Decided<Vec<RecordedLoss>> {
    let open: Vec<_> = windows.into_iter().filter(|loss| loss.accepted_at.is_none()).collect();
    if open.is_empty() {
        return Decided::answer(open);
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
    Decided { write: WriteSet { audit: vec![entry], ..WriteSet::default() }, answer: accepted }
}
