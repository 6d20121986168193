//! Puts of single jobs that wait at the same time are one transaction, and nobody is refused for another one's sake.

use std::sync::Arc;

use carillon_store::batch_loader::BatchLoader;
use carillon_store::{ControlError, PutJob, Saved, Store, StoreError};
use futures_util::future::join_all;

/// How many transactions are on their way at once: a row that somebody has locked holds up one of them.
const LANES: usize = 2;
/// How many puts go together at the most.
const MOST_TOGETHER: usize = 256;

type PutResult = Result<Saved, ControlError>;

/// Where puts wait for each other.
pub(in crate::http) struct Puts {
    store: Arc<dyn Store>,
    gatherer: BatchLoader<PutJob, PutResult>,
}

impl Puts {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, gatherer: BatchLoader::new(LANES, MOST_TOGETHER) }
    }

    /// Stores a job.
    pub async fn put(&self, put: PutJob) -> PutResult {
        let store = self.store.clone();
        let answer = self.gatherer.ask(put, move |puts| put_all(store, puts)).await;
        answer.unwrap_or_else(|| Err(StoreError::Unknown("the server is ending".to_owned()).into()))
    }
}

async fn put_all(store: Arc<dyn Store>, puts: Vec<PutJob>) -> Vec<PutResult> {
    match store.put_jobs(&puts).await {
        Ok(answers) => answers,
        Err(error) if puts.len() == 1 || matches!(error, StoreError::Unknown(_)) => {
            puts.iter().map(|_| Err(error.clone().into())).collect()
        }
        // Nothing was applied, and one of them may be why.
        Err(_) => join_all(puts.iter().map(|put| put_alone(&store, put))).await,
    }
}

async fn put_alone(store: &Arc<dyn Store>, put: &PutJob) -> PutResult {
    let answer = store.put_jobs(std::slice::from_ref(put)).await?.pop();
    answer.unwrap_or_else(|| Err(StoreError::Permanent("a put has no answer".to_owned()).into()))
}

#[cfg(test)]
mod tests {
    use carillon_domain::store::Refusal;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use carillon_domain::job::Job;
    use carillon_domain::time::Timestamp;
    use carillon_doubles::{Fault, MemoryStore, author, memory_store};
    use carillon_store::{ControlStore, JobKey, ManualClock, PutIf};
    use futures_util::FutureExt;

    use super::*;

    /// Calls of the store are counted; the first one fails so.
    fn store(fault: Option<Fault>) -> (MemoryStore, Arc<AtomicUsize>) {
        let store = memory_store(Arc::new(ManualClock::at(Timestamp::from_ms(0))), 4);
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        store.faults().choose(move |method| {
            let first = method == "put_jobs" && counted.fetch_add(1, Ordering::SeqCst) == 0;
            fault.filter(|_| first)
        });
        (store, calls)
    }

    fn put(name: &str, schedule: &str) -> PutJob {
        let job = Job::new(("default", name), schedule, "{}");
        PutJob { job, paused: None, when: PutIf::Absent, author: author() }
    }

    async fn all(store: &MemoryStore, puts: Vec<PutJob>) -> Vec<PutResult> {
        let waiting = Puts::new(Arc::new(store.clone()));
        join_all(puts.into_iter().map(|put| waiting.put(put))).await
    }

    fn fifty() -> Vec<PutJob> {
        (0..50).map(|n| put(&format!("j{n}"), "@daily")).collect()
    }

    async fn stored(store: &MemoryStore, name: &str) -> bool {
        store.job(&JobKey { namespace: "default".into(), name: name.into() }).await.is_ok()
    }

    #[tokio::test]
    async fn what_waits_together_is_one_transaction() {
        let (store, calls) = store(None);
        let answers = all(&store, fifty()).await;
        for (n, answer) in answers.into_iter().enumerate() {
            assert_eq!(answer.unwrap().view.job.name, format!("j{n}"), "everyone gets his own");
        }
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn so_many_go_together_and_no_more() {
        let (store, calls) = store(None);
        let puts = (0..2 * MOST_TOGETHER + 1).map(|n| put(&format!("j{n}"), "@daily")).collect();
        assert!(all(&store, puts).await.iter().all(Result::is_ok));
        assert_eq!(calls.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn one_that_is_refused_refuses_no_other() {
        let (store, _) = store(None);
        let puts = vec![put("a", "@daily"), put("b", "no schedule"), put("a", "@daily"), put("c", "@daily")];
        let answers = all(&store, puts).await;
        let told: Vec<_> = answers.iter().map(Result::is_ok).collect();
        assert_eq!(told, [true, false, false, true], "{answers:?}");
        assert!(matches!(answers[2], Err(ControlError::Refused(Refusal::NameTaken(_)))));
    }

    #[tokio::test]
    async fn after_a_failure_each_is_tried_alone() {
        let (store, calls) = store(Some(Fault::Refused));
        assert!(all(&store, fifty()).await.iter().all(Result::is_ok));
        assert_eq!(calls.load(Ordering::SeqCst), 51);
    }

    #[tokio::test]
    async fn an_unknown_outcome_is_told_to_all_and_tried_by_none() {
        let (store, calls) = store(Some(Fault::AnswerLost));
        let unknown = |answer: &PutResult| matches!(answer, Err(ControlError::Store(StoreError::Unknown(_))));
        assert!(all(&store, fifty()).await.iter().all(unknown));
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        assert!(stored(&store, "j49").await);
    }

    #[tokio::test]
    async fn a_caller_who_goes_away_takes_nothing_from_the_others() {
        let (store, _) = store(None);
        let waiting = Puts::new(Arc::new(store.clone()));
        let mut gone = Box::pin(waiting.put(put("gone", "@daily")));
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        waiting.put(put("stays", "@daily")).await.unwrap();
        assert!(stored(&store, "stays").await && stored(&store, "gone").await);
    }
}
