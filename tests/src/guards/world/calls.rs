//! A node's calls to the store, as its engine makes them.

use carillon_domain::node::port::FinishRequest;
use carillon_domain::node::{BeatAnswer, Effect, Failure, Input};
use carillon_domain::time::BootTime;
use carillon_store::{ClaimRequest, ControlStore, Finished, Me, NodeStore, Output, PeekRequest};

use super::{World, ready};

impl World {
    pub(super) fn perform(&mut self, me: Me, call: &Effect, sent: u64) -> Option<Input> {
        let (store, session) = (self.store.clone(), me.session);
        let looks_on = self.processes.iter().any(|one| one.session == session && one.looks_on);
        let executors = || if looks_on { Vec::new() } else { vec!["shell".to_owned()] };
        Some(match call.clone() {
            Effect::Heartbeat { seq, draining } => {
                let answer = ready(store.heartbeat(me, seq, draining)).map(BeatAnswer::from);
                Input::Beat { sent: BootTime::from_ms(sent), answer: answer.map_err(Failure::from) }
            }
            Effect::Peek { partitions, until } => {
                let request = PeekRequest { session, partitions, until, executors: executors() };
                Input::Peeked(ready(store.peek(&request)).map_err(Failure::from))
            }
            Effect::Claim { partitions, until, runs, places, .. } => {
                let request = ClaimRequest { me, partitions, until, runs, places, executors: executors() };
                Input::Claimed(ready(store.claim(&request)).map_err(Failure::from))
            }
            Effect::Start { lane, runs } => {
                Input::Started { lane, answer: ready(store.start(me, &runs)).map_err(Failure::from) }
            }
            Effect::Settle(runs) => Input::Settled(ready(store.settle(session, &runs)).map_err(Failure::from)),
            Effect::Reset(runs) => Input::Reset(ready(store.reset(session, &runs)).map_err(Failure::from)),
            Effect::ListHeld => Input::Held(ready(store.held(session)).map_err(Failure::from)),
            Effect::Finish { lane, runs: requests } => {
                let finished: Vec<Finished> = requests.into_iter().map(|request| self.finished(request)).collect();
                Input::Finished {
                    lane,
                    answer: ready(store.finish(me, &finished, &executors())).map_err(Failure::from),
                }
            }
            Effect::Expire { session, seq } => {
                if ready(store.expire(Some(me), session, seq)).unwrap_or(false) {
                    self.sweep(session);
                }
                Input::Swept
            }
            Effect::Sweep { session } => {
                self.sweep(session);
                Input::Swept
            }
            _ => return None,
        })
    }

    fn finished(&self, request: FinishRequest) -> Finished {
        let name = ready(self.store.run(request.at.run)).map(|view| view.key.name).unwrap_or_default();
        Finished { request, output: Output { bytes: (self.output)(&name), truncated: false } }
    }
}
