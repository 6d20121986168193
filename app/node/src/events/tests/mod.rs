//! The events of looks: their order and their marks.

mod changes;
mod feed;

use std::collections::BTreeSet;
use std::time::Duration;

use carillon_domain::firing::{Firing, Held};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::measured::Usage;
use carillon_domain::run::{RunRecord, Status, Trigger};
use carillon_domain::time::Timestamp;
use carillon_store::feed::{AuditLine, Entry, FeedLook, JournalAsk, Numbered, Present};
use carillon_store::{JobKey, RunStage, RunView, SessionBeat, SessionState, SessionView};
use serde_json::Value;

use super::follow::{Follower, Taken};
use super::mark::Mark;
use super::ring::Told;

const WITHIN: Duration = Duration::from_secs(40);

fn run_id(number: u64) -> RunId {
    RunId::drawn(SessionId::from_random(1), number)
}

fn view(number: u64, stage: RunStage) -> RunView {
    let key = JobKey { namespace: "default".into(), name: "a".into() };
    RunView { id: run_id(number), job_id: JobId(1), key, node: Some("n1".into()), stage, params: None }
}

fn ended(number: u64) -> RunView {
    let at = Timestamp::from_ms(1_000 * i64::try_from(number).unwrap());
    let record = RunRecord {
        id: run_id(number),
        job: JobId(1),
        due_at: at,
        trigger: Trigger::Schedule,
        attempt: 1,
        status: Status::Failed,
        reason: None,
        exit_code: Some(7),
        signal: None,
        started_at: Some(at),
        finished_at: at,
        lag_ms: Some(0),
        prepared_ms: Some(0),
        usage: Usage::default(),
        session: Some(SessionId::from_random(1)),
        fencing_token: Some(9),
        count: 1,
        first_due_at: at,
    };
    view(number, RunStage::Recorded { record: Box::new(record), output_truncated: false })
}

fn skipped(number: u64) -> RunView {
    let RunStage::Recorded { record, .. } = ended(number).stage else { unreachable!() };
    let record = RunRecord { status: Status::Skipped, started_at: None, session: None, ..*record };
    view(number, RunStage::Recorded { record: Box::new(record), output_truncated: false })
}

fn running(number: u64) -> RunView {
    let due_at = Timestamp::from_ms(1_000);
    let held = Held {
        firing: Firing::regular(due_at),
        run: run_id(number),
        session: SessionId::from_random(1),
        started_at: Some(due_at),
        fencing_token: 9,
    };
    view(number, RunStage::Running { held, cancelling: false })
}

fn session(number: u64, seq: u64, state: SessionState) -> SessionView {
    let beat = SessionBeat { id: SessionId::from_random(number), seq, state };
    let at = Timestamp::from_ms(5);
    let (node, address, version) = (format!("n{number}"), String::new(), String::new());
    let (prepared, executing, server, terms, wrote_back) = (0, 0, None, None, None);
    SessionView {
        beat,
        node,
        address,
        version,
        started_at: at,
        heartbeat_at: at,
        server,
        terms,
        wrote_back,
        prepared,
        executing,
    }
}

fn answer(runs: Numbered<Entry>, changes: Numbered<Entry>, present: Option<Present>) -> FeedLook {
    FeedLook { now: Timestamp::from_ms(9_000), commits_within: WITHIN, journals: [runs, changes], present }
}

/// The rows of a journal that were asked for.
fn found(asked: &JournalAsk, rows: impl Iterator<Item = (u64, Entry)>) -> Numbered<Entry> {
    let in_gap = |number: u64| asked.gaps.iter().any(|span| span.first <= number && number <= span.last);
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(number, _)| *number);
    let newest = rows.last().map_or(0, |(number, _)| *number);
    let (above, below): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(number, _)| *number > asked.after);
    Numbered { newest, rows: below.into_iter().filter(|(number, _)| in_gap(*number)).chain(above).collect() }
}

/// A follower, and the database that it looks at.
struct Bench {
    follower: Follower,
    rows: Vec<(u64, RunView)>,
    changes: Vec<(u64, AuditLine)>,
    running: Vec<RunView>,
    sessions: Vec<SessionView>,
    looks: u64,
}

impl Bench {
    fn new() -> Self {
        let at_100 = Numbered { newest: 100, rows: Vec::new() };
        let look = answer(at_100, Numbered::default(), None);
        let mut bench = Self {
            follower: Follower::begin(&look, 50),
            rows: vec![(100, ended(100))],
            changes: Vec::new(),
            running: Vec::new(),
            sessions: Vec::new(),
            looks: 0,
        };
        let first = bench.told();
        assert_eq!(first, ["run.ended 100"], "what was recorded before is kept for readers that resume");
        bench
    }

    fn take(&mut self) -> Taken {
        let asked = self.follower.request();
        let runs =
            found(&asked.journals[0], self.rows.iter().map(|(number, view)| (*number, Entry::Run(view.clone()))));
        let changes = self.changes.iter().map(|(number, line)| (*number, Entry::Audit(line.clone())));
        let changes = found(&asked.journals[1], changes);
        let present = Present { running: self.running.clone(), sessions: self.sessions.clone() };
        self.looks += 1;
        self.follower.take(Duration::from_secs(self.looks), &asked, answer(runs, changes, Some(present)))
    }

    fn next(&mut self) -> Vec<Told> {
        match self.take() {
            Taken::Told { told, .. } => told,
            Taken::WentBack => panic!("it went back"),
        }
    }

    fn told(&mut self) -> Vec<String> {
        self.next().iter().map(said).collect()
    }
}

fn data(told: &Told) -> Value {
    let text = String::from_utf8(told.event().frame.to_vec()).unwrap();
    serde_json::from_str(text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap()).unwrap()
}

/// The kind and the number of the run, the action and the job, or the node and its state.
fn said(told: &Told) -> String {
    let data = data(told);
    match data.get("session") {
        Some(session) => format!("{} {}", session["node"].as_str().unwrap(), session["state"].as_str().unwrap()),
        None if data["run"].is_null() => {
            let job = data["job"]["name"].as_str().or(data["job"].as_str());
            format!("{} {}", data["action"].as_str().unwrap(), job.unwrap_or("of the cluster"))
        }
        None => {
            let id: RunId = data["run"]["id"].as_str().unwrap().parse().unwrap();
            format!("{} {}", data["type"].as_str().unwrap(), id.parts().1)
        }
    }
}

fn mark_in(told: &Told) -> Option<u64> {
    let text = String::from_utf8(told.event().frame.to_vec()).unwrap();
    let id = text.lines().find_map(|line| line.strip_prefix("id: ").map(str::to_owned))?;
    Mark::parse(&id).map(|mark| mark.numbers[0])
}

#[test]
fn a_run_is_told_when_it_starts_and_when_it_ends() {
    let mut bench = Bench::new();
    bench.running = vec![running(101)];
    let started = bench.next();
    assert_eq!(started.iter().map(said).collect::<Vec<_>>(), ["run.started 101"]);
    let run = &data(&started[0])["run"];
    assert_eq!((run["status"].as_str(), run["node"].as_str()), (Some("running"), Some("n1")));
    assert!(bench.told().is_empty(), "it still runs");
    bench.running.clear();
    bench.rows.push((101, ended(101)));
    let ended = bench.next();
    assert_eq!(ended.iter().map(said).collect::<Vec<_>>(), ["run.ended 101"]);
    let event = data(&ended[0]);
    assert_eq!(event["key"], format!("run:{}:ended", run_id(101)));
    assert_eq!((event["run"]["exit_code"].as_i64(), event["namespace"].as_str()), (Some(7), Some("default")));
    assert!(bench.told().is_empty());
}

#[test]
fn a_job_is_told_in_the_order_of_its_commits() {
    let mut bench = Bench::new();
    bench.running = vec![running(101)];
    bench.told();
    // Between two looks its run ended, another one came and went, due times were skipped, and a third one runs.
    bench.rows.extend([(101, ended(101)), (102, ended(102)), (103, skipped(103))]);
    bench.running = vec![running(104)];
    let expected = ["run.ended 101", "run.started 102", "run.ended 102", "run.skipped 103", "run.started 104"];
    assert_eq!(bench.told(), expected);
}

#[test]
fn a_start_that_comes_with_its_end_is_that_of_a_run_that_runs() {
    let mut bench = Bench::new();
    bench.rows.push((101, ended(101)));
    let told = bench.next();
    let (start, end) = (data(&told[0]), data(&told[1]));
    assert_eq!((start["type"].as_str(), end["type"].as_str()), (Some("run.started"), Some("run.ended")));
    assert_eq!(start["run"]["status"], "running");
    for later in ["finished_at", "exit_code", "reason", "signal"] {
        assert_eq!(start["run"][later], Value::Null, "{later}");
    }
    assert_eq!(start["run"]["started_at"], end["run"]["started_at"]);
}

/// The rows above a mark and those that the reader got before it are all rows.
#[test]
fn a_reader_that_is_cut_off_anywhere_misses_nothing() {
    let mut bench = Bench::new();
    let mut all: BTreeSet<u64> = [100].into();
    let (mut got, mut marks) = (BTreeSet::from([100]), Vec::new());
    for commits in [vec![101, 104, 105], vec![103, 108], vec![102, 110], vec![], vec![106, 111, 109, 107]] {
        all.extend(&commits);
        bench.rows.extend(commits.into_iter().map(|number| (number, ended(number))));
        for told in bench.next() {
            if let (Told::Row(row), Some(mark)) = (&told, mark_in(&told)) {
                got.insert(row.number);
                marks.push((mark, got.clone()));
            }
        }
    }
    assert_eq!(got, all);
    for (mark, got) in marks {
        let missed: Vec<&u64> = all.iter().filter(|number| **number <= mark && !got.contains(number)).collect();
        assert!(missed.is_empty(), "a reader that resumes at {mark} misses {missed:?}");
    }
    assert_eq!(bench.follower.mark().numbers[0], 50, "what may have been under way when it began is waited for");
    bench.sessions = vec![session(1, 0, SessionState::Live)];
    for beat in 0..100 {
        bench.sessions[0].beat.seq = beat;
        bench.take();
    }
    assert_eq!(bench.follower.mark().numbers[0], 111, "the database goes on, and no transaction lives so long");
}

#[test]
fn sessions_are_told_when_their_state_changes() {
    let mut bench = Bench::new();
    bench.sessions = vec![session(1, 0, SessionState::Live), session(2, 0, SessionState::Live)];
    assert_eq!(bench.told(), ["n1 live", "n2 live"]);
    bench.sessions[0].beat.seq = 9;
    assert!(bench.told().is_empty(), "a heartbeat is no news");
    bench.sessions[1].beat.state = SessionState::Draining;
    assert_eq!(bench.told(), ["n2 draining"]);
    bench.sessions.pop();
    assert_eq!(bench.told(), ["n2 ended"]);
    bench.sessions[0].beat.state = SessionState::Ended;
    assert_eq!(bench.told(), ["n1 ended"]);
    bench.sessions.clear();
    assert!(bench.told().is_empty(), "it was told as ended before it was removed");
}

#[test]
fn the_present_state_is_not_news_at_first_and_is_told_to_those_who_resume() {
    let look = answer(Numbered::default(), Numbered::default(), None);
    let mut follower = Follower::begin(&look, 50);
    let present = Present { running: vec![running(7)], sessions: vec![session(1, 0, SessionState::Live)] };
    let asked = follower.request();
    let look = answer(Numbered::default(), Numbered::default(), Some(present));
    let Taken::Told { told, all } = follower.take(WITHIN, &asked, look) else { panic!("it went back") };
    assert!(told.is_empty() && all);
    let present: Vec<String> = follower.present().into_iter().map(|event| said(&Told::Event(event))).collect();
    assert_eq!(present, ["run.started 7", "n1 live"]);
}

#[test]
fn a_look_that_has_not_read_everything_says_nothing_of_the_present() {
    let mut bench = Bench::new();
    bench.rows.extend((101..=1_100).map(|number| (number, ended(number))));
    bench.running = vec![running(2_000)];
    let Taken::Told { told, all } = bench.take() else { panic!("it went back") };
    assert!(!all && told.len() == 2_000, "a start and an end for each: {}", told.len());
    assert_eq!(bench.told(), ["run.started 2000"]);
}

#[test]
fn a_database_that_went_back_is_noticed() {
    let mut bench = Bench::new();
    bench.rows.clear();
    assert!(matches!(bench.take(), Taken::WentBack));
}
