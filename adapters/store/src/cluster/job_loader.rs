//! Jobs as people see them, by name. It is the most frequent request, so all callers of the same moment share one statement, without
//! a transaction around it.

use std::sync::Arc;

use crate::batch_loader::BatchLoader;
use crate::cluster::port::{Connection, Database, Pool};
use crate::cluster::shared::StoreState;
use crate::tables::SeenJob;
use crate::{JobKey, StoreError, StoreResult};

/// A job; one that cannot be read is an error of its own.
type Loaded = StoreResult<Option<SeenJob>>;

/// How many statements are in flight at once; other readers need connections too.
const CALLS: usize = 2;
/// How many jobs one statement reads.
const MOST_TOGETHER: usize = 100;

/// Loads jobs by name.
pub(crate) struct JobLoader<D> {
    database: Arc<D>,
    shared: Arc<StoreState>,
    batches: BatchLoader<JobKey, Loaded>,
}

impl<D: Database> JobLoader<D> {
    pub fn new(database: Arc<D>, shared: Arc<StoreState>) -> Self {
        Self { database, shared, batches: BatchLoader::new(CALLS, MOST_TOGETHER) }
    }

    pub async fn job(&self, key: &JobKey) -> Loaded {
        let (database, shared) = (self.database.clone(), self.shared.clone());
        let all = async move |keys: Vec<JobKey>| match load(&*database, &shared, &keys).await {
            Ok(answers) => answers,
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        };
        let ending = || Err(StoreError::Retryable("the server is ending".to_owned()));
        self.batches.ask(key.clone(), all).await.unwrap_or_else(ending)
    }
}

/// A connection that was closed while it was idle costs only another one.
async fn load<D: Database>(database: &D, shared: &StoreState, keys: &[JobKey]) -> StoreResult<Vec<Loaded>> {
    let mut fresh = false;
    loop {
        let mut connection = database.connection(Pool::Readers, fresh).await?;
        let loaded = read(&mut connection, shared, keys, true).await;
        let lost = connection.is_lost();
        if loaded.is_ok() {
            connection.give_back();
        } else {
            connection.give_up().await;
        }
        if !lost || fresh {
            return loaded;
        }
        fresh = true;
    }
}

/// Reads living jobs, and remembers their definitions if these are committed.
pub(crate) async fn read<C: Connection>(
    connection: &mut C,
    shared: &StoreState,
    keys: &[JobKey],
    committed: bool,
) -> StoreResult<Vec<Loaded>> {
    let loaded = connection.jobs_by_name(keys, &|id, generation| shared.definition(id, generation)).await?;
    for job in loaded.iter().filter_map(|job| job.as_ref().ok()?.as_ref()).filter(|_| committed) {
        shared.definitions().put(job.row.state.id, job.row.definition.clone());
    }
    Ok(loaded)
}
