//! Faults between a node and its database, on demand.

use std::sync::{Arc, Mutex, PoisonError};

/// One way in which a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is applied and the caller is told so: [`carillon_store::StoreError::Retryable`].
    Refused,
    /// Nothing is applied; the caller does not know: [`carillon_store::StoreError::Unknown`].
    NeverSent,
    /// It is applied; the caller does not know.
    AnswerLost,
    /// The caller does not know, and it is applied when [`crate::MemoryDatabase::land_stray`] says so.
    Stray,
}

type Chooser = Box<dyn FnMut(&'static str) -> Option<Fault> + Send>;

/// Decides for each call whether and how it fails. Clones are the same.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<Option<Chooser>>>);

impl Faults {
    /// Asks `chooser` at every call, by the method's name, instead of whatever was asked before.
    pub fn choose(&self, chooser: impl FnMut(&'static str) -> Option<Fault> + Send + 'static) {
        *self.lock() = Some(Box::new(chooser));
    }

    /// The `nth` call of `method` from now, counted from 1, fails in this way; nothing else does.
    pub fn at(&self, method: &'static str, nth: usize, fault: Fault) {
        let mut seen = 0;
        self.choose(move |called| {
            seen += usize::from(called == method);
            (called == method && seen == nth).then_some(fault)
        });
    }

    /// Nothing fails any more.
    pub fn clear(&self) {
        *self.lock() = None;
    }

    pub(super) fn next(&self, method: &'static str) -> Option<Fault> {
        self.lock().as_mut().and_then(|chooser| chooser(method))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Chooser>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
