//! One exploration and what it found.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_domain::invariants::{Invariant, Violation};
use stateright::{Checker, HasDiscoveries, Model, Property};

use super::actions::Action;
use super::bounds::Bounds;
use super::coverage::{Coverage, Situation};
use super::state::State;

/// The findings of an exploration.
#[derive(Debug)]
pub struct Outcome {
    /// Its name.
    pub name: &'static str,
    /// Steps that were taken.
    pub states: usize,
    /// States that differ.
    pub unique: usize,
    /// The longest path.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// Whether every state was seen; not where something broke or the time was over.
    pub complete: bool,
    /// The first promise that was broken, and how, step by step.
    pub broken: Option<(Violation, Vec<String>)>,
    /// The situations that it came across.
    pub coverage: Arc<Coverage>,
}

/// Explores everything within the bounds, or for `limit`, on `threads` threads.
pub fn check(bounds: &Bounds, threads: usize, limit: Option<Duration>) -> Outcome {
    let first = State::new(bounds);
    let coverage = Arc::clone(&first.coverage);
    explore(bounds.name, Exploration { first }, coverage, (threads, limit), |model, actions| {
        tell(&model.first, actions)
    })
}

/// Explores a model, and has the way to a violation told.
pub(super) fn explore<M>(
    name: &'static str,
    model: M,
    coverage: Arc<Coverage>,
    (threads, limit): (usize, Option<Duration>),
    tell: impl FnOnce(&M, Vec<M::Action>) -> (Violation, Vec<String>),
) -> Outcome
where
    M: Model<State: Clone + Debug + Hash + PartialEq + Send + Sync, Action: Clone + Debug + PartialEq + Send + Sync>
        + Send
        + Sync
        + 'static,
{
    let began = Instant::now();
    let checker = model.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    let checker = match limit {
        Some(limit) => checker.timeout(limit),
        None => checker,
    };
    let checker = checker.spawn_dfs().join();
    // Of several the same each time, and what must never happen before what must happen at last.
    let found = checker.discoveries().into_iter().max_by_key(|(promise, _)| *promise);
    let broken = found.map(|(_, path)| tell(checker.model(), path.into_actions()));
    Outcome {
        name,
        states: checker.state_count(),
        unique: checker.unique_state_count(),
        depth: checker.max_depth(),
        took: began.elapsed(),
        complete: broken.is_none() && limit.is_none_or(|limit| began.elapsed() < limit),
        broken,
        coverage,
    }
}

/// Goes the way again and takes notes.
fn tell(first: &State, actions: Vec<Action>) -> (Violation, Vec<String>) {
    let mut state = first.clone();
    state.take_notes();
    state.note_rows();
    for action in actions {
        state.act(action);
        state.note_rows();
    }
    let violation = state.world.broken.clone().expect("the path leads to a violation");
    (violation, state.into_notes())
}

struct Exploration {
    first: State,
}

impl Model for Exploration {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.first.clone()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        state.actions(actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        next.act(action);
        Some(next)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.world.history.count() <= state.bounds.runs
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("S1", |_, state| holds(state, Invariant::S1)),
            Property::always("S2", |_, state| holds(state, Invariant::S2)),
            Property::always("S3", |_, state| holds(state, Invariant::S3)),
            Property::always("S4", |_, state| holds(state, Invariant::S4)),
            Property::always("S5", |_, state| holds(state, Invariant::S5)),
            Property::always("S6", |_, state| holds(state, Invariant::S6)),
            Property::always("S7", |_, state| holds(state, Invariant::S7)),
            Property::always("S8", |_, state| holds(state, Invariant::S8)),
            Property::always("L1", |_, state| holds(state, Invariant::L1)),
            Property::always("L2", |_, state| holds(state, Invariant::L2)),
        ]
    }
}

fn holds(state: &State, invariant: Invariant) -> bool {
    state.world.broken.as_ref().is_none_or(|violation| violation.invariant != invariant)
}

impl Outcome {
    /// Whether every state was seen, in a word.
    pub fn seen(&self) -> &'static str {
        match self.broken {
            None if self.complete => "complete",
            None => "cut",
            Some(_) => "until it broke",
        }
    }
}

impl fmt::Display for Outcome {
    /// On one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, states, unique, depth, took, .. } = self;
        let seen = self.seen();
        write!(f, "{name}: {states} steps, {unique} states, {seen}, depth {depth}, {:.1} s", took.as_secs_f64())?;
        for sight in Situation::ALL {
            let times = self.coverage.of(sight);
            if times > 0 {
                write!(f, ", {sight:?} {times}")?;
            }
        }
        Ok(())
    }
}
