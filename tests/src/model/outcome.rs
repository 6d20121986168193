//! One exploration and what it found.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_domain::invariants::{Invariant, Violation};
use stateright::{Checker, HasDiscoveries, Model, Property};

use super::actions::Action;
use super::bounds::Bounds;
use super::coverage::{Coverage, Situation};
use super::world::World;

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
    let began = Instant::now();
    let first = World::new(bounds);
    let coverage = Arc::clone(&first.coverage);
    let checker = Exploration { first }.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    let checker = match limit {
        Some(limit) => checker.timeout(limit),
        None => checker,
    };
    let checker = checker.spawn_dfs().join();
    // Of several the same each time, and what must never happen before what must happen at last.
    let found = checker.discoveries().into_iter().max_by_key(|(promise, _)| *promise);
    let broken = found.map(|(_, path)| tell(&checker.model().first, path.into_actions()));
    Outcome {
        name: bounds.name,
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
fn tell(first: &World, actions: Vec<Action>) -> (Violation, Vec<String>) {
    let mut world = first.clone();
    world.take_notes();
    world.note_rows();
    for action in actions {
        world.act(action);
        world.note_rows();
    }
    let violation = world.violation.clone().expect("the path leads to a violation");
    (violation, world.into_notes())
}

struct Exploration {
    first: World,
}

impl Model for Exploration {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.first.clone()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.actions(actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.act(action);
        Some(next)
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.history.starts.len() <= world.bounds.runs
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("S1", |_, world| holds(world, Invariant::S1)),
            Property::always("S2", |_, world| holds(world, Invariant::S2)),
            Property::always("S3", |_, world| holds(world, Invariant::S3)),
            Property::always("S4", |_, world| holds(world, Invariant::S4)),
            Property::always("S5", |_, world| holds(world, Invariant::S5)),
            Property::always("S6", |_, world| holds(world, Invariant::S6)),
            Property::always("S7", |_, world| holds(world, Invariant::S7)),
            Property::always("S8", |_, world| holds(world, Invariant::S8)),
            Property::always("L1", |_, world| holds(world, Invariant::L1)),
            Property::always("L2", |_, world| holds(world, Invariant::L2)),
        ]
    }
}

fn holds(world: &World, invariant: Invariant) -> bool {
    world.violation.as_ref().is_none_or(|violation| violation.invariant != invariant)
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
