//! The parts that every handler can reach.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_store::Store;

use crate::engine::EngineHandle;
use crate::events::Feed;
use crate::http::put_loader::Puts;
use crate::http::{Hosts, Tokens};

/// The parts of the API, shared by all requests.
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
    /// The events of the cluster.
    pub events: Feed,
    /// Where puts of single jobs wait for each other.
    pub(in crate::http) puts: Puts,
    started: Instant,
}

impl ApiState {
    /// The API of one node; its uptime counts from here.
    pub fn new(store: Arc<dyn Store>, engine: EngineHandle, tokens: Tokens, hosts: Hosts) -> Self {
        let puts = Puts::new(store.clone());
        let events = Feed::new(store.clone(), engine.clone());
        Self { store, engine, tokens, hosts, partitions: None, events, puts, started: Instant::now() }
    }

    /// How long the API has been up.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}
