//! The things that a call needs beside its arguments.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::client::Client;

/// The API, and what goes for every call.
pub(super) struct Surroundings {
    /// The way to the API.
    pub client: Arc<Client>,
    /// The namespace of jobs where the arguments name none.
    pub namespace: Arc<str>,
    /// Cancelled when nobody waits for the answer any more.
    pub given_up: CancellationToken,
}
