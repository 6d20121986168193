//! The calls that are under way: futures, polled in the order in which they became ready.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A call's number; a later one has a higher number.
pub(super) type TaskId = u64;

type Ready = Arc<Mutex<VecDeque<TaskId>>>;

struct Bell {
    task: TaskId,
    ready: Ready,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.task);
    }
}

/// One call: who made it, what it is about, and the future.
pub(super) struct Task<C, T> {
    pub owner: usize,
    pub call: C,
    future: Pin<Box<dyn Future<Output = T> + Send>>,
    waker: Waker,
}

/// All calls. `C` says what a call is about, `T` is what comes of it.
pub(super) struct Tasks<C, T> {
    all: BTreeMap<TaskId, Task<C, T>>,
    ready: Ready,
    numbered: TaskId,
}

impl<C, T> Tasks<C, T> {
    pub fn new() -> Self {
        Self { all: BTreeMap::new(), ready: Arc::default(), numbered: 0 }
    }

    pub fn spawn(&mut self, owner: usize, call: C, future: impl Future<Output = T> + Send + 'static) -> TaskId {
        self.numbered += 1;
        let task = self.numbered;
        let bell = Arc::new(Bell { task, ready: self.ready.clone() });
        self.all.insert(task, Task { owner, call, future: Box::pin(future), waker: bell.into() });
        self.wake(task);
        task
    }

    pub fn wake(&self, task: TaskId) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(task);
    }

    /// Whose it is, while it is under way.
    pub fn owner(&self, task: TaskId) -> Option<usize> {
        self.all.get(&task).map(|one| one.owner)
    }

    /// The next that may go on; one that is over is passed over.
    pub fn next_ready(&mut self) -> Option<(TaskId, usize)> {
        loop {
            let task = self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
            if let Some(one) = self.all.get(&task) {
                return Some((task, one.owner));
            }
        }
    }

    /// Its result, if it has come to an end.
    pub fn poll(&mut self, task: TaskId) -> Option<(Task<C, T>, T)> {
        let one = self.all.get_mut(&task)?;
        let waker = one.waker.clone();
        let Poll::Ready(done) = one.future.as_mut().poll(&mut Context::from_waker(&waker)) else { return None };
        self.all.remove(&task).map(|one| (one, done))
    }

    /// Nobody waits for it any more.
    pub fn drop_one(&mut self, task: TaskId) -> Option<Task<C, T>> {
        self.all.remove(&task)
    }

    /// Nobody of this owner waits any more.
    pub fn drop_of(&mut self, owner: usize) {
        let of_owner: Vec<TaskId> = self.all.iter().filter(|(_, one)| one.owner == owner).map(|(id, _)| *id).collect();
        for task in of_owner {
            self.all.remove(&task);
        }
    }
}
