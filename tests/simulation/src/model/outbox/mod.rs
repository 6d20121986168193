//! The outbox under the model checker: every order in which two nodes judge, claim, send and answer, with faults between.
//!
//! The store is the memory store, so a transaction is one step; that transactions are so is shown by the simulator and by real servers.
//! A node that steps has no memory, so it does not matter which one does. One that sends has: what it has claimed, and the answer that
//! it has not written down. It may die with that, or sleep until another one sends the same.

mod state;

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::alert::When;
use stateright::{Model, Property};

use super::outcome::{Outcome, explore};
use state::{Action, State};

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

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("S9 and L3", |_, state: &State| state.broken.is_none())]
    }
}

/// Explores every order of two due times of which a route asks for `kinds`, with up to `faults` faults.
pub fn check_outbox(
    kinds: &'static [When],
    nodes: u64,
    faults: u8,
    threads: usize,
    limit: Option<Duration>,
) -> Outcome {
    let model = Exploration { first: State::new(kinds, nodes, faults) };
    explore("outbox", model, Arc::default(), (threads, limit), |model, actions| {
        let mut state = model.first.clone();
        actions.iter().for_each(|action| state.act(*action));
        (state.broken.expect("the path leads to a violation"), actions.iter().map(|one| format!("{one:?}")).collect())
    })
}
