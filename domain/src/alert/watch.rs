//! The watch step: facts in, notices out. One node at a time steps, in the commit that moves the cursor of the journals.
//!
//! A store gathers facts in one snapshot: those of the journals, those that [`judge`](super::expect::judge) makes of due times, and two
//! that it finds by looking. Where the look at a [`HeldBack`] or a [`HeldCall`](super::HeldCall) is due and
//! [`retry_of`](super::retry_of) finds no next attempt, it adds `RetryDropped`. Where an incident's job is gone, it adds `Gone`. Where a job
//! with incidents was changed, it adds `Seen`.
//!
//! Then it loads the incidents of [`wanted`], those whose `next_look` has come, and all storms. It calls [`step`], and writes the answer
//! with the cursor. The model and the simulator do the same. [`calls`](super::calls) answers the calls of monitors for the same facts.

use std::collections::{BTreeMap, BTreeSet};

use crate::run::Status;
use crate::time::Timestamp;

use super::expect::Verdict;
use super::fact::{Ended, Fact, JobSubject, Subject, What};
use super::incident::{Class, HeldBack, Incident, IncidentKey};
use super::notice::{Notice, NoticeId, State};
use super::route::Route;
use super::sentence;
use super::storm::Storm;
use super::when::When;

/// The rows that a step reads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loaded {
    /// The incidents that the facts touch, and those whose look is due.
    pub incidents: BTreeMap<IncidentKey, Incident>,
    /// Every storm, by route.
    pub storms: BTreeMap<String, Storm>,
}

/// The rows that a step writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WriteSet {
    /// Incidents that changed; `None` to delete.
    pub incidents: BTreeMap<IncidentKey, Option<Incident>>,
    /// Storms that changed, by route; `None` to delete.
    pub storms: BTreeMap<String, Option<Storm>>,
    /// New notices. Each gets one delivery for each target of its route.
    pub notices: Vec<Notice>,
    /// The earliest time at which one of the rows that were loaded or written must be looked at again.
    pub next_look: Option<Timestamp>,
}

/// The incidents that facts may touch on these routes.
pub fn wanted(routes: &[Route], facts: &[Fact]) -> BTreeSet<IncidentKey> {
    let mut keys = BTreeSet::new();
    for fact in facts {
        for route in routes.iter().filter(|route| is_seen(fact) || concerns(route, &fact.subject)) {
            keys.extend(classes(route, &fact.what).into_iter().map(|class| key(route, &fact.subject, class)));
        }
    }
    keys
}

/// Judges facts in their order, tells again what is due, and ends the minutes of storms. Each fact is given once, in one commit with
/// the cursor; then each notice is made once.
pub fn step(routes: &[Route], loaded: Loaded, facts: &[Fact], now: Timestamp) -> WriteSet {
    let before = loaded.incidents.clone();
    let mut step = Step { now, incidents: loaded.incidents, raw: BTreeMap::new() };
    for fact in facts {
        for route in routes {
            if concerns(route, &fact.subject) {
                step.fact(route, fact);
            } else if is_seen(fact) {
                step.forget(route, &fact.subject, &Class::OF_JOBS);
            }
        }
    }
    step.look(routes);
    let Step { incidents, mut raw, .. } = step;

    let mut writes = WriteSet::default();
    let mut looks: Vec<Timestamp> = Vec::new();
    for route in routes {
        let of_route = raw.remove(&route.name).unwrap_or_default();
        let old = loaded.storms.get(&route.name);
        let (storm, sent) = Storm::pass(old.cloned(), &route.name, of_route, now);
        writes.notices.extend(sent);
        looks.extend(storm.as_ref().map(Storm::ends_at));
        if storm.as_ref() != old {
            writes.storms.insert(route.name.clone(), storm);
        }
        let open = incidents.values().filter(|incident| incident.key.route == route.name && incident.is_open());
        looks.extend(open.filter_map(|incident| incident.next_look(route)));
    }
    let known: BTreeSet<&str> = routes.iter().map(|route| route.name.as_str()).collect();
    let gone = loaded.storms.into_keys().filter(|route| !known.contains(route.as_str()));
    writes.storms.extend(gone.map(|route| (route, None)));
    for (key, incident) in &incidents {
        let kept = Some(incident).filter(|incident| incident.is_open() && known.contains(key.route.as_str()));
        let old = before.get(key);
        if kept != old {
            writes.incidents.insert(key.clone(), kept.cloned());
        }
    }
    writes.next_look = looks.into_iter().min();
    writes
}

/// A notice that tries a route. It goes past storms.
pub fn test(route: &Route, now: Timestamp) -> Notice {
    let id = NoticeId::derived(&["test", &route.name, &now.to_string()]);
    let when = route.when.first().copied().unwrap_or(When::Failed);
    Notice {
        id,
        route: route.name.clone(),
        when,
        state: State::Test,
        namespace: None,
        job: None,
        part: None,
        run: None,
        due_at: None,
        at: now,
        sentence: sentence::of_test(&route.name, now),
        then: sentence::NOTHING_TO_DO.to_owned(),
        repeats: 0,
        folded: 0,
        thread: id,
        with_output: false,
        cron_mail: None,
    }
}

/// Whether a route is told of that subject at all. A route that selects jobs is not told of the cluster.
fn concerns(route: &Route, subject: &Subject) -> bool {
    match subject {
        Subject::Job(job) => route.only.covers(&job.namespace, &job.name, &job.labels),
        Subject::Cluster(_) => route.only.is_empty(),
    }
}

const fn is_seen(fact: &Fact) -> bool {
    matches!(fact.what, What::Seen { .. })
}

/// The classes of incidents that a fact may touch on a route.
fn classes(route: &Route, what: &What) -> BTreeSet<Class> {
    let listed = route.when.iter().filter_map(|when| Class::of(*when));
    let touched = |class: &Class| match what {
        What::Ended(_) => matches!(class, Class::Outcome | Class::Skipped),
        What::Judged(Verdict::Broken(broken)) => Class::of(broken.when) == Some(*class),
        What::Judged(Verdict::Kept { when, .. }) | What::Over(when) => Class::of(*when) == Some(*class),
        What::RetryDropped(_) => *class == Class::Outcome,
        What::Gone | What::Seen { .. } => Class::OF_JOBS.contains(class),
        What::Trouble(trouble) => Class::of(trouble.when()) == Some(*class),
    };
    listed.filter(touched).collect()
}

fn key(route: &Route, subject: &Subject, class: Class) -> IncidentKey {
    IncidentKey { route: route.name.clone(), subject: subject.key(), class }
}

/// A step that goes on.
struct Step {
    now: Timestamp,
    incidents: BTreeMap<IncidentKey, Incident>,
    /// The notices by route, before storms.
    raw: BTreeMap<String, Vec<Notice>>,
}

impl Step {
    fn fact(&mut self, route: &Route, fact: &Fact) {
        let now = self.now;
        match (&fact.what, &fact.subject) {
            (What::Ended(ended), Subject::Job(job)) => self.ended(route, fact, job, ended),
            (What::Judged(Verdict::Broken(broken)), Subject::Job(job)) if route.when.contains(&broken.when) => {
                let telling = sentence::of_broken(job, broken);
                let Some(incident) = self.incident(route, fact, broken.when) else { return };
                let notice = incident.add(route, telling, broken.due.count, fact.at, now);
                self.tell(notice);
            }
            (What::Judged(Verdict::Kept { when, due_at }), Subject::Job(job)) => {
                let Some(class) = Class::of(*when) else { return };
                self.close(route, &fact.subject, class, &sentence::of_recovery(job, class, *due_at), None);
            }
            (What::RetryDropped(firing), Subject::Job(_)) => {
                let Some(incident) = self.incidents.get_mut(&key(route, &fact.subject, Class::Outcome)) else { return };
                let notice =
                    incident.release(*firing).and_then(|held| incident.add(route, held.telling, 1, held.at, now));
                self.tell(notice);
            }
            (What::Gone, Subject::Job(_)) => self.forget(route, &fact.subject, &Class::OF_JOBS),
            (What::Seen { starts, ends }, Subject::Job(_)) => {
                let expected = [(Class::LateStart, *starts), (Class::LateFinish, *ends)];
                let unasked = expected.into_iter().filter(|(_, expected)| !expected).map(|(class, _)| class);
                self.forget(route, &fact.subject, &unasked.collect::<Vec<_>>());
            }
            (What::Trouble(trouble), Subject::Cluster(part)) if route.when.contains(&trouble.when()) => {
                let telling = sentence::of_trouble(part, trouble, now);
                let notice = match self.incident(route, fact, trouble.when()) {
                    Some(incident) => incident.add(route, telling, 1, fact.at, now),
                    None => Incident::passing(route, &fact.subject, telling, fact.at, now),
                };
                self.tell(notice);
            }
            (What::Over(when), Subject::Cluster(part)) => {
                let Some(class) = Class::of(*when) else { return };
                self.close(route, &fact.subject, class, &sentence::of_over(part, *when), None);
            }
            _ => {}
        }
    }

    /// The end of a run, or of due times that did not run.
    fn ended(&mut self, route: &Route, fact: &Fact, job: &JobSubject, ended: &Ended) {
        let (now, record) = (self.now, &ended.record);
        if let Some(incident) = self.incidents.get_mut(&key(route, &fact.subject, Class::Outcome))
            && let Some(held) = incident.release(ended.firing())
        {
            // An attempt that never came leaves the failure before it as the last word.
            let notice = ended.never_came().then(|| incident.add(route, held.telling, 1, held.at, now)).flatten();
            self.tell(notice);
        }
        if ended.ran() {
            let words = sentence::of_recovery(job, Class::Skipped, record.started_at.unwrap_or(fact.at));
            self.close(route, &fact.subject, Class::Skipped, &words, Some(record.id));
        }
        if record.status == Status::Succeeded {
            let words = sentence::of_recovery(job, Class::Outcome, record.finished_at);
            self.close(route, &fact.subject, Class::Outcome, &words, Some(record.id));
        }
        let told_before = self.told(route);
        if let Some(when) = ended.when().filter(|when| route.when.contains(when)) {
            let telling = sentence::of_ended(job, ended, when);
            let Some(incident) = self.incident(route, fact, when) else { return };
            match ended.retry_at.filter(|_| ended.is_held_back()) {
                Some(retry_at) => incident.hold_back(HeldBack {
                    firing: ended.firing(),
                    attempt: record.attempt,
                    at: fact.at,
                    look_at: retry_at.max(now) + Incident::LOOK_EVERY,
                    telling,
                }),
                None => {
                    let notice = incident.add(route, telling, record.count.max(1), fact.at, now);
                    self.tell(notice);
                }
            }
        }
        // A notice of its failure carries the output already.
        if ended.has_output && route.when.contains(&When::Output) && self.told(route) == told_before {
            let telling = sentence::of_ended(job, ended, When::Output);
            let notice = Incident::passing(route, &fact.subject, telling, fact.at, now);
            self.tell(notice.map(|notice| Notice { cron_mail: job.cron.clone(), ..notice }));
        }
    }

    /// Tells open incidents again, and puts off looks at retries that still wait.
    fn look(&mut self, routes: &[Route]) {
        let mut raw = Vec::new();
        for route in routes {
            for incident in self.incidents.values_mut().filter(|incident| incident.key.route == route.name) {
                raw.extend(incident.repeat(route, self.now));
                incident.look_later(self.now);
            }
        }
        raw.into_iter().for_each(|notice| self.tell(Some(notice)));
    }

    /// The incident of a kind of facts, opened if there is none; `None` for a kind that leaves nothing open.
    fn incident(&mut self, route: &Route, fact: &Fact, when: When) -> Option<&mut Incident> {
        let class = Class::of(when)?;
        let new = || Incident::new(&route.name, &fact.subject, class, fact.at);
        Some(self.incidents.entry(key(route, &fact.subject, class)).or_insert_with(new))
    }

    fn close(&mut self, route: &Route, subject: &Subject, class: Class, words: &str, run: Option<crate::id::RunId>) {
        let Some(incident) = self.incidents.get_mut(&key(route, subject, class)) else { return };
        let notice = incident.close(route, words, run, self.now);
        self.tell(notice);
    }

    /// Closes without a word: nobody asks for it any more, so its end is no news.
    fn forget(&mut self, route: &Route, subject: &Subject, classes: &[Class]) {
        for class in classes {
            if let Some(incident) = self.incidents.get_mut(&key(route, subject, *class)) {
                incident.forget();
            }
        }
    }

    fn tell(&mut self, notice: Option<Notice>) {
        if let Some(notice) = notice {
            self.raw.entry(notice.route.clone()).or_default().push(notice);
        }
    }

    fn told(&self, route: &Route) -> usize {
        self.raw.get(&route.name).map_or(0, Vec::len)
    }
}
