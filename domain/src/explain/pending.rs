//! Due times without a record: those that come, those that wait, and times at which the job is not due.

use super::words::clause;
use super::{DueState, Found, LiveRun, Question};
use crate::duration::spoken;
use crate::firing::{Firing, Held, Pause, Phase};
use crate::job::{MisfirePolicy, Overlap};
use crate::run::Trigger;
use crate::time::Timestamp;

impl Question<'_> {
    /// `the run of 01:00`.
    pub(super) fn run_of(&self, trigger: Trigger, due_at: Timestamp) -> String {
        let due = self.clock.at(due_at);
        if trigger == Trigger::Manual { format!("the manual run of {due}") } else { format!("the run of {due}") }
    }

    pub(super) fn of_pending(&self) -> Found {
        let (facts, at) = (self.facts, self.at);
        let in_row = facts.state.armed.is_some_and(|armed| armed.due_at == at)
            || facts.state.phase.held().is_some_and(|held| held.firing.due_at == at);
        if !self.is_due() && !in_row {
            return (DueState::NotDue, self.not_due(), None);
        }
        if at <= facts.state.anchor_at && !in_row {
            return self.before_the_schedule();
        }
        let firing = self.firing(Trigger::Schedule);
        if let Some(pause) = facts.state.pause.as_ref().filter(|pause| self.is_paused(pause)) {
            return (DueState::Paused, format!("{firing} {}.", self.paused(pause)), None);
        }
        if let Phase::Prepared(held) = &facts.state.phase
            && held.firing.due_at == at
        {
            return (DueState::Waiting, self.prepared(held), Some(held.run));
        }
        if at > facts.now {
            let wait = spoken(at.since(facts.now));
            return (DueState::Upcoming, format!("{firing} comes up in {wait}."), None);
        }
        if at <= facts.state.cursor && !in_row && facts.state.catch_up_until.is_none_or(|until| at > until) {
            let why = "it is older than the history that is kept, or its records were lost";
            return (DueState::Unrecorded, format!("{firing} has no record: {why}."), None);
        }
        (DueState::Waiting, format!("{firing} {}.", self.unstarted_yet()), None)
    }

    /// The nearest due times in place of one that is none.
    fn not_due(&self) -> String {
        let (timeline, at) = (self.facts.timeline, self.clock.at(self.at));
        let near = match (timeline.last_until(self.at), timeline.next_after(self.at)) {
            (Some(before), Some(after)) => {
                format!("the nearest ones are {} and {}", self.clock.at(before), self.clock.at(after))
            }
            (Some(last), None) => format!("its last one is {}", self.clock.at(last)),
            (None, Some(first)) => format!("its first one is {}", self.clock.at(first)),
            (None, None) => "it has none".to_owned(),
        };
        format!("{at} is not a due time of this schedule: {near}.")
    }

    fn before_the_schedule(&self) -> Found {
        let (at, state) = (self.clock.at(self.at), self.facts.state);
        if self.at <= self.facts.created_at {
            let created = self.clock.at(self.facts.created_at);
            return (DueState::NotDue, format!("The job did not exist at {at}: it was created at {created}."), None);
        }
        let changed = self.clock.at(state.anchor_at);
        (
            DueState::NotDue,
            format!("The schedule of the job was another one at {at}: it was changed at {changed}."),
            None,
        )
    }

    /// Whether the due time falls into the pause, or waits for its end.
    fn is_paused(&self, pause: &Pause) -> bool {
        let ends_before = |until: Timestamp| until <= self.at.max(self.facts.now);
        !pause.until.is_some_and(ends_before) && self.at > self.facts.state.cursor.min(pause.since)
    }

    fn paused(&self, pause: &Pause) -> String {
        let since = self.clock.at(pause.since);
        let until = pause.until.map(|until| format!(" until {}", self.clock.at(until))).unwrap_or_default();
        let reason = pause.reason.as_ref().map(|reason| format!(" ({})", clause(reason))).unwrap_or_default();
        let verb = if self.at > self.facts.now { "will not run" } else { "does not run" };
        format!("{verb}: the job has been paused since {since}{until}{reason}")
    }

    fn prepared(&self, held: &Held) -> String {
        let (firing, node) = (self.firing(held.firing.trigger), self.facts.node.unwrap_or("a node"));
        let node = if self.facts.node.is_some() { format!("node {node}") } else { node.to_owned() };
        if held.firing.start_at > self.facts.now {
            let start = self.clock.at(held.firing.start_at);
            return format!("{firing} is claimed by {node}, which starts it at {start}.");
        }
        if let Some(obstacle) = self.lost_commits() {
            return format!("{firing} {obstacle}.");
        }
        let late = spoken(self.facts.now.since(held.firing.start_at));
        format!("{firing} is claimed by {node}, which has not started it yet, {late} after its time.")
    }

    /// A run that waits under an id of its own.
    pub(super) fn wait_of_a_run(&self, run: &LiveRun) -> String {
        if let Some(node) = &run.node {
            return format!("is claimed by node {node}, which is about to start it");
        }
        match &self.facts.state.phase {
            Phase::Executing(held) if self.facts.job.overlap != Overlap::Allow => {
                format!("waits: {} is still alive", self.run_of(held.firing.trigger, held.firing.due_at))
            }
            _ => self.obstacle(),
        }
    }

    /// A due time that has come, and that nobody has started.
    fn unstarted_yet(&self) -> String {
        let state = self.facts.state;
        if let Some(retry) = state.armed.filter(|armed| armed.attempt > 1 && armed.due_at < self.at) {
            return self.behind(&retry);
        }
        if let Phase::Executing(held) = &state.phase {
            return self.behind(&held.firing);
        }
        let turn = state.catch_up_until.filter(|until| self.at <= *until);
        let first = state.armed.or(state.phase.held().map(|held| held.firing));
        match first.filter(|first| turn.is_some() && first.due_at < self.at) {
            Some(first) => {
                format!("waits its turn in the backlog: {} goes first", self.run_of(first.trigger, first.due_at))
            }
            None => self.obstacle(),
        }
    }

    /// A run lives, or waits for its next attempt. Then the overlap policy tells of the due times that come meanwhile.
    fn behind(&self, running: &Firing) -> String {
        let (state, timeline) = (self.facts.state, self.facts.timeline);
        let run = self.run_of(running.trigger, running.due_at);
        let first = timeline.next_after(state.cursor) == Some(self.at);
        let newest = timeline.last_until(self.facts.now) == Some(self.at);
        if state.catch_up_until.is_some_and(|until| self.at <= until) {
            return format!("waits its turn in the backlog: {run} is still alive");
        }
        let then = match self.facts.job.overlap {
            Overlap::Delay if first => "it starts when that ends",
            Overlap::Replace if newest => "it starts when that has ended, which was asked to",
            Overlap::Allow => "it starts when that ends, as the runs of a backlog go one by one",
            Overlap::Skip | Overlap::Delay | Overlap::Replace => "it is recorded as skipped when that ends",
        };
        format!("does not start yet: {run} is still alive, and {then}")
    }

    /// The reason why no node has claimed a firing that is due.
    fn obstacle(&self) -> String {
        let facts = self.facts;
        let job = facts.job;
        if let Some(lost) = self.lost_commits() {
            return lost;
        }
        if facts.nodes.claiming == 0 {
            return "waits: no node claims firings now".to_owned();
        }
        if !facts.nodes.has_executor {
            return format!("waits: the node that was asked has no executor {}", job.executor);
        }
        if let Some((executing, most)) = facts.nodes.full {
            return format!("waits: its node executes {executing} runs, and at most {most} at once are allowed");
        }
        let since = facts.now.since(self.at);
        if since <= job.misfire.grace {
            return format!("is due, and a node is about to claim it; it has waited for {}", spoken(since));
        }
        let policy = match job.misfire.policy {
            MisfirePolicy::Skip => "the misfire policy records it as skipped",
            MisfirePolicy::FireOnce => "the misfire policy runs the latest such due time once",
            MisfirePolicy::CatchUp => "the misfire policy runs each such due time in turn",
        };
        let (since, grace) = (spoken(since), spoken(job.misfire.grace));
        format!("was missed: no node has claimed it for {since}, its grace is {grace}, and {policy}")
    }

    fn lost_commits(&self) -> Option<String> {
        let noticed = self.clock.at(self.facts.loss?.noticed_at);
        let what = format!("waits: the database went back in time, as was noticed at {noticed}");
        Some(format!("{what}, and nothing starts before a person accepts that with carillon cluster accept"))
    }
}
