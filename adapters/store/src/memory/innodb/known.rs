//! As `store/mysql/known.rs`: starting what is known, with one statement that commits by itself.

use carillon_domain::firing::JobState;
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::lost_commits::commits_were_lost;
use carillon_domain::node::port::{RunRef, StartAnswer};

use super::super::data::Data;
use super::line::Line;
use super::locks::Row;
use super::server::lock;
use super::{Client, Memory};
use crate::cache::clock_estimate::Estimate;
use crate::cache::row_cache;
use crate::calls::node;
use crate::tables::{JobRow, Tables, Write, WriteSet, at_once};
use crate::{Me, StoreError, StoreResult};

impl Client {
    /// `None` where not all is known, more is to be done than to start, or it is not as it was known to be.
    pub(super) async fn start_known(&self, me: Me, runs: &[RunRef]) -> StoreResult<Option<Vec<StartAnswer>>> {
        let Some((known, writes, answers)) = self.lone_start(me, runs) else { return Ok(None) };
        let mut line = Line::begin(self.server.clone(), self.number, "start").await?;
        let outcome = write_alone(&mut line, me, known, &writes).await;
        let all = outcome.as_ref().is_ok_and(|matched| *matched == runs.len());
        match outcome {
            Ok(_) if all => lock(&self.server).struck.lone_starts += runs.len() as u64,
            Ok(1..) => lock(&self.server).struck.parted_starts += 1,
            Ok(0) | Err(_) => {}
        }
        let mut written = row_cache::Known::default();
        written.wrote(writes);
        written.end(&mut self.memory.held(), all);
        match outcome {
            Ok(0) => {
                line.give_up().await;
                Ok(None)
            }
            Ok(_) => {
                line.give_back();
                Ok(Some(if all { answers } else { vec![StartAnswer::Moved; runs.len()] }))
            }
            Err(error) => {
                let (lost, again) = (line.is_lost(), line.has_conflict());
                line.give_up().await;
                if lost {
                    self.memory.reckoning().forget();
                    return Err(StoreError::Unknown(error.to_string()));
                }
                if again { Ok(None) } else { Err(error) }
            }
        }
    }

    fn lone_start(&self, me: Me, runs: &[RunRef]) -> Option<(Estimate, Vec<Write<JobState>>, Vec<StartAnswer>)> {
        let server = lock(&self.server);
        let mut reckoning = self.memory.reckoning();
        // As if an answer had just come.
        reckoning.hear(server.data.clock.now_us(), server.now_us);
        let known = reckoning.known(me.session, server.now_us)?;
        let rows = runs.iter().map(|at| self.memory.known_row(at, &server.data)).collect::<Option<_>>()?;
        let (writes, answers) = node::optimistic_start(known, me.session, runs, rows)?;
        (!writes.is_empty()).then_some((known, writes, answers))
    }
}

impl Memory {
    /// The job's row that carries the run, as this process wrote it. Where a newer definition is stored it has moved on.
    pub(super) fn known_row(&self, at: &RunRef, data: &Data) -> Option<JobRow> {
        let state = self.held().get(at)?.clone();
        let definition = data.definitions.get(&state.id)?.clone();
        (state.generation == definition.generation).then_some(JobRow { state, definition })
    }
}

/// Answers how many rows matched.
async fn write_alone(line: &mut Line, me: Me, known: Estimate, writes: &[Write<JobState>]) -> StoreResult<usize> {
    line.statement().await?;
    if enabled(Guard::OptimisticStanding) && !line.write(|server, _| holds(&mut server.data, me, known, writes))? {
        return Ok(0);
    }
    let before = || writes.iter().filter_map(|write| write.before.as_ref());
    line.lock(&before().map(|row| Row::State(row.id)).collect::<Vec<_>>()).await?;
    let matched = line.write(|server, trx| {
        let stand = |write: &&Write<JobState>| {
            let before = write.before.as_ref();
            before.is_some_and(|before| server.data.states.get(&before.id).is_some_and(|row| is_known(row, before)))
        };
        let jobs: Vec<Write<JobState>> = writes.iter().filter(stand).cloned().collect();
        let matched = jobs.len();
        if let Some(own) = server.own(trx) {
            own.changes.push(WriteSet { jobs, ..WriteSet::default() });
        }
        matched
    })?;
    if matched > 0 {
        line.commit().await?;
    }
    Ok(matched)
}

/// The row is the one that was known.
fn is_known(row: &JobState, before: &JobState) -> bool {
    let session = |row: &JobState| row.phase.held().map(|held| held.session);
    !enabled(Guard::UpdateVersion) || (row.version == before.version && session(row) == session(before))
}

/// What the statement asks besides.
fn holds(data: &mut Data, me: Me, known: Estimate, writes: &[Write<JobState>]) -> bool {
    let early = data.clock.now() < known.now;
    let Ok(standing) = at_once(data.begin().standing(me.session)) else { return false };
    !early
        && standing.is_in_order()
        && !commits_were_lost(me.acked, standing.session.as_ref().map(|own| own.beat.seq))
        && standing.losses_until == known.losses_until
        && !writes
            .iter()
            .filter_map(|write| write.before.as_ref())
            .any(|row| data.concurrent.keys().any(|key| key.job == row.id))
}
