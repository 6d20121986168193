//! Errors of a store, told apart by the caller's choices.

use carillon_domain::node::call::CallFailure;
use carillon_domain::store::Refusal;

/// An error of the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Nothing was applied; the same call may succeed later (rolled back, database busy or away before anything was sent).
    #[error("the database did not take it: {0}")]
    Retryable(String),
    /// Nothing was applied, and the same call will never succeed.
    #[error("the database refused it: {0}")]
    Permanent(String),
    /// Nothing was applied, and no node can be kept out of what the missing row guards: whoever is told this must stop.
    /// A sentence that names the row, its table and what to do.
    #[error("{0}")]
    LockMissing(String),
    /// It may have been applied, or may still be.
    #[error("it is not known whether the database took it: {0}")]
    Unknown(String),
}

/// The failure as the node sees it.
impl From<StoreError> for CallFailure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Retryable(_) => CallFailure::RolledBack,
            StoreError::Permanent(_) | StoreError::LockMissing(_) => CallFailure::Refused,
            StoreError::Unknown(_) => CallFailure::Unknown,
        }
    }
}

/// Why a person's request was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The request is refused, as the database stands.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
