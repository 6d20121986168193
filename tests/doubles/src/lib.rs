//! Stand-ins for tests: databases, as ordered maps in memory with faults on demand ([`MemoryStore`]) and as a model of InnoDB
//! ([`innodb`]), and [`certificates`].

mod alerts;
mod audit;
mod backup;
pub mod certificates;
mod data;
mod faults;
pub mod innodb;
mod journal;
mod live;
mod local;
mod reports;
mod sign_in;
mod tables;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carillon_domain::time::Timestamp;

pub use self::audit::author;
pub use self::backup::Backup;
use self::data::Data;
pub use self::faults::{Fault, Faults};
pub use self::tables::Transaction;
use carillon_store::Clock;
use carillon_store::local::LocalStore;
use carillon_store::local::port::LocalDatabase;
use carillon_store::tables::Tables;
use carillon_store::{StoreError, StoreResult};

type Stray = Box<dyn FnOnce(&mut Data) + Send>;

/// Jobs, runs and sessions in memory. Clones share them.
pub type MemoryStore = LocalStore<MemoryDatabase>;

/// A store in memory that reads the time from `clock`.
pub fn memory_store(clock: Arc<dyn Clock>, partitions: u16) -> MemoryStore {
    MemoryStore::on(MemoryDatabase {
        data: Arc::new(Mutex::new(Data::new(clock, partitions))),
        faults: Faults::default(),
        strays: Arc::default(),
    })
}

/// Maps in memory.
#[derive(Clone)]
pub struct MemoryDatabase {
    data: Arc<Mutex<Data>>,
    faults: Faults,
    strays: Arc<Mutex<Vec<Stray>>>,
}

impl MemoryDatabase {
    /// The faults to come.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Applies the oldest transaction that was answered [`StoreError::Unknown`] and is still under way; `false` when there
    /// is none. Its guards are asked now, at the time that it is now.
    pub fn land_stray(&self) -> bool {
        let mut strays = lock(&self.strays);
        if strays.is_empty() {
            return false;
        }
        let stray = strays.remove(0);
        drop(strays);
        stray(&mut lock(&self.data));
        true
    }

    /// Everything that is stored, as it is now.
    pub fn back_up(&self) -> Backup {
        Backup::of(&lock(&self.data))
    }

    /// Goes back to what was stored then, in this store or in another one; the time goes on.
    pub fn restore(&self, backup: &Backup) {
        backup.overwrite(&mut lock(&self.data));
    }

    /// How often a second record for one (job, due time, trigger, attempt) was refused; 0 unless a rule is broken.
    pub fn record_conflicts(&self) -> usize {
        lock(&self.data).record_conflicts
    }
}

impl LocalDatabase for MemoryDatabase {
    type Transaction<'a> = Transaction<'a>;

    async fn now(&self) -> StoreResult<Timestamp> {
        self.write("now", |tables| Ok(tables.now())).await
    }

    /// One transaction, with the fault that is due. A stray one runs after its caller has gone.
    async fn write<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        call: &'static str,
        run: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let said = |fate: &str| format!("{call}: {fate}");
        match self.faults.next(call) {
            None => run(&mut lock(&self.data).begin()),
            Some(Fault::Refused) => Err(StoreError::Retryable(said("refused")).into()),
            Some(Fault::NeverSent) => Err(StoreError::Unknown(said("lost before it was applied")).into()),
            Some(Fault::AnswerLost) => {
                run(&mut lock(&self.data).begin())?;
                Err(StoreError::Unknown(said("answer lost")).into())
            }
            Some(Fault::Stray) => {
                let stray = move |data: &mut Data| {
                    // Nobody waits for its answer.
                    let _unheard = run(&mut data.begin());
                };
                lock(&self.strays).push(Box::new(stray));
                Err(StoreError::Unknown(said("still under way")).into())
            }
        }
    }

    async fn read<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        call: &'static str,
        run: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.write(call, run).await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
