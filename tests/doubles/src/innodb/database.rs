//! The model as a database of the cluster's protocol: one process's way to the server.

use std::future::Future;
use std::time::Duration;

use carillon_domain::id::SessionId;

use super::locks::Row;
use super::model_connection::ModelConnection;
use super::server::{Limits, Shared, lock};
use crate::data::Data;
use carillon_store::StoreResult;
use carillon_store::cluster::port::{
    ClockAnswer, ConcurrentRuns, Connection, Database, NotBegun, Opened, Opening, Pool,
};
use carillon_store::feed::commits_within;
use carillon_store::tables::{Standing, Tables, at_once};

/// As MySQL lists the jobs with concurrent runs.
const LISTED: usize = 32;

/// One process's way to the server. Faults are planned by its number.
pub struct InnoDbDatabase {
    pub(super) server: Shared,
    pub(super) number: u64,
}

impl Database for InnoDbDatabase {
    type Connection = ModelConnection;

    /// A transaction that reads sees the newest commits at each statement. That is weaker than a snapshot, so harder to live with.
    async fn begin(
        &self,
        _pool: Pool,
        call: &'static str,
        opening: &Opening<'_>,
    ) -> Result<(ModelConnection, Opened), NotBegun> {
        let mut connection = ModelConnection::begin(self.server.clone(), self.number, call);
        let opened = match opening {
            Opening::Snapshot => connection.statement().await.map(|()| Opened::Snapshot),
            Opening::Clock(session) => connection.clock(*session).await.map(Opened::Clock),
            Opening::LockRows(ids) => connection.lock_rows(ids).await.map(Opened::LockRows),
        };
        match opened {
            Ok(opened) => Ok((connection, opened)),
            Err(error) => {
                let conflict = connection.has_conflict();
                connection.give_up().await;
                Err(NotBegun { error, conflict })
            }
        }
    }

    async fn connection(&self, _pool: Pool, _fresh: bool) -> StoreResult<ModelConnection> {
        Ok(ModelConnection::begin(self.server.clone(), self.number, "start"))
    }

    fn forget_idle(&self, _pool: Pool) {}

    fn commits_within(&self) -> Duration {
        let Limits { lock_wait, holder } = Limits::default();
        commits_within(lock_wait, holder)
    }

    fn boot_us(&self) -> u64 {
        lock(&self.server).now_us
    }

    async fn in_time<T: Send>(&self, wait: impl Future<Output = T> + Send) -> Option<T> {
        Some(wait.await)
    }
}

fn concurrent_runs(data: &Data) -> ConcurrentRuns {
    let jobs: std::collections::BTreeSet<_> = data.concurrent.keys().map(|key| key.job).collect();
    let claimable = data.concurrent.values().any(|row| row.claim_at().is_some());
    ConcurrentRuns { jobs: (jobs.len() <= LISTED).then_some(jobs), claimable }
}

pub(super) fn standing(data: &mut Data, session: SessionId) -> StoreResult<Standing> {
    at_once(data.begin().standing(session))
}

impl Connection for ModelConnection {
    fn is_lost(&self) -> bool {
        self.lost
    }

    fn has_conflict(&self) -> bool {
        self.conflict
    }

    fn note_conflict(&mut self) {
        self.conflict = true;
    }

    async fn clock(&mut self, session: Option<SessionId>) -> StoreResult<ClockAnswer> {
        let (now, answer) = self
            .read(|data| {
                let standing = session.map(|session| standing(data, session).map(|it| (it, concurrent_runs(data))));
                (data.clock.now(), standing.transpose().map(|standing| (data.clock.now_us(), standing)))
            })
            .await?;
        self.write(|server, trx| server.own(trx).map(|own| own.now = now))?;
        let (now_us, standing) = answer?;
        Ok(ClockAnswer { now_us, standing })
    }

    async fn lock_rows(&mut self, ids: &[u32]) -> StoreResult<u64> {
        let rows: Vec<Row> = ids.iter().map(|id| Row::Lock(*id)).collect();
        self.statement().await?;
        self.lock(&rows).await?;
        self.write(|server, trx| server.own(trx).map(|own| own.epochs.extend(ids)))?;
        Ok(ids.len() as u64)
    }

    async fn lock_row_ids(&mut self) -> StoreResult<Vec<u32>> {
        self.read(|data| (0..=u32::from(data.partitions)).collect()).await
    }

    async fn commit(&mut self) -> StoreResult<()> {
        self.send_commit().await
    }

    async fn give_up(self) {
        self.roll_back().await;
    }

    fn give_back(self) {
        self.forget();
    }
}
