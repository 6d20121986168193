//! Reads that many readers of the page share, so that a thousand of them cost the database what one does.
//!
//! Pages that follow events all look again at the same moment. The first one reads; the others wait for it and get the same answer. An
//! answer is good until the node learns of another event, and for a second at the most. Without followers only those answers are
//! shared that may be a little old. Some of them take long to read. Those are read again before they are too old, and the old one is
//! answered meanwhile. So a reader who asks again and again never waits.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer is good at the most: some changes are told by no event.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// How many answers are kept.
const MOST_KEPT: usize = 256;

type Slot = Arc<tokio::sync::Mutex<Option<Answer>>>;

struct Answer {
    version: u64,
    read_at: Instant,
    value: Arc<dyn Any + Send + Sync>,
    /// Whether it is being read again.
    renewed: bool,
}

impl Answer {
    fn new(version: u64, read_at: Instant, value: Arc<dyn Any + Send + Sync>) -> Self {
        Self { version, read_at, value, renewed: false }
    }

    /// The answer, if it is of this version and not too old.
    fn good<T: Send + Sync + 'static>(&self, version: u64, good_for: Duration) -> Option<Arc<T>> {
        let is_good = self.version >= version && self.read_at.elapsed() < good_for;
        is_good.then(|| Arc::clone(&self.value).downcast::<T>().ok()).flatten()
    }
}

/// Answers by the question.
#[derive(Default)]
pub(crate) struct SharedReads {
    slots: Mutex<BTreeMap<String, Slot>>,
}

impl SharedReads {
    /// The answer to `question`, by `read` unless somebody has read it since `version` came up. Without a version it is read in any
    /// case.
    pub async fn get<T, E>(
        &self,
        version: Option<u64>,
        question: String,
        read: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E>
    where
        T: Send + Sync + 'static,
    {
        let Some(version) = version else { return read().await.map(Arc::new) };
        self.get_within(GOOD_FOR, version, question, read).await
    }

    /// The answer to a question whose answer changes seldom, at most `good_for` old. It is kept without followers, too.
    pub async fn kept<T, E>(
        &self,
        good_for: Duration,
        question: String,
        read: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E>
    where
        T: Send + Sync + 'static,
    {
        self.get_within(good_for, 0, question, read).await
    }

    async fn get_within<T, E>(
        &self,
        good_for: Duration,
        version: u64,
        question: String,
        read: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E>
    where
        T: Send + Sync + 'static,
    {
        let slot = self.slot(question);
        let mut answer = slot.lock().await;
        if let Some(value) = answer.as_ref().and_then(|known| known.good(version, good_for)) {
            return Ok(value);
        }
        fill(&mut answer, version, read()).await
    }

    /// The same for an answer that takes long to read: one that is older than half of `good_for` is read again beside, and answered
    /// meanwhile. With followers it is also as new as `version`.
    pub async fn ahead<T, E, F>(
        &self,
        (good_for, version): (Duration, Option<u64>),
        question: String,
        read: impl FnOnce() -> F,
    ) -> Result<Arc<T>, E>
    where
        T: Send + Sync + 'static,
        E: Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let (version, slot) = (version.unwrap_or(0), self.slot(question));
        let mut answer = slot.lock().await;
        if let Some(known) = answer.as_mut()
            && let Some(value) = known.good(version, good_for)
        {
            if !known.renewed && known.read_at.elapsed() >= good_for / 2 {
                known.renewed = true;
                tokio::spawn(renew(Arc::clone(&slot), version, read()));
            }
            return Ok(value);
        }
        fill(&mut answer, version, read()).await
    }

    /// Forgets everything, because somebody at this node has changed something.
    pub fn forget(&self) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn slot(&self, question: String) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MOST_KEPT && !slots.contains_key(&question) {
            slots.clear();
        }
        Arc::clone(slots.entry(question).or_default())
    }
}

/// Reads an answer into its slot. A failure leaves the slot as it was.
async fn fill<T, E>(
    answer: &mut Option<Answer>,
    version: u64,
    read: impl Future<Output = Result<T, E>>,
) -> Result<Arc<T>, E>
where
    T: Send + Sync + 'static,
{
    let read_at = Instant::now();
    let value = Arc::new(read.await?);
    *answer = Some(Answer::new(version, read_at, value.clone()));
    Ok(value)
}

/// Reads an answer again. The slot is free meanwhile, and keeps a newer answer than this one.
async fn renew<T, E>(slot: Slot, version: u64, read: impl Future<Output = Result<T, E>>)
where
    T: Send + Sync + 'static,
{
    let read_at = Instant::now();
    let value = read.await;
    let mut answer = slot.lock().await;
    match (value, answer.as_mut()) {
        (Ok(value), Some(known)) if known.read_at < read_at => *known = Answer::new(version, read_at, Arc::new(value)),
        // The next reader tries, or waits for an answer of its own and is told the fault.
        (_, Some(known)) => known.renewed = false,
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    /// Asks as a page does; the answer is how often was read.
    async fn ask(reads: &SharedReads, count: &AtomicUsize, version: Option<u64>, question: &str) -> usize {
        let read = async || {
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(count.fetch_add(1, Ordering::SeqCst) + 1)
        };
        let Ok(value) = reads.get(version, question.to_owned(), read).await;
        *value
    }

    #[tokio::test]
    async fn a_thousand_readers_read_once_for_each_event() {
        let (reads, count) = (SharedReads::default(), AtomicUsize::new(0));
        for version in [7, 8] {
            let all = join_all((0..1_000).map(|_| ask(&reads, &count, Some(version), "jobs"))).await;
            assert!(all.iter().all(|value| *value as u64 == version - 6), "nobody gets what was before the event");
        }
        assert_eq!(ask(&reads, &count, Some(8), "other").await, 3, "each question has its own answer");
        reads.forget();
        assert_eq!(ask(&reads, &count, Some(8), "jobs").await, 4);
    }

    #[tokio::test]
    async fn without_followers_everybody_reads() {
        let (reads, count) = (SharedReads::default(), AtomicUsize::new(0));
        assert_eq!((ask(&reads, &count, None, "jobs").await, ask(&reads, &count, None, "jobs").await), (1, 2));
    }

    #[tokio::test]
    async fn an_answer_that_changes_seldom_is_kept_without_followers() {
        let (reads, count) = (SharedReads::default(), AtomicUsize::new(0));
        let read = async || Ok::<_, Infallible>(count.fetch_add(1, Ordering::SeqCst) + 1);
        for expected in [1, 1] {
            let Ok(value) = reads.kept(Duration::from_secs(3_600), "days".to_owned(), read).await;
            assert_eq!(*value, expected);
        }
        let Ok(value) = reads.kept(Duration::ZERO, "days".to_owned(), read).await;
        assert_eq!(*value, 2);
    }

    #[tokio::test]
    async fn a_dear_answer_is_read_again_while_the_old_one_is_answered() {
        let (reads, count) = (SharedReads::default(), Arc::new(AtomicUsize::new(0)));
        let (go, gone) = tokio::sync::watch::channel(1);
        // The reading of a number waits until it may be answered.
        let ask = async |good_for: Duration, version: Option<u64>| {
            let (count, mut gone) = (Arc::clone(&count), gone.clone());
            let read = || async move {
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                gone.wait_for(|most| *most >= number).await.map(|_| number)
            };
            *reads.ahead((good_for, version), "lanes".to_owned(), read).await.unwrap()
        };
        let hour = Duration::from_secs(3_600);
        assert_eq!((ask(hour, None).await, ask(hour, None).await), (1, 1), "it is new");
        if let Some(known) = reads.slot("lanes".to_owned()).lock().await.as_mut() {
            known.read_at -= Duration::from_secs(3);
        }
        let four = Duration::from_secs(4);
        assert_eq!((ask(four, None).await, ask(four, None).await), (1, 1), "nobody waits for the reading");
        go.send(2).unwrap();
        while ask(four, None).await == 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!((ask(hour, None).await, count.load(Ordering::SeqCst)), (2, 2), "it was read once");
        go.send(3).unwrap();
        assert_eq!(ask(hour, Some(7)).await, 3, "an event has come since");
    }

    #[tokio::test]
    async fn a_failure_is_not_kept() {
        let reads = SharedReads::default();
        let failed = reads.get(Some(1), "jobs".into(), async || Err::<u8, _>("away")).await;
        assert_eq!(failed.map(|value| *value), Err("away"));
        assert_eq!(reads.get(Some(1), "jobs".into(), async || Ok::<u8, &str>(5)).await.map(|value| *value), Ok(5));
    }
}
