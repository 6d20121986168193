//! Every kind of fact, read aloud.

use carillon_domain::alert::expect::Paused;
use carillon_domain::alert::{Because, Broken, Ended, Fact, Part, State, Trouble, Verdict, What, When, sentence};
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::run::{DueRange, Reason, RunRecord, Status};

use super::{World, at, ended, fact, of_node, record, route, run, secs};

/// The one notice of a fact: its kind, its sentence and what to do.
fn told(fact: Fact) -> (When, String, String) {
    let notices = World::new(vec![route("ops")]).step(at("12:00"), &[fact]);
    let [notice] = notices.try_into().unwrap();
    assert_eq!((notice.route.as_str(), notice.state), ("ops", State::Open));
    (notice.when, notice.sentence, notice.then)
}

fn broken(when: When, because: Because) -> Fact {
    let due = at("02:00");
    let due = DueRange { count: 1, first: due, last: due };
    fact(1, at("02:05:05"), What::Judged(Verdict::Broken(Broken { when, due, limit: at("02:05"), because, run: None })))
}

#[test]
fn every_kind_has_a_sentence_and_says_what_to_do() {
    let due = at("02:00");
    let of = |status| record(1, due, status);
    let id = of(Status::Failed).id;
    let read = format!("Read its output: carillon run output {id}.");
    let longer = format!("{read} If its work needs longer, give it a longer timeout.");
    let output = What::Ended(Ended { record: of(Status::Succeeded), has_output: true, retry_at: None });
    let window = LossWindow { from_at: at("03:00"), until_at: at("03:02"), noticed_at: at("03:02") };
    let cases = [
        (
            When::Failed,
            ended(of(Status::Failed)),
            "Job billing/invoice failed at 02:00:07 UTC on 24 November 2026: exit code 3 after 7 s.",
            read.as_str(),
        ),
        (
            When::TimedOut,
            ended(of(Status::TimedOut)),
            "Job billing/invoice was ended at 02:00:07 UTC on 24 November 2026, because its timeout passed after 7 s.",
            longer.as_str(),
        ),
        (
            When::Lost,
            ended(of(Status::Lost)),
            "Nobody knows how the run of job billing/invoice ended that started at 02:00 UTC on 24 November 2026: the \
             session of its node ended while it ran.",
            "Look whether its work was done before you run it again.",
        ),
        (
            When::Skipped,
            ended(of(Status::Skipped)),
            "Job billing/invoice did not run at 02:00 UTC on 24 November 2026: the previous run was still alive.",
            "If that happens often, let it come up less often, or choose another overlap policy.",
        ),
        (
            When::LateStart,
            broken(When::LateStart, Because::NotStarted),
            "Job billing/invoice, due at 02:00 UTC on 24 November 2026, did not start by 02:05: no node started it.",
            "Look whether a node runs that has the executor shell and a free place (carillon cluster).",
        ),
        (
            When::LateFinish,
            broken(When::LateFinish, Because::StillRuns(due)),
            "Job billing/invoice, due at 02:00 UTC on 24 November 2026, did not succeed by 02:05: it has been \
             running since 02:00.",
            "Look at its output, and cancel the run if it hangs.",
        ),
        (
            When::Output,
            fact(1, at("02:00:07"), output),
            "Job billing/invoice wrote output; its run ended at 02:00:07 UTC on 24 November 2026.",
            read.as_str(),
        ),
        (
            When::NodeLost,
            of_node("a", at("03:00"), What::Trouble(Trouble::NodeLost { last_heard_at: at("02:59:50"), runs: 3 })),
            "Node a went silent: its last heartbeat was at 02:59:50 UTC on 24 November 2026. It held 3 runs.",
            "Look at that machine; other nodes do its work meanwhile.",
        ),
        (
            When::CommitsLost,
            of_node("a", at("03:02"), What::Trouble(Trouble::CommitsLost(window))),
            "The database went back in time: commits between 03:00 UTC on 24 November 2026 and 03:02 may be \
             lost, and scheduling is suspended.",
            "Look at the database, and accept the loss when it is right again; until then nothing starts.",
        ),
        (
            When::ClockDrift,
            of_node("a", at("03:00"), What::Trouble(Trouble::ClockDrift { drift_ms: -2_300 })),
            "The clock of node a is 2.3 s behind the database's.",
            "Look whether that machine's clock is kept by a time service.",
        ),
        (
            When::DatabaseAway,
            of_node("a", at("03:00"), What::Trouble(Trouble::DatabaseAway { from: at("03:00"), until: at("03:05") })),
            "Node a had no database from 03:00 UTC on 24 November 2026 to 03:05, for 5 min.",
            "It is back. Look at the database's log and at the network between them.",
        ),
        (
            When::DiskFull,
            of_node("a", at("03:00"), What::Trouble(Trouble::DiskFull { path: "/var".into(), free: 12_345_678 })),
            "The disk of /var on node a is nearly full: 12 MB are free.",
            "Make room, or give the node a larger disk.",
        ),
        (
            When::PluginRefused,
            of_node(
                "a",
                at("03:00"),
                What::Trouble(Trouble::PluginRefused { file: "echo.so".into(), why: "others may write to it.".into() }),
            ),
            "Node a does not load the plugin echo.so: others may write to it.",
            "Replace the file; jobs of its executor do not start on that node.",
        ),
        (
            When::CertificateExpires,
            of_node(
                "a",
                at("03:00"),
                What::Trouble(Trouble::CertificateExpires {
                    file: "cert.pem".into(),
                    ends_at: at("12:00") + secs(13 * 86_400),
                }),
            ),
            "The certificate cert.pem of node a ends at 12:00 UTC on 7 December 2026, in 13 days.",
            "Put a new certificate in its place; the node reads it without a restart.",
        ),
    ];
    for (when, fact, sentence, then) in &cases {
        assert_eq!(told(fact.clone()), (*when, (*sentence).to_owned(), (*then).to_owned()));
    }
    let rest: Vec<When> = When::ALL.into_iter().filter(|when| cases.iter().all(|case| case.0 != *when)).collect();
    assert_eq!(rest, [When::Recovered], "which is never the kind of an opening");
}

#[test]
fn a_sentence_tells_times_in_the_zone_of_the_job() {
    let mut fact = ended(record(1, at("22:30"), Status::Failed));
    let mut over = ended(record(1, at("22:40"), Status::Succeeded));
    for fact in [&mut fact, &mut over] {
        let carillon_domain::alert::Subject::Job(job) = &mut fact.subject else { panic!("{fact:?}") };
        job.zone = "Europe/Berlin".into();
    }
    let sentence = "Job billing/invoice failed at 23:30:07 Europe/Berlin on 24 November 2026: exit code 3 after 7 s.";
    assert_eq!(told(fact.clone()).1, sentence);
    let mut world = World::new(vec![route("ops")]);
    world.step(at("23:00"), &[fact]);
    let sentence = "Job billing/invoice succeeded at 23:40:07 Europe/Berlin on 24 November 2026. Before that came 1 \
                    failure, the first at 23:30:07 Europe/Berlin on 24 November 2026.";
    assert_eq!(world.step(at("23:00"), &[over])[0].sentence, sentence);
}

#[test]
fn a_due_time_that_did_not_run_tells_what_to_do() {
    let ask = "Ask for more with: carillon why invoice --namespace billing.";
    let nodes = "Look whether enough nodes run (carillon cluster), and run it now if its work is still wanted.";
    for (reason, then) in [
        (Reason::Misfire, nodes),
        (Reason::Paused, "Run it now if the work of that time is still wanted."),
        (Reason::Updated, ask),
    ] {
        let record = RunRecord { reason: Some(reason), ..record(1, at("02:00"), Status::Skipped) };
        assert_eq!(told(ended(record)).2, then);
    }
}

#[test]
fn a_count_is_an_ordinal() {
    let mut world = World::new(vec![route("ops")]);
    for count in 1..=113 {
        let told = world.step(at("00:00") + secs(count * 600), &[ended(record(1, at("02:00"), Status::Failed))]);
        let expected = match count {
            21 | 31 | 101 => format!("{count}st"),
            22 | 102 => format!("{count}nd"),
            23 | 103 => format!("{count}rd"),
            10..=20 | 100 | 111..=113 => format!("{count}th"),
            _ => continue,
        };
        let end = format!("It is the {expected} failure in a row.");
        assert!(told[0].sentence.ends_with(&end), "{}", told[0].sentence);
    }
}

/// Each class has a noun for one, a noun for several, and words for its end.
#[test]
fn each_class_is_counted_in_its_own_words() {
    let skipped = || ended(record(1, at("02:00"), Status::Skipped));
    let kept = |when| fact(1, at("02:10"), What::Judged(Verdict::Kept { when, due_at: at("02:10") }));
    let day = "UTC on 24 November 2026";
    let (start, finish) = (When::LateStart, When::LateFinish);
    for (bad, over, words, one, many) in [
        (
            skipped(),
            ended(record(1, at("02:10"), Status::Failed)),
            "ran again at 02:10",
            "due time that did not run",
            "due times that did not run",
        ),
        (
            broken(start, Because::NotStarted),
            kept(start),
            "started in time for its due time of 02:10",
            "late start",
            "late starts",
        ),
        (
            broken(finish, Because::NotStarted),
            kept(finish),
            "succeeded in time for its due time of 02:10",
            "late end",
            "late ends",
        ),
    ] {
        for (times, noun) in [(1, one), (3, many)] {
            let mut world = World::new(vec![route("ops")]);
            let told: Vec<_> = (0..times).flat_map(|_| world.step(at("02:06"), std::slice::from_ref(&bad))).collect();
            let in_a_row = told.iter().skip(1).map(|notice| notice.sentence.rsplit(". ").next().unwrap().to_owned());
            let ordinals = ["2nd", "3rd"].map(|ordinal| format!("It is the {ordinal} {one} in a row."));
            assert_eq!(in_a_row.collect::<Vec<_>>(), ordinals[..times - 1]);
            let over = world.step(at("02:11"), std::slice::from_ref(&over));
            let sentence = format!("Job billing/invoice {words} {day}. Before that came {times} {noun}, the first at ");
            assert!(over[0].sentence.starts_with(&sentence), "{}", over[0].sentence);
        }
    }
}

#[test]
fn an_end_tells_its_cause() {
    let failed = || record(1, at("02:00"), Status::Failed);
    let no_program = Some(Reason::Said("no such program: foo.".into()));
    for (record, end) in [
        (
            RunRecord { exit_code: None, signal: Some(9), ..failed() },
            "failed at 02:00:07 UTC on 24 November 2026: signal 9 after 7 s.",
        ),
        (RunRecord { attempt: 3, ..failed() }, "exit code 3 after 7 s. It was attempt 3."),
        (
            RunRecord { reason: no_program.clone(), exit_code: None, ..failed() },
            "failed at 02:00:07 UTC on 24 November 2026: no such program: foo after 7 s.",
        ),
        (
            RunRecord { reason: no_program, exit_code: None, started_at: None, ..failed() },
            "could not be started at 02:00:07 UTC on 24 November 2026: no such program: foo.",
        ),
        (
            RunRecord { status: Status::Lost, started_at: None, reason: Some(Reason::CommitsLost), ..failed() },
            "Nobody knows whether job billing/invoice ran for its due time of 02:00 UTC on 24 November 2026: the database \
             went back in time and forgot it.",
        ),
        (
            RunRecord {
                count: 60,
                first_due_at: at("01:01"),
                reason: Some(Reason::Misfire),
                ..record(1, at("02:00"), Status::Skipped)
            },
            "did not run for 60 due times, from 01:01 UTC on 24 November 2026 to 02:00: no node \
             started it in time, and its misfire policy does not run it.",
        ),
    ] {
        let sentence = told(ended(record)).1;
        assert!(sentence.ends_with(end), "{sentence}");
    }
}

#[test]
fn a_broken_expectation_tells_what_became_of_the_due_time() {
    let pause = Paused { since: at("01:00"), until: Some(at("08:00")), reason: Some("new disks.".into()) };
    let day = "UTC on 24 November 2026";
    for (because, why, then) in [
        (Because::Paused(pause), "the job has been paused since 01:00 until 08:00 (new disks)", "Resume the job"),
        (Because::NotRun(Reason::Overlap), "the previous run was still alive", "Look at the due times before it"),
        (Because::NotRun(Reason::Paused), "the job was paused", "Resume the job"),
        (Because::StartedLate(at("02:07")), "it started at 02:07, 7 min late", "Look whether the nodes"),
        (Because::SucceededLate(at("02:07")), "it succeeded at 02:07", "Look why it took longer"),
        (Because::Ended(Status::TimedOut, at("02:04")), "its run ended at 02:04 as timed_out", "Read the output"),
    ] {
        let (_, sentence, advice) = told(broken(When::LateFinish, because));
        assert!(sentence.ends_with(&format!("did not succeed by 02:05: {why}.")), "{sentence}");
        assert!(advice.starts_with(then), "{advice}");
    }
    let due = DueRange { count: 40, first: at("02:00"), last: at("02:39") };
    let because = Because::StartedLate(at("02:50"));
    let many = Broken { when: When::LateStart, due, limit: at("02:40"), because, run: Some(run(1)) };
    assert_eq!(
        told(fact(1, at("02:51"), What::Judged(Verdict::Broken(many)))).1,
        format!(
            "Job billing/invoice did not start in time for 40 due times in a row, from 02:00 {day} to 02:39. The reason of the \
             last one: it started at 02:50, 11 min late."
        )
    );
}

#[test]
fn what_is_over_is_told_with_its_length() {
    let day = "UTC on 24 November 2026";
    let mut world = World::new(vec![route("ops")]);
    for minute in 1..=3 {
        world.step(at("02:30"), &[ended(record(1, at(&format!("02:0{minute}")), Status::Failed))]);
    }
    let over = world.step(at("02:30"), &[ended(record(1, at("02:04"), Status::Succeeded))]);
    assert_eq!(
        over[0].sentence,
        format!(
            "Job billing/invoice succeeded at 02:04:07 {day}. Before that came 3 failures, the first at 02:01:07 {day}."
        )
    );
    assert_eq!(over[0].then, "Nothing is to be done.");
    for (trouble, sentence) in [
        (Trouble::NodeLost { last_heard_at: at("01:00"), runs: 0 }, "Node a is back."),
        (Trouble::ClockDrift { drift_ms: 5_000 }, "The clock of node a agrees with the database's again."),
        (Trouble::DiskFull { path: "/".into(), free: 0 }, "There is room again on the disk of node a."),
    ] {
        let when = trouble.when();
        world.step(at("03:00"), &[of_node("a", at("03:00"), What::Trouble(trouble))]);
        let over = world.step(at("03:10"), &[of_node("a", at("03:10"), What::Over(when))]);
        assert_eq!(over[0].sentence, format!("{sentence} The trouble began at 03:00 {day}."));
        assert_eq!((over[0].when, over[0].state), (when, State::Recovered));
    }
    // A file keeps the letters of its name.
    let file = |thing: &str| Part { thing: Some(thing.into()), ..Part::node("a") };
    for (part, when, sentence) in [
        (Part::default(), When::CommitsLost, "The loss of commits was accepted, and scheduling goes on."),
        (file("server.pem"), When::CertificateExpires, "The certificate server.pem of node a was renewed."),
        (file("echo.so"), When::PluginRefused, "The plugin echo.so of node a is loaded again, or was taken away."),
    ] {
        assert_eq!(sentence::of_over(&part, when), sentence);
    }
}
