//! Looking and claiming in the tiny store, partition by partition.

use carillon_domain::firing::{Event, Phase, TransitionKind};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::port::{
    Claimed, FinishRequest, Next, Peek, RowKey, Seen, StartAnswer, UNCLAIMED_PER_PARTITION, Unclaimed,
};
use carillon_domain::partition::partition_of;
use carillon_domain::time::Timestamp;

use super::{Session, Store};
use crate::dice::config;

/// Who looks or claims: a session, and the executors of its node.
#[derive(Debug, Clone, Copy)]
pub struct Claimant<'a> {
    pub session: SessionId,
    /// The highest heartbeat sequence that was acknowledged to it.
    pub acked: u64,
    pub executors: &'a [&'a str],
}

impl Store {
    /// Every row that may be claimed until then, those that come up first in front.
    pub fn claimable(&self, until: Timestamp) -> Vec<Unclaimed> {
        let mut found = Vec::new();
        for (row, _, version) in self.rows() {
            let (job, claim_at) = match &row {
                RowKey::Job(id) => (*id, self.jobs[id].state.as_ref().and_then(|state| state.claim_at())),
                RowKey::Concurrent(key) => (key.job, self.concurrent[key].claim_at()),
            };
            let Some(claim_at) = claim_at.filter(|at| *at <= until) else { continue };
            let (partition, executor) = (self.partition(job), self.jobs[&job].job.executor.clone());
            found.push(Unclaimed { partition, claim_at, row, version, executor });
        }
        found.sort_by_key(|row| (row.claim_at, row.row));
        found
    }

    fn partition(&self, job: JobId) -> u16 {
        let job = &self.jobs[&job].job;
        partition_of(&job.namespace, &job.name, config().partitions)
    }

    pub fn peek(&self, who: Claimant<'_>, mine: &[u16], until: Timestamp) -> Peek {
        let mut unclaimed = self.claimable(until);
        unclaimed.retain(|row| who.executors.contains(&row.executor.as_str()));
        let own = |row: &&Unclaimed| mine.contains(&row.partition);
        let earliest_claim_at = unclaimed.iter().find(own).map(|row| row.claim_at);
        unclaimed.sort_by_key(|row| row.partition);
        let others = unclaimed.chunk_by(|one, next| one.partition == next.partition);
        let others = others.filter(|rows| !mine.contains(&rows[0].partition));
        let unclaimed = others.flat_map(|rows| rows.iter().take(UNCLAIMED_PER_PARTITION)).cloned().collect();
        let cancels = self.cancels(who.session);
        let claims = |(id, row): (&SessionId, &Session)| (!row.draining && !row.ended).then_some(*id);
        let claimants = self.sessions.iter().filter_map(claims).collect();
        Peek { earliest_claim_at, unclaimed, claimants, cancels, ..Peek::default() }
    }

    fn cancels(&self, session: SessionId) -> Vec<RunId> {
        let mine = |phase: &Phase| phase.held().filter(|held| held.session == session).map(|held| held.run);
        let jobs = self.jobs.values().filter_map(|one| one.state.as_ref()).filter(|row| row.cancel.is_some());
        let beside = self.concurrent.values().filter(|row| row.cancel.is_some());
        jobs.filter_map(|row| mine(&row.phase)).chain(beside.filter_map(|row| mine(&row.phase))).collect()
    }

    pub fn claim(
        &mut self,
        who: Claimant<'_>,
        partitions: &[u16],
        until: Timestamp,
        (ids, mut places): (&[RunId], usize),
        only: Option<&str>,
    ) -> Vec<Claimed> {
        if self.withholds((who.session, who.acked)) || !self.lives(who.session) {
            return Vec::new();
        }
        let mut ids = ids.iter().copied();
        let mut claimed = Vec::new();
        for row in self.claimable(until) {
            let executor = row.executor.as_str();
            let here = partitions.contains(&row.partition) && who.executors.contains(&executor);
            if !here || only.is_some_and(|only| only != executor) {
                continue;
            }
            let Some(run) = ids.clone().next() else { break };
            let losses_until = self.losses_until;
            let event = Event::Claim { session: who.session, run, until, losses_until };
            if self.apply(&row.row, &event) == Ok(TransitionKind::Claimed) {
                self.stolen += u64::from(only.is_some());
                let Some(mut one) = self.claimed(&row.row) else { continue };
                if one.at.run == run {
                    ids.next();
                    if places > 0 {
                        one = self.start_along(who.session, one);
                        places -= usize::from(one.held.started_at.is_some());
                    }
                }
                claimed.push(one);
            }
        }
        claimed
    }

    /// What a finish claims of the row in which its run has just ended, or has claimed before.
    pub fn claim_next(&mut self, who: Claimant<'_>, request: &FinishRequest, ended: Option<RowKey>) -> Option<Claimed> {
        let Next { run, until, has_place } = request.next?;
        let session = who.session;
        let withheld = self.withholds((session, who.acked));
        let Some(row) = ended else {
            let (row, ..) = self.carrier(session, run)?;
            let before = self.claimed(&row)?;
            if before.held.started_at.is_none() {
                return Some(before);
            }
            return match self.settle(session, &[before.at]).remove(0) {
                Seen::Executing { at, held, replace_at, withdrawn: false } => {
                    Some(Claimed { at, held, replace_at, ..before })
                }
                _ => None,
            };
        };
        let RowKey::Job(id) = row else { return None };
        let offered = who.executors.contains(&self.jobs[&id].job.executor.as_str());
        if withheld || !self.lives(session) || !offered {
            return None;
        }
        let event = Event::Claim { session, run, until, losses_until: self.losses_until };
        let claimed = self.apply(&row, &event) == Ok(TransitionKind::Claimed);
        self.onward += u64::from(claimed);
        let one = self.claimed(&row).filter(|_| claimed)?;
        Some(if has_place && one.at.run == run { self.start_along(session, one) } else { one })
    }

    /// Starts what was claimed just now where that goes at once.
    fn start_along(&mut self, session: SessionId, claimed: Claimed) -> Claimed {
        let due = claimed.held.firing.start_at <= self.now && matches!(claimed.at.row, RowKey::Job(_));
        if !due || self.must_wait(&claimed.at.row) {
            return claimed;
        }
        match self.start_one(session, &claimed.at) {
            StartAnswer::Started { at, held, replace_at } => {
                self.along += 1;
                Claimed { at, held, replace_at, ..claimed }
            }
            _ => claimed,
        }
    }
}
