//! One look of a feed.

use std::time::Duration;

use super::runs;
use crate::feed::{Entry, FeedLook, FeedRequest, Journal, Numbered, PerJournal, Present};
use crate::tables::Tables;
use crate::{SessionView, StoreError};

/// The present state is read first. A run that ends between two statements is then found in the journal too, and never told as started
/// after its end.
pub(crate) async fn look<T: Tables>(
    tables: &mut T,
    request: &FeedRequest,
    commits_within: Duration,
) -> Result<FeedLook, StoreError> {
    let present = if request.present { Some(present(tables).await?) } else { None };
    let mut journals: PerJournal<Numbered<Entry>> = Default::default();
    for journal in Journal::ALL {
        let ask = &request.journals[journal.place()];
        journals[journal.place()] = match journal {
            Journal::Runs => tables.runs_numbered(ask).await?.map(|row| Entry::Run(runs::of_record(row))),
            Journal::Audit => tables.audit_numbered(ask).await?.map(Entry::Audit),
        };
    }
    Ok(FeedLook { now: tables.now(), commits_within, journals, present })
}

async fn present<T: Tables>(tables: &mut T) -> Result<Present, StoreError> {
    let sessions: Vec<SessionView> = tables.sessions(false).await?;
    let running = runs::executing(tables, &sessions).await?;
    Ok(Present { running, sessions })
}
