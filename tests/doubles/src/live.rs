//! The output of runs that run, between whoever runs them and readers elsewhere.

use carillon_domain::firing::Phase;
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::WantedOutput;

use super::data::Data;
use carillon_store::LivePart;
use carillon_store::live_output::{LiveRow, kept_since, wanted_since};

impl Data {
    pub fn ask_output(&mut self, run: RunId) -> Option<LivePart> {
        let now = self.clock.now();
        let published = self.live.get(&run).cloned().and_then(|row| row.into_fresh(now));
        if self.live.get(&run).is_none_or(|row| row.is_asked_again(now)) {
            self.live.insert(run, LiveRow { asked_at: now, published: published.clone() });
        }
        published
    }

    pub fn wanted_outputs(&self, session: SessionId) -> Vec<WantedOutput> {
        let since = wanted_since(self.clock.now());
        let holds = |phase: &Phase, run| phase.held().is_some_and(|held| held.session == session && held.run == run);
        let mine = |run| {
            self.states.values().any(|state| holds(&state.phase, run))
                || self.concurrent.values().any(|row| holds(&row.phase, run))
        };
        let wanted = self.live.iter().filter(|(run, row)| row.asked_at >= since && mine(**run));
        let published = |row: &LiveRow| row.published.as_ref().map(|output| output.written);
        wanted.map(|(run, row)| WantedOutput { run: *run, published: published(row) }).collect()
    }

    pub fn publish_output(&mut self, outputs: Vec<(RunId, LivePart)>) {
        for (run, output) in outputs {
            let forward = |known: &LivePart| known.written < output.written || !enabled(Guard::LiveForward);
            if let Some(row) = self.live.get_mut(&run)
                && row.published.as_ref().is_none_or(forward)
            {
                row.published = Some(output);
            }
        }
    }

    pub fn purge_live(&mut self) {
        let since = kept_since(self.clock.now());
        self.live.retain(|_, row| row.asked_at >= since);
    }
}
