//! The session timing of this node beside that of the other nodes, as their sessions tell it.

use carillon_domain::id::SessionId;
use carillon_domain::lease::{ChosenTiming, OtherNode, Terms, Timing, choose};
use mysql_async::{Row, from_row_opt};

use crate::mysql::client::error::unreadable;
use crate::mysql::topology::Answers;
use crate::{StoreResult, TimingReport};

/// The sessions that may live, with their terms. A node is dead if it has been silent for twice as long as others wait
/// for it. Its session stays until some node ends it. A cluster whose nodes all died must be able to start with another timing.
pub(in crate::mysql) const OTHERS: &str = "SELECT id, node, dead_after_ms, expire_after_ms FROM session WHERE state <> 'ended' \
     AND heartbeat_at > CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 AS SIGNED) \
     - GREATEST(60000, 2 * COALESCE(GREATEST(CAST(dead_after_ms AS SIGNED), CAST(expire_after_ms AS SIGNED)), 0))";

/// A row of [`OTHERS`].
pub(in crate::mysql) fn other_of(row: Row) -> StoreResult<(SessionId, OtherNode)> {
    let (id, node, dead, expire): (u64, String, Option<u64>, Option<u64>) =
        from_row_opt(row).map_err(|error| unreadable(error.to_string()))?;
    Ok((SessionId::from_random(id), OtherNode { node, terms: terms_of(dead, expire) }))
}

/// The session timing of a node that starts, beside the rows of [`OTHERS`] and the limits of the servers.
pub(in crate::mysql) fn beside(
    rows: Vec<Row>,
    answers: &Answers,
    given: Option<Timing>,
) -> Result<TimingReport, String> {
    let read = rows.into_iter().map(other_of).collect::<StoreResult<Vec<_>>>().map_err(|error| error.to_string())?;
    let others: Vec<OtherNode> = read.into_iter().map(|(_, other)| other).collect();
    let chosen = choose(given, answers.engine(), &others)?;
    let misfits = chosen.timing.misfits(answers.engine(), &answers.failover_limits());
    Ok(TimingReport { chosen, misfits })
}

/// The two columns of a session's terms.
pub(in crate::mysql) fn terms_of(dead_ms: Option<u64>, expire_ms: Option<u64>) -> Option<Terms> {
    let ms = std::time::Duration::from_millis;
    dead_ms.zip(expire_ms).map(|(dead, expire)| Terms { dead_after: ms(dead), expire_after: ms(expire) })
}

/// The values of the two columns.
pub(in crate::mysql) fn terms_in_ms(chosen: Option<&ChosenTiming>) -> [Option<u64>; 2] {
    let ms = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX >> 1);
    chosen.map_or([None, None], |chosen| {
        let terms = Terms::from(chosen.timing);
        [Some(ms(terms.dead_after)), Some(ms(terms.expire_after))]
    })
}
