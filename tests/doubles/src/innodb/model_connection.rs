//! A client's connection: statements on their way, waits for locks, and what is believed when no answer comes.
//!
//! The errors, what they say about the connection and what is tried again are those of `store/mysql/error.rs`.

use std::future::{Future, poll_fn};
use std::task::Poll;

use super::fault_plan::{CommitFate, StatementFate};
use super::locks::{Grant, Row, TrxId};
use super::server::{Server, Shared, Standing, lock};
use crate::data::Data;
use carillon_store::{StoreError, StoreResult};

/// A connection with a transaction on it.
/// See [`super::InnoDbDatabase`].
pub struct ModelConnection {
    pub(super) server: Shared,
    client: u64,
    trx: Option<TrxId>,
    pub(super) lost: bool,
    pub(super) conflict: bool,
}

/// Waits until the server's clock shows `at_us`.
pub(super) async fn until(server: &Shared, at_us: u64) {
    let mut asked = false;
    poll_fn(|context| {
        let mut server = lock(server);
        if server.now_us >= at_us {
            return Poll::Ready(());
        }
        if !std::mem::replace(&mut asked, true) {
            server.wake_at(at_us, context.waker().clone());
        }
        Poll::Pending
    })
    .await;
}

/// The way to the server, which may be frozen when the statement gets there.
pub(super) async fn travel(server: &Shared, client: u64) {
    let mut at_us = {
        let mut server = lock(server);
        server.now_us + server.fault_plan.latency_us(client)
    };
    loop {
        until(server, at_us).await;
        let frozen_until_us = lock(server).frozen_until_us;
        if frozen_until_us <= at_us {
            return;
        }
        at_us = frozen_until_us;
    }
}

impl ModelConnection {
    /// Begins a transaction for the call `by`; nothing has been sent yet.
    pub(super) fn begin(server: Shared, client: u64, by: &'static str) -> Self {
        let trx = Some(lock(&server).begin(by));
        Self { server, client, trx, lost: false, conflict: false }
    }

    /// 1062: somebody else has taken it since it was looked for.
    pub(super) fn duplicate(&mut self) -> StoreError {
        self.conflict = true;
        StoreError::Permanent("1062: it is there already".to_owned())
    }

    fn timed_out() -> StoreError {
        StoreError::Retryable("1205: the lock was not granted in time".to_owned())
    }

    fn rolled_back(&mut self) -> StoreError {
        self.conflict = true;
        StoreError::Retryable("1213: rolled back".to_owned())
    }

    fn broken(&mut self) -> StoreError {
        self.lost = true;
        StoreError::Retryable("the connection is gone".to_owned())
    }

    fn open(&self) -> Option<TrxId> {
        self.trx.filter(|_| !self.lost)
    }

    /// The outcome of a statement, from the standing of its transaction.
    fn outcome(&mut self, standing: Standing) -> StoreResult<()> {
        match standing {
            Standing::Open => Ok(()),
            Standing::TimedOut => {
                if let Some(trx) = self.trx {
                    lock(&self.server).forgive(trx);
                }
                Err(Self::timed_out())
            }
            Standing::Deadlocked => Err(self.rolled_back()),
            Standing::Committed | Standing::Gone => Err(self.broken()),
        }
    }

    /// A statement reaches the server.
    pub(super) async fn statement(&mut self) -> StoreResult<()> {
        let Some(trx) = self.open() else { return Err(self.broken()) };
        let fate = lock(&self.server).fault_plan.statement(self.client);
        travel(&self.server, self.client).await;
        match fate {
            StatementFate::Arrives => {
                let standing = lock(&self.server).touch(trx);
                self.outcome(standing)
            }
            StatementFate::TimesOut => Err(Self::timed_out()),
            StatementFate::RolledBack => {
                lock(&self.server).roll_back(trx, Standing::Deadlocked);
                Err(self.rolled_back())
            }
            StatementFate::Lost { noticed_after_us } => {
                self.leave(Some(noticed_after_us));
                Err(self.broken())
            }
        }
    }

    /// A statement that reads.
    pub(crate) async fn read<T>(&mut self, read: impl FnOnce(&mut Data) -> T) -> StoreResult<T> {
        self.statement().await?;
        let trx = self.trx.unwrap_or(TrxId(0));
        Ok(lock(&self.server).read(trx, read))
    }

    /// Takes the locks of a statement, one after the other.
    pub(super) async fn lock(&mut self, rows: &[Row]) -> StoreResult<()> {
        let Some(trx) = self.open() else { return Err(self.broken()) };
        let (mut next, mut asked) = (0, false);
        let server = self.server.clone();
        let standing = poll_fn(|context| {
            let mut server = lock(&server);
            while let Some(row) = rows.get(next) {
                if server.standing(trx) != Standing::Open {
                    return Poll::Ready(server.standing(trx));
                }
                if asked && server.waits(trx) {
                    server.listen(trx, context.waker());
                    return Poll::Pending;
                }
                if !asked && server.ask(trx, row, context.waker()) == Grant::Waits {
                    asked = true;
                    continue;
                }
                (next, asked) = (next + 1, false);
            }
            Poll::Ready(server.touch(trx))
        })
        .await;
        self.outcome(standing)
    }

    /// Writes what the transaction's locks allow; the server answers something about it.
    pub(super) fn write<T>(&mut self, write: impl FnOnce(&mut Server, TrxId) -> T) -> StoreResult<T> {
        let Some(trx) = self.open() else { return Err(self.broken()) };
        Ok(write(&mut lock(&self.server), trx))
    }

    /// Sends the COMMIT. Only an acknowledged one is believed.
    pub(super) async fn send_commit(&mut self) -> StoreResult<()> {
        let Some(trx) = self.open() else { return Err(self.broken()) };
        let unknown = || StoreError::Unknown("no answer to the COMMIT".to_owned());
        let fate = lock(&self.server).fault_plan.commit(self.client);
        travel(&self.server, self.client).await;
        match fate {
            CommitFate::Arrives => {
                let committed = lock(&self.server).commit(trx);
                self.acknowledged(committed)
            }
            CommitFate::RolledBack => {
                lock(&self.server).roll_back(trx, Standing::Deadlocked);
                Err(self.rolled_back())
            }
            CommitFate::LostBefore { noticed_after_us } => {
                self.leave(Some(noticed_after_us));
                Err(unknown())
            }
            CommitFate::LostAfter => {
                lock(&self.server).commit(trx);
                self.leave(None);
                Err(unknown())
            }
            CommitFate::Late { after_us } => {
                let committed = self.committed_late(trx, after_us).await;
                self.acknowledged(committed)
            }
        }
    }

    fn acknowledged(&mut self, committed: bool) -> StoreResult<()> {
        if committed {
            return Ok(());
        }
        // It was killed or thrown out before: the driver's error at a COMMIT tells nothing.
        self.lost = true;
        Err(StoreError::Unknown("the connection is gone".to_owned()))
    }

    fn committed_late(&self, trx: TrxId, after_us: u64) -> impl Future<Output = bool> + use<> {
        let server = self.server.clone();
        let mut sent = false;
        poll_fn(move |context| {
            let mut server = lock(&server);
            if !std::mem::replace(&mut sent, true) {
                let at_us = server.now_us + after_us;
                server.touch(trx);
                server.commit_at(trx, at_us);
            }
            match server.standing(trx) {
                Standing::Committed => Poll::Ready(true),
                Standing::Open => {
                    server.listen(trx, context.waker());
                    Poll::Pending
                }
                Standing::TimedOut | Standing::Deadlocked | Standing::Gone => Poll::Ready(false),
            }
        })
    }

    /// The connection is not used again; the server learns of that so much later, if it does.
    fn leave(&mut self, noticed_after_us: Option<u64>) {
        self.lost = true;
        if let Some(trx) = self.trx.take() {
            let mut server = lock(&self.server);
            let at_us = noticed_after_us.map(|after_us| server.now_us + after_us);
            server.abandon(trx, at_us);
        }
    }

    /// Rolls back, or ends the connection where it is in doubt.
    pub(super) async fn roll_back(mut self) {
        let Some(trx) = self.open() else { return };
        travel(&self.server, self.client).await;
        let mut server = lock(&self.server);
        server.roll_back(trx, Standing::Gone);
        server.forget(trx);
        drop(server);
        self.trx = None;
    }

    /// Rolls back on the server, where nobody has to ask for it.
    pub(super) fn release_locks(&mut self) {
        if let Some(trx) = self.trx {
            lock(&self.server).roll_back(trx, Standing::Gone);
        }
    }

    /// Nothing is open on it any more.
    pub(super) fn forget(mut self) {
        if let Some(trx) = self.trx.take() {
            lock(&self.server).forget(trx);
        }
    }
}

impl Drop for ModelConnection {
    /// The caller went away in the middle, or the connection is in doubt: it is killed, if that gets through.
    fn drop(&mut self) {
        if self.trx.is_some() {
            let killed_after_us = lock(&self.server).fault_plan.kill(self.client);
            self.leave(killed_after_us);
        }
    }
}
