//! What every handler can reach.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_adapters::store::{Change, Saved, Store};

use super::gather::Puts;
use super::{Hosts, Tokens};
use crate::engine::EngineHandle;

/// What comes up later than this after it was saved is found in time by the look that a node takes each second.
const SOON: Duration = Duration::from_secs(5);

/// What the API is made of; shared by all requests.
pub struct ApiState {
    /// The database.
    pub store: Arc<dyn Store>,
    /// This node's engine.
    pub engine: EngineHandle,
    /// Who is let in.
    pub tokens: Tokens,
    /// Under which names.
    pub hosts: Hosts,
    /// How many partitions the database was made with, for `/v1/cluster`; `None` while that is not known.
    pub partitions: Option<u16>,
    /// Where puts of single jobs wait for each other.
    pub(super) puts: Puts,
    started: Instant,
}

impl ApiState {
    /// The API of one node; its uptime counts from here.
    pub fn new(store: Arc<dyn Store>, engine: EngineHandle, tokens: Tokens, hosts: Hosts) -> Self {
        let puts = Puts::new(store.clone());
        Self { store, engine, tokens, hosts, partitions: None, puts, started: Instant::now() }
    }

    /// Lets the node look for work at once where a job that was saved comes up before it would look by itself.
    pub(super) fn look_if_soon<'a>(&self, saved: impl IntoIterator<Item = &'a Saved>) {
        let is_soon = |saved: &Saved| {
            let claim_at = saved.view.state.claim_at();
            saved.change != Change::Unchanged && claim_at.is_some_and(|at| at < saved.view.updated_at + SOON)
        };
        if saved.into_iter().any(is_soon) {
            self.engine.look();
        }
    }

    /// How long the API has been up.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}
