//! A database that lost commits: noticed by those whom it had acknowledged more than it knows, recorded, accepted.

use std::time::Duration;

use carillon_domain::guard::{Guard, enabled};
use carillon_domain::lost_commits::{LossWindow, commits_were_lost};

use crate::tables::{Standing, Tables};
use crate::{Me, RecordedLoss, StoreError};

/// How long an accepted window is shown.
const SHOWN: Duration = Duration::from_secs(24 * 60 * 60);

/// Records that commits were lost, if this session can tell; answers the window that is open then.
pub(super) async fn notice<T: Tables>(
    tables: &mut T,
    me: Me,
    standing: &Standing,
) -> Result<Option<LossWindow>, StoreError> {
    let known = match &standing.session {
        Some(own) => Some(own.beat.seq),
        None if me.acked == 0 => None,
        None if !enabled(Guard::EndedSequenceKept) => None,
        None => tables.spent_seq(me.session).await?,
    };
    if !commits_were_lost(me.acked, known) {
        return Ok(None);
    }
    let now = tables.now();
    let last_known = match &standing.session {
        Some(own) => Some(own.heartbeat_at),
        None => {
            let heard = tables.sessions(false).await?.iter().map(|session| session.heartbeat_at).max();
            heard.max(tables.last_spent_at().await?)
        }
    };
    let found = LossWindow { from_at: last_known.unwrap_or(now).min(now), until_at: now, noticed_at: now };
    let node = standing.session.as_ref().map(|own| own.node.clone());
    tables.note_window(&RecordedLoss { window: found, session: me.session, node, accepted_at: None }).await?;
    Ok(Some(standing.open.map_or(found, |open| open.with(found))))
}

pub(crate) async fn windows<T: Tables>(tables: &mut T) -> Result<Vec<RecordedLoss>, StoreError> {
    tables.windows(tables.now() - SHOWN).await
}

/// Answers what was open.
pub(crate) async fn accept<T: Tables>(tables: &mut T) -> Result<Vec<RecordedLoss>, StoreError> {
    let now = tables.now();
    let mut open = windows(tables).await?;
    open.retain(|window| window.accepted_at.is_none());
    for window in &mut open {
        window.accepted_at = Some(now);
    }
    tables.accept_windows().await?;
    Ok(open)
}
