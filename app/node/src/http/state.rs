//! The parts that every handler can reach.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_store::{Store, TimingReport};

use crate::alerts::{AlertsHandle, Places};
use crate::config::PublicUrl;
use crate::engine::EngineHandle;
use crate::events::Feed;
use crate::http::put_loader::Puts;
use crate::http::request::session::Sessions;
use crate::http::shared_reads::SharedReads;
use crate::http::{BasePath, Hosts, Tls, Tokens};
use crate::telemetry::SpanCounts;

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
    /// The session timing of this node; `None` while that is not known.
    pub timing: Option<TimingReport>,
    /// The prefix of all paths. Routes see paths without it, and answers name places without it in `Location`.
    pub base_path: BasePath,
    /// The scheme and host under which readers reach this server, where it was told: links that leave the server begin so.
    pub public_url: Option<PublicUrl>,
    /// TLS, where this server speaks it itself.
    pub tls: Option<Arc<Tls>>,
    /// The loops that tell people.
    pub alerts: AlertsHandle,
    /// The events of the cluster.
    pub events: Feed,
    /// Directories whose disks are told of in the metrics.
    pub places: Places,
    /// The spans of this node, where runs are traced.
    pub spans: Option<Arc<SpanCounts>>,
    /// Where puts of single jobs wait for each other.
    pub(in crate::http) puts: Puts,
    /// Who has signed in at the page.
    pub(crate) sessions: Sessions,
    /// Reads that readers of the page share.
    pub(crate) reads: SharedReads,
    started: Instant,
}

impl ApiState {
    /// The API of one node; its uptime counts from here.
    pub fn new(store: Arc<dyn Store>, engine: EngineHandle, tokens: Tokens, hosts: Hosts) -> Self {
        let (puts, sessions) = (Puts::new(store.clone()), Sessions::new(store.clone()));
        let events = Feed::new(store.clone(), engine.clone());
        let (base_path, reads, started) = (BasePath::default(), SharedReads::default(), Instant::now());
        let (partitions, timing, public_url, tls, alerts) = (None, None, None, None, AlertsHandle::default());
        Self {
            store,
            engine,
            tokens,
            hosts,
            partitions,
            timing,
            base_path,
            public_url,
            tls,
            alerts,
            events,
            places: Places::default(),
            spans: None,
            puts,
            sessions,
            reads,
            started,
        }
    }

    /// How long the API has been up.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}
