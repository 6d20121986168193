//! Questions that wait at the same time share a call.
//!
//! A question that comes while no call is in flight goes at once. Others wait until a call is back and then go together: the more
//! callers there are, the less each costs. Each caller gets an answer of its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, oneshot};

/// A place where questions wait for each other. Clones share it.
pub struct BatchLoader<Q, A>(Arc<LoaderState<Q, A>>);

struct LoaderState<Q, A> {
    waiting: Mutex<Vec<(Q, oneshot::Sender<A>)>>,
    lanes: Semaphore,
    most: usize,
}

impl<Q, A> Clone for BatchLoader<Q, A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<Q: Send + 'static, A: Send + 'static> BatchLoader<Q, A> {
    /// At most `lanes` calls are in flight, with at most `most` questions each. With a second lane a slow call holds up only its own
    /// questions.
    pub fn new(lanes: usize, most: usize) -> Self {
        Self(Arc::new(LoaderState { waiting: Mutex::default(), lanes: Semaphore::new(lanes), most }))
    }

    /// Asks one question by a call that may carry those of others too, and answers each in order. A caller that goes away takes nothing
    /// from the others. `None` when the process is ending.
    pub async fn ask<F, C>(&self, question: Q, call: F) -> Option<A>
    where
        F: FnOnce(Vec<Q>) -> C + Send + 'static,
        C: Future<Output = Vec<A>> + Send + 'static,
    {
        let (told, answer) = oneshot::channel();
        self.lock().push((question, told));
        tokio::spawn(self.clone().send(call));
        answer.await.ok()
    }

    /// Asks the questions that wait when a lane is free; often those are all.
    async fn send<F, C>(self, call: F)
    where
        F: FnOnce(Vec<Q>) -> C + Send + 'static,
        C: Future<Output = Vec<A>> + Send + 'static,
    {
        let Ok(_lane) = self.0.lanes.acquire().await else { return };
        let (questions, callers) = self.take();
        if !questions.is_empty() {
            for (told, answer) in callers.into_iter().zip(call(questions).await) {
                // The caller may have gone.
                let _gone = told.send(answer);
            }
        }
    }

    fn take(&self) -> (Vec<Q>, Vec<oneshot::Sender<A>>) {
        let mut waiting = self.lock();
        let count = waiting.len().min(self.0.most);
        waiting.drain(..count).unzip()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Q, oneshot::Sender<A>)>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;
    use tokio::task::JoinHandle;

    use super::*;

    /// Every call notes what it is asked, and waits until it may answer with the squares.
    #[derive(Clone)]
    struct Squares {
        gatherer: BatchLoader<u64, u64>,
        calls: Arc<Mutex<Vec<Vec<u64>>>>,
        go: Arc<Notify>,
    }

    impl Squares {
        fn new(lanes: usize, most: usize) -> Self {
            Self { gatherer: BatchLoader::new(lanes, most), calls: Arc::default(), go: Arc::default() }
        }

        fn ask(&self, question: u64) -> JoinHandle<Option<u64>> {
            let this = self.clone();
            tokio::spawn(async move {
                let Self { gatherer, calls, go } = this;
                let call = async move |questions: Vec<u64>| {
                    calls.lock().unwrap().push(questions.clone());
                    go.notified().await;
                    questions.into_iter().map(|question| question * question).collect()
                };
                gatherer.ask(question, call).await
            })
        }

        async fn until_calls(&self, count: usize) {
            while self.calls.lock().unwrap().len() < count {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn what_comes_while_a_call_is_on_its_way_goes_together() {
        let squares = Squares::new(1, 100);
        let first = squares.ask(1);
        squares.until_calls(1).await;
        let others: Vec<_> = (2..=9).map(|n| squares.ask(n)).collect();
        while squares.gatherer.lock().len() < 8 {
            tokio::task::yield_now().await;
        }
        squares.go.notify_one();
        assert_eq!(first.await.unwrap(), Some(1));
        squares.go.notify_one();
        for (n, other) in (2..=9).zip(others) {
            assert_eq!(other.await.unwrap(), Some(n * n), "everyone gets his own");
        }
        let calls = squares.calls.lock().unwrap();
        assert_eq!(calls.iter().map(Vec::len).collect::<Vec<_>>(), [1, 8]);
    }

    #[tokio::test]
    async fn a_call_that_takes_long_leaves_the_other_lane_free() {
        let squares = Squares::new(2, 100);
        let slow = squares.ask(1);
        squares.until_calls(1).await;
        let other = squares.ask(2);
        squares.until_calls(2).await;
        squares.go.notify_waiters();
        assert_eq!((slow.await.unwrap(), other.await.unwrap()), (Some(1), Some(4)));
    }

    #[tokio::test]
    async fn so_many_go_together_and_no_more() {
        let squares = Squares::new(1, 3);
        let first = squares.ask(1);
        squares.until_calls(1).await;
        let others: Vec<_> = (2..=8).map(|n| squares.ask(n)).collect();
        while squares.gatherer.lock().len() < 7 {
            tokio::task::yield_now().await;
        }
        for calls in 2..=5 {
            squares.go.notify_one();
            squares.until_calls(calls.min(4)).await;
        }
        for asked in std::iter::once(first).chain(others) {
            assert!(asked.await.unwrap().is_some());
        }
        assert_eq!(squares.calls.lock().unwrap().iter().map(Vec::len).collect::<Vec<_>>(), [1, 3, 3, 1]);
    }

    #[tokio::test]
    async fn a_caller_who_goes_away_takes_nothing_from_the_others() {
        let squares = Squares::new(1, 100);
        let gone = squares.ask(1);
        squares.until_calls(1).await;
        gone.abort();
        let stays = squares.ask(2);
        squares.go.notify_one();
        squares.until_calls(2).await;
        squares.go.notify_one();
        assert_eq!(stays.await.unwrap(), Some(4));
    }
}
