//! Looks of a feed: what was recorded since the last one, and the present state.

use std::time::Duration;

use carillon_domain::id::RunId;
use carillon_domain::job::{Job, Overlap};
use carillon_domain::run::Status;
use carillon_domain::store::Author;
use carillon_domain::time::Timestamp;
use carillon_doubles::author;
use carillon_store::feed::{
    AuditLine, Entry, FeedLook, FeedRequest, Fresh, Journal, JournalAsk, Numbered, Present, Span, Tail,
};
use carillon_store::{RunStage, RunView, SessionState};

use super::fixture::{StoreFixture, job, key};

/// One look at the history.
struct Look {
    now: Timestamp,
    commits_within: Duration,
    runs: Numbered<RunView>,
}

async fn look(bench: &StoreFixture, runs: JournalAsk) -> Look {
    let request = FeedRequest { journals: [runs, JournalAsk::newest()], present: false };
    let FeedLook { now, commits_within, journals: [runs, _], .. } = bench.store.look(&request).await.unwrap();
    let of_run = |entry| match entry {
        Entry::Run(view) => view,
        other @ Entry::Audit(_) => panic!("not of the history: {other:?}"),
    };
    Look { now, commits_within, runs: runs.map(of_run) }
}

/// One look at the audit log.
async fn look_at_log(bench: &StoreFixture, log: JournalAsk) -> Numbered<AuditLine> {
    let request = FeedRequest { journals: [JournalAsk::newest(), log], present: false };
    let [_, log] = bench.store.look(&request).await.unwrap().journals;
    log.map(|entry| match entry {
        Entry::Audit(line) => line,
        other @ Entry::Run(_) => panic!("not of the audit log: {other:?}"),
    })
}

async fn present(bench: &StoreFixture) -> Present {
    let request = FeedRequest { journals: [const { JournalAsk::newest() }; Journal::ALL.len()], present: true };
    bench.store.look(&request).await.unwrap().present.unwrap()
}

fn above(after: u64) -> JournalAsk {
    JournalAsk { after, limit: 1_000, gaps: Vec::new() }
}

fn ids(look: &Look) -> Vec<RunId> {
    look.runs.rows.iter().map(|(_, view)| view.id).collect()
}

/// Runs the job's next firing to its end.
async fn run_once(bench: &StoreFixture, status: Status) -> RunId {
    let at = bench.run_next().await;
    bench.finish(at, status).await;
    at.run
}

/// A run that ended is told with its record, and not told again above its number. Due times that did not run are told too.
pub async fn a_look_tells_what_was_recorded_since(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let nothing = look(bench, above(0)).await;
    assert_eq!((nothing.runs.newest, nothing.runs.rows.len()), (0, 0));
    let run = run_once(bench, Status::Failed).await;
    let first = look(bench, above(0)).await;
    assert_eq!((ids(&first), first.now), (vec![run], bench.clock_in(0)));
    assert_eq!(first.runs.rows[0].1, bench.store.run(run).await.unwrap());
    assert_eq!(first.runs.newest, first.runs.rows[0].0);
    assert!(look(bench, above(first.runs.newest)).await.runs.rows.is_empty());
    bench.store.pause(&key("a"), None, None, &author()).await.unwrap();
    bench.clock.advance(Duration::from_secs(35));
    bench.store.resume(&key("a"), &author()).await.unwrap();
    let skipped = look(bench, above(first.runs.newest)).await.runs.rows;
    let [(_, RunView { stage: RunStage::Recorded { record, .. }, .. })] = &skipped[..] else { panic!("{skipped:?}") };
    assert_eq!((record.status, record.count), (Status::Skipped, 3));
}

/// Runs in the job's row and beside it, from the start to the end; not what is only prepared.
pub async fn a_look_shows_what_executes(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let own = bench.run_next().await;
    bench.create(Job { overlap: Overlap::Allow, ..job("b") }).await;
    let beside = bench.run_next().await;
    bench.create(job("c")).await;
    assert!(!bench.claim().await.is_empty(), "something is prepared");
    let running = present(bench).await.running;
    let shown: Vec<RunId> = running.iter().map(|view| view.id).collect();
    assert!(shown.len() == 2 && shown.contains(&own.run) && shown.contains(&beside.run), "{running:?}");
    for view in running {
        assert_eq!(view, bench.store.run(view.id).await.unwrap());
        assert!(matches!(view.stage, RunStage::Running { .. }) && view.node.as_deref() == Some("node-1"));
    }
    bench.finish(own, Status::Succeeded).await;
    let left: Vec<RunId> = present(bench).await.running.iter().map(|view| view.id).collect();
    assert_eq!(left, [beside.run]);
    bench.finish(beside, Status::Succeeded).await;
    assert_eq!(present(bench).await.running, []);
}

/// Their states and heartbeats.
pub async fn a_look_shows_the_sessions(bench: &StoreFixture) {
    let other = bench.session(2).await;
    let states = async || {
        let sessions = present(bench).await.sessions;
        sessions.into_iter().map(|view| (view.node, view.beat.state)).collect::<Vec<_>>()
    };
    let (one, two) = ("node-1".to_owned(), "node-2".to_owned());
    assert_eq!(states().await, [(one.clone(), SessionState::Live), (two, SessionState::Live)]);
    bench.store.close_session(other).await.unwrap();
    assert_eq!(states().await, [(one, SessionState::Live)]);
}

/// A reader that knows a number finds what came behind it, although everything up to it was deleted.
pub async fn a_number_is_never_used_again(bench: &StoreFixture) {
    bench.create(job("a")).await;
    for _ in 0..3 {
        run_once(bench, Status::Succeeded).await;
    }
    let known = look(bench, above(0)).await.runs.newest;
    bench.clock.advance(Duration::from_secs(3_600));
    let now = bench.clock_in(0);
    let mut purged = 0;
    while purged < 3 {
        let part = bench.store.purge(now, 10_000, 100).await.unwrap();
        assert!(part > 0, "history stays");
        purged += part;
    }
    let next = run_once(bench, Status::Failed).await;
    let found = look(bench, above(known)).await;
    assert!(ids(&found).contains(&next) && found.runs.newest > known, "{known}: {:?}", found.runs);
}

/// Gaps are asked for by number, pages are bounded, and both come in ascending order.
pub async fn rows_are_found_by_their_numbers(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let mut told = Vec::new();
    for _ in 0..5 {
        told.push(run_once(bench, Status::Succeeded).await);
    }
    let all = look(bench, above(0)).await.runs;
    let numbers: Vec<u64> = all.rows.iter().map(|(number, _)| *number).collect();
    assert!(numbers.is_sorted() && numbers.len() == 5 && all.newest == numbers[4], "{numbers:?}");
    let one = |at: usize| Span { first: numbers[at], last: numbers[at] };
    let gaps = vec![one(0), Span { first: numbers[1] + 1, last: numbers[3] }];
    let found = look(bench, JournalAsk { gaps, ..JournalAsk::newest() }).await;
    assert_eq!((ids(&found), found.runs.newest), (vec![told[0], told[2], told[3]], numbers[4]));
    let both = JournalAsk { after: numbers[1], limit: 2, gaps: vec![one(0)] };
    assert_eq!(ids(&look(bench, both).await), [told[0], told[2], told[3]]);
}

/// Each entry once, with the generation where a job was changed, and none of its documents.
pub async fn a_look_tells_who_changed_what(bench: &StoreFixture) {
    let (store, name) = (&bench.store, key("a"));
    assert_eq!(look_at_log(bench, above(0)).await, Numbered::default());
    bench.put(job("a")).await;
    bench.clock.advance(Duration::from_secs(1));
    bench.put(Job { params: r#"{"command":"false"}"#.into(), ..job("a") }).await;
    let by = Author::new("ann", "10.0.0.1 carillon/0.1.0");
    store.pause(&name, None, None, &by).await.unwrap();
    store.resume(&name, &by).await.unwrap();
    let run = bench.draw();
    store.trigger(&name, run, &by).await.unwrap();
    store.cancel(run, &by).await.unwrap();
    store.delete_job(&name, None, &by).await.unwrap();
    bench.put(job("a")).await;
    let all = look_at_log(bench, above(0)).await;
    let told = all.rows.iter().map(|(_, line)| (line.action.as_str(), line.generation, line.who.as_str()));
    let tester = &*author().name;
    let expected = [
        ("job.created", Some(1), tester),
        ("job.updated", Some(2), tester),
        ("job.paused", Some(2), "ann"),
        ("job.resumed", Some(2), "ann"),
        ("job.run", None, "ann"),
        ("run.cancelled", None, "ann"),
        ("job.deleted", Some(2), "ann"),
        ("job.created", Some(1), tester),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert!(all.rows.iter().all(|(_, line)| line.job.as_ref() == Some(&name)));
    assert!(all.rows[0].1.at < all.rows[1].1.at && all.rows[7].1.at == bench.clock_in(0), "{all:?}");
    let numbers: Vec<u64> = all.rows.iter().map(|(number, _)| *number).collect();
    assert!(numbers.is_sorted() && all.newest == numbers[7], "{numbers:?}");
    let gaps = vec![Span { first: numbers[1], last: numbers[2] }];
    let some = look_at_log(bench, JournalAsk { after: numbers[5], limit: 1, gaps }).await;
    assert_eq!(some.rows, [1, 2, 6].map(|at| all.rows[at].clone()));
    assert_eq!(look_at_log(bench, above(all.newest)).await, Numbered { newest: all.newest, rows: Vec::new() });
}

/// A reader that tells rows by ascending numbers tells the runs of a job in their order.
pub async fn the_numbers_of_a_job_follow_its_commits(bench: &StoreFixture) {
    bench.create(job("a")).await;
    bench.create(job("b")).await;
    let mut ended = Vec::new();
    for _ in 0..6 {
        let claimed = bench.claim().await;
        for one in claimed {
            bench.clock.set(bench.clock_in(0).max(one.held.firing.start_at));
            let at = bench.started(&one).await;
            bench.finish(at, Status::Succeeded).await;
            ended.push(at.run);
        }
    }
    assert_eq!(ids(&look(bench, above(0)).await), ended);
}

/// Whatever is recorded between two looks.
pub async fn a_tail_tells_every_record_once(bench: &StoreFixture) {
    for name in ["a", "b", "c"] {
        bench.create(job(name)).await;
    }
    let (mut tail, mut told) = (Tail::after(0), Vec::new());
    for round in 0..12_u64 {
        for claimed in bench.claim().await {
            bench.clock.set(bench.clock_in(0).max(claimed.held.firing.start_at));
            let at = bench.started(&claimed).await;
            bench.finish(at, Status::Succeeded).await;
        }
        let begun = Duration::from_secs(round);
        let found = look(bench, tail.ask(if round == 11 { 1_000 } else { 2 })).await;
        let numbers: Vec<u64> = found.runs.rows.iter().map(|(number, _)| *number).collect();
        let Fresh::Rows(fresh) = tail.take(begun, &numbers, found.runs.newest, found.commits_within) else {
            panic!("it went back");
        };
        told.extend(ids(&found).into_iter().zip(fresh).filter(|(_, fresh)| *fresh).map(|(run, _)| run));
    }
    let mut recorded = Vec::new();
    for name in ["a", "b", "c"] {
        recorded.extend(bench.records(name).await.into_iter().map(|record| record.id));
    }
    recorded.sort_unstable();
    told.sort_unstable();
    assert!(told.len() >= 12, "{}", told.len());
    assert_eq!(told, recorded);
}
