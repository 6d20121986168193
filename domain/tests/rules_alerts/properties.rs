//! Whatever the order of facts, steps and looks: nothing is told twice, nothing kept is told, and nothing vanishes.

use std::collections::{BTreeMap, BTreeSet};

use carillon_domain::alert::expect::{DueFacts, Judged, LiveRun, SETTLE, judge};
use carillon_domain::alert::{
    Because, Broken, Expect, Fact, Notice, Route, Selection, State, Storm, Verdict, What, When,
};
use carillon_domain::firing::FiringKey;
use carillon_domain::id::JobId;
use carillon_domain::job::Job;
use carillon_domain::run::{DueRange, RunRecord, Status, Trigger};
use carillon_domain::time::Timestamp;
use proptest::prelude::*;

use super::{World, at, ended, fact, record, route, secs, tried_again};

/// An event of one of the jobs.
#[derive(Debug, Clone, Copy)]
enum Event {
    End(Status),
    /// An attempt fails and is tried again; the next one ends so, or is dropped.
    Attempts(Option<Status>),
    Late(When),
    Kept(When),
}

fn event() -> impl Strategy<Value = Event> {
    let status = || {
        prop::sample::select(vec![
            Status::Succeeded,
            Status::Failed,
            Status::Failed,
            Status::TimedOut,
            Status::Lost,
            Status::Cancelled,
            Status::Skipped,
        ])
    };
    let kind = || prop::sample::select(vec![When::LateStart, When::LateFinish]);
    let last = prop::option::of(prop::sample::select(vec![Status::Succeeded, Status::Failed, Status::Lost]));
    prop_oneof![
        5 => status().prop_map(Event::End),
        2 => last.prop_map(Event::Attempts),
        2 => kind().prop_map(Event::Late),
        2 => kind().prop_map(Event::Kept),
    ]
}

fn a_route(name: &'static str, repeat: Option<u64>) -> impl Strategy<Value = Route> {
    let kinds = vec![
        When::Failed,
        When::TimedOut,
        When::Lost,
        When::Skipped,
        When::LateStart,
        When::LateFinish,
        When::Recovered,
    ];
    let jobs = prop::sample::select(vec!["*", "invoice", "invoice-*"]);
    (prop::sample::subsequence(kinds, 1..=7), 1u32..4, jobs).prop_map(move |(when, after, jobs)| Route {
        when: when.into_iter().collect(),
        only: Selection { jobs: vec![jobs.into()], ..Selection::default() },
        after,
        repeat: repeat.map(secs),
        ..route(name)
    })
}

/// The facts of one event, in their order; the due time is the n-th minute.
fn facts(job: u64, n: i64, event: Event) -> Vec<Fact> {
    let due = at("00:00") + secs(60 * n.unsigned_abs());
    match event {
        Event::End(status) => vec![ended(record(job, due, status))],
        Event::Attempts(last) => {
            let first = tried_again(record(job, due, Status::Failed), due + secs(30));
            let key = FiringKey { job: JobId(job), due_at: due, trigger: Trigger::Schedule };
            let last = match last {
                Some(status) => {
                    let later = due + secs(30);
                    ended(RunRecord { attempt: 2, due_at: due, first_due_at: due, ..record(job, later, status) })
                }
                None => fact(job, due, What::RetryDropped(key)),
            };
            vec![first, last]
        }
        Event::Late(when) => {
            let due = DueRange { count: 1, first: due, last: due };
            let because = Because::NotStarted;
            let broken = Broken { when, due, limit: due.last + secs(5), because, run: None };
            vec![fact(job, due.last + secs(10), What::Judged(Verdict::Broken(broken)))]
        }
        Event::Kept(when) => vec![fact(job, due + secs(10), What::Judged(Verdict::Kept { when, due_at: due }))],
    }
}

/// The notices that a route should get without `repeat`, by an account of its own.
#[derive(Default)]
struct Account {
    /// Bad ends in a row, and whether one was told.
    bad: BTreeMap<u64, (u32, bool)>,
    open: BTreeSet<(u64, When)>,
    told: Vec<(u64, When, State)>,
}

impl Account {
    fn bad(&mut self, route: &Route, job: u64, when: When) {
        if route.when.contains(&when) {
            let row = self.bad.entry(job).or_default();
            row.0 += 1;
            if row.0 >= route.after {
                row.1 = true;
                self.told.push((job, when, State::Open));
            }
        }
    }

    fn over(&mut self, route: &Route, job: u64, when: When) {
        if self.open.remove(&(job, when)) && route.when.contains(&When::Recovered) {
            self.told.push((job, when, State::Recovered));
        }
    }

    fn open(&mut self, route: &Route, job: u64, when: When) {
        if route.when.contains(&when) {
            self.open.insert((job, when));
            self.told.push((job, when, State::Open));
        }
    }

    fn end(&mut self, route: &Route, job: u64, status: Status) {
        if status != Status::Skipped {
            self.over(route, job, When::Skipped);
        }
        match status {
            Status::Failed => self.bad(route, job, When::Failed),
            Status::TimedOut => self.bad(route, job, When::TimedOut),
            Status::Lost => self.bad(route, job, When::Lost),
            Status::Skipped => self.open(route, job, When::Skipped),
            Status::Succeeded => {
                let (_, told) = self.bad.remove(&job).unwrap_or_default();
                if told && route.when.contains(&When::Recovered) {
                    self.told.push((job, When::Failed, State::Recovered));
                }
            }
            Status::Cancelled | Status::Running => {}
        }
    }

    fn event(&mut self, route: &Route, job: u64, event: Event) {
        match event {
            Event::End(status) => self.end(route, job, status),
            Event::Attempts(last) => {
                self.over(route, job, When::Skipped);
                match last {
                    Some(status) => self.end(route, job, status),
                    None => self.bad(route, job, When::Failed),
                }
            }
            Event::Late(when) => self.open(route, job, when),
            Event::Kept(when) => self.over(route, job, when),
        }
    }
}

fn job_of(notice: &Notice) -> u64 {
    match notice.job.as_deref() {
        Some("invoice") => 1,
        Some(name) => name.trim_start_matches("invoice-").parse().unwrap(),
        None => 0,
    }
}

/// A recovery has the kind of the newest fact that it closes, which is one of its class.
fn comparable(job: u64, when: When, state: State) -> (u64, When, State) {
    let bad = matches!(when, When::Failed | When::TimedOut | When::Lost);
    (job, if bad && state == State::Recovered { When::Failed } else { when }, state)
}

fn selects(route: &Route, job: u64) -> bool {
    let name = if job == 1 { "invoice".to_owned() } else { format!("invoice-{job}") };
    route.only.covers("billing", &name, &BTreeMap::new())
}

fn weight(notices: &[Notice]) -> u64 {
    notices.iter().map(|notice| notice.folded.max(1)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Steps are so far apart that no storm begins.
    #[test]
    fn each_fact_is_told_once_to_each_route_that_asks_for_it(
        one in a_route("one", None),
        other in a_route("other", None),
        events in prop::collection::vec((1u64..4, event(), any::<bool>()), 1..60),
    ) {
        let routes = [one, other];
        let (mut world, mut now, mut waiting) = (World::new(routes.to_vec()), at("12:00"), Vec::new());
        let (mut accounts, mut told) = ([Account::default(), Account::default()], Vec::new());
        for (n, (job, event, ends_step)) in (1..).zip(events) {
            for (route, account) in routes.iter().zip(&mut accounts).filter(|(route, _)| selects(route, job)) {
                account.event(route, job, event);
            }
            for one in facts(job, n, event) {
                waiting.push(one);
                if ends_step || waiting.len() >= 8 {
                    now = now + Storm::SPAN;
                    told.extend(world.step(now, &std::mem::take(&mut waiting)));
                }
            }
        }
        told.extend(world.step(now + Storm::SPAN, &waiting));
        for (route, account) in routes.iter().zip(&accounts) {
            let of_route = told.iter().filter(|notice| notice.route == route.name);
            let seen: Vec<_> =
                of_route.map(|notice| comparable(job_of(notice), notice.when, notice.state)).collect();
            prop_assert_eq!(&seen, &account.told, "{:?}", route);
        }
        let ids: BTreeSet<_> = told.iter().map(|notice| notice.id).collect();
        prop_assert_eq!(ids.len(), told.len(), "every notice has an id of its own");
    }

    #[test]
    fn no_notice_vanishes_in_a_storm(
        route in a_route("one", None),
        steps in prop::collection::vec((0u64..40, prop::collection::vec((1u64..40, event()), 0..60)), 1..12),
    ) {
        let (mut world, mut now) = (World::new(vec![route.clone()]), at("12:00"));
        let (mut account, mut told, mut n) = (Account::default(), Vec::new(), 0);
        for (wait, events) in steps {
            now = now + secs(wait);
            let mut of_step = Vec::new();
            for (job, event) in events {
                n += 1;
                if selects(&route, job) {
                    account.event(&route, job, event);
                }
                of_step.extend(facts(job, n, event));
            }
            told.extend(world.step(now, &of_step));
            prop_assert!(world.storms.values().all(|storm| storm.told <= Storm::MOST));
        }
        for minute in 1..=2 {
            told.extend(world.step(now + Storm::SPAN * minute, &[]));
        }
        prop_assert_eq!(weight(&told), account.told.len() as u64);
        prop_assert!(world.storms.is_empty(), "storms end");
        // A window of a minute holds at most two minutes' worth, as minutes begin with their first notice.
        for first in &told {
            let within = told.iter().filter(|notice| notice.at >= first.at && notice.at < first.at + Storm::SPAN);
            prop_assert!(within.count() <= 2 * (Storm::MOST as usize + 1));
        }
    }

    #[test]
    fn with_repeat_nothing_is_told_sooner_and_a_recovery_follows_its_alert(
        route in a_route("one", Some(300)),
        events in prop::collection::vec((1u64..4, event(), 0u64..400), 1..80),
    ) {
        let (mut world, mut now) = (World::new(vec![route]), at("12:00"));
        let mut open: BTreeMap<_, Timestamp> = BTreeMap::new();
        for (n, (job, event, wait)) in (1..).zip(events) {
            now = now + secs(wait);
            for notice in world.step(now, &facts(job, n, event)).into_iter().filter(|notice| notice.folded == 0) {
                match notice.state {
                    State::Open => {
                        let before = open.insert(notice.thread, now);
                        prop_assert!(before.is_none_or(|before| before + secs(300) <= now), "{notice:?}");
                    }
                    State::Recovered => prop_assert!(open.remove(&notice.thread).is_some(), "{notice:?}"),
                    State::Test => prop_assert!(false),
                }
            }
        }
    }

    /// The truth about each due time is drawn; a look sees as much of it as is recorded by then.
    #[test]
    fn each_due_time_is_judged_once_by_the_truth(
        truth in prop::collection::vec((0u64..200, 1u64..400, 0u8..4), 1..40),
        looks in prop::collection::vec(1u64..900, 1..40),
        within in (1u64..240, 1u64..600),
    ) {
        let begin = at("00:00");
        let timeline = Job::new(("billing", "invoice"), "@every 60s", "{}").timeline(begin).unwrap();
        let expect = Expect {
            start_within: Some(secs(within.0)),
            finish_within: Some(secs(within.0 + within.1)),
            finish_by: None,
        };
        let runs: Vec<RunRecord> = (1..).zip(&truth).map(|(n, (late, took, kind))| {
            let due = begin + secs(60 * n);
            let started = due + secs(*late);
            match kind {
                0 => record(1, due, Status::Skipped),
                kind => RunRecord {
                    started_at: Some(started),
                    finished_at: started + secs(*took),
                    ..record(1, due, if *kind == 1 { Status::Failed } else { Status::Succeeded })
                },
            }
        }).collect();
        let in_time = |run: &RunRecord, when: When| {
            let by = |at: Timestamp, within: u64| at.since(run.due_at) <= secs(within);
            match when {
                When::LateStart => run.started_at.is_some_and(|started| by(started, within.0)),
                _ => run.status == Status::Succeeded && by(run.finished_at, within.0 + within.1),
            }
        };
        let (mut now, mut judged) = (begin, Judged::from(begin));
        let mut broken: BTreeMap<When, u64> = BTreeMap::new();
        for wait in looks {
            now = now + secs(wait);
            let ended: Vec<RunRecord> = runs.iter().filter(|run| run.finished_at <= now).cloned().collect();
            let lives = |run: &&RunRecord| run.finished_at > now && run.started_at.is_some_and(|started| started <= now);
            let live: Vec<LiveRun> = runs.iter().filter(lives).map(|alive| LiveRun {
                run: alive.id,
                due_at: alive.due_at,
                trigger: alive.trigger,
                started_at: alive.started_at.unwrap_or(now),
            }).collect();
            let facts = DueFacts { records: &ended, live: &live, pause: None };
            let judgement = judge(&expect, &timeline, judged, &facts, now);
            for verdict in &judgement.verdicts {
                if let Verdict::Broken(one) = verdict {
                    *broken.entry(one.when).or_default() += one.due.count;
                }
            }
            prop_assert!(judgement.next_look.is_some_and(|look| look > now));
            judged = judgement.judged;
        }
        for (when, within) in [(When::LateStart, within.0), (When::LateFinish, within.0 + within.1)] {
            let judged = |due_at: &Timestamp| *due_at + secs(within) + SETTLE <= now;
            let expected = timeline.after(begin).take_while(judged).filter(|due_at| {
                !runs.iter().any(|run| run.due_at == *due_at && in_time(run, when))
            });
            prop_assert_eq!(broken.get(&when).copied().unwrap_or(0), expected.count() as u64, "{:?}", when);
        }
    }
}
