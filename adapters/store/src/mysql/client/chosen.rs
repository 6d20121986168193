//! Which of the servers is used and why, as it is told to people.

use std::sync::Mutex;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::ServerReport;
use crate::mysql::topology::{Answers, Engine};

/// Nodes follow a failover one after another, each with its next heartbeat. For so long they may be on different servers.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(10);

/// The server that took writes last.
#[derive(Debug, Default)]
pub(in crate::mysql) struct Chosen(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    report: Option<ServerReport>,
    /// The engine that was recognised first.
    engine: Option<Engine>,
    /// Since when nodes do not fit each other, why not, and whether that was told.
    misfit: Option<(Instant, String, bool)>,
}

impl Chosen {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine that was recognised first.
    pub fn engine(&self) -> Option<Engine> {
        self.state().engine
    }

    /// A server takes writes. Whether it is another one than before.
    pub fn is_now(&self, place: &str, answers: &Answers, refusals: &[String]) -> bool {
        let mut state = self.state();
        let identity = answers.state.identity();
        let before = state.report.as_ref();
        let moved = before.is_some_and(|before| before.identity != identity || before.place != place);
        let is_new = before.is_none() || moved;
        let changes = before.map_or(0, |before| before.changes) + u64::from(moved);
        // A further connection to the same server says nothing new about its choice.
        let why = match before.filter(|_| !moved) {
            Some(before) => before.why.clone(),
            None if refusals.is_empty() => "it takes writes and was asked first".to_owned(),
            None => format!("it takes writes, and others do not: {}", refusals.join("; ")),
        };
        let topology = answers.describe();
        if is_new && moved {
            let from = before.map(|before| before.identity.as_str());
            tracing::warn!(from, to = identity, server = place, topology, why, "another server takes the writes now");
        } else if is_new {
            tracing::info!(server = place, identity, topology, why, "the database's server");
        }
        state.engine.get_or_insert(answers.engine());
        state.report = Some(ServerReport { place: place.to_owned(), identity, topology, why, changes, trouble: None });
        moved
    }

    /// The sentence about all sessions, as a node reads them with each heartbeat; `None` where they fit each other.
    pub fn see(&self, sentence: Option<String>) {
        let mut state = self.state();
        let Some(sentence) = sentence else {
            state.misfit = None;
            return;
        };
        let (since, told) = state.misfit.take().map_or((Instant::now(), false), |(since, _, told)| (since, told));
        let tells = since.elapsed() >= FOLLOWED_WITHIN;
        if tells && !told {
            tracing::warn!("{sentence}");
        }
        state.misfit = Some((since, sentence, tells));
    }

    /// For people; `None` before a server was found.
    pub fn report(&self) -> Option<ServerReport> {
        let state = self.state();
        let misfit = state.misfit.as_ref().filter(|(since, ..)| since.elapsed() >= FOLLOWED_WITHIN);
        let trouble = misfit.map(|(_, sentence, _)| sentence.clone());
        state.report.clone().map(|report| ServerReport { trouble, ..report })
    }
}
