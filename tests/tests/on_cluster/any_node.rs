//! Whichever node is asked: run now, output, cancel and pause work on jobs and runs of the other one.

use carillon_tests::cluster::{Cluster, PATIENT, STEADY};
use carillon_tests::fixture::{Gate, lines, wait_for_lines};
use carillon_tests::follower::{follow, line, rest};
use carillon_tests::jobs::{NEVER, job, status, text};
use carillon_tests::server::Server;
use nix::sys::signal::Signal;
use serde_json::json;

/// Two nodes on one database.
struct Pair {
    nodes: Vec<Server>,
    cluster: Cluster,
}

impl Pair {
    fn start() -> Self {
        Self::start_with(PATIENT)
    }

    fn start_with(session: &str) -> Self {
        let cluster = Cluster::new(&super::database().url(), session);
        Self { nodes: ["a", "b"].map(|name| cluster.node(name)).into(), cluster }
    }

    /// The node that runs a run, and the one that does not.
    fn of(&self, run: &str) -> (&Server, &Server) {
        let started = self.nodes[0].started(run);
        match text(&started, "node") {
            "a" => (&self.nodes[0], &self.nodes[1]),
            _ => (&self.nodes[1], &self.nodes[0]),
        }
    }

    fn run_now(&self, name: &str, command: &str) -> String {
        self.nodes[0].create(&job(name, NEVER, command, json!({})));
        self.nodes[0].run_now(name)
    }
}

fn output(server: &Server, run: &str) -> (u16, String) {
    let (status, _, text) = server.call_raw("GET", &format!("/v1/runs/{run}/output"), &[], None);
    (status, text)
}

#[test]
fn output_is_followed_at_the_other_node_line_by_line_to_the_end() {
    let pair = Pair::start();
    let stop = pair.cluster.dir().join("stop");
    let command = format!(
        "n=0; while ! [ -e {} ] && [ $n -lt 150 ]; do n=$((n+1)); echo line $n; sleep 0.2; done; echo the end",
        stop.display()
    );
    let run = pair.run_now("talker", &command);
    let (owner, other) = pair.of(&run);
    let mut followers: Vec<_> = [other, other, owner].map(|node| follow(node, &run)).into();
    for reader in &mut followers {
        for n in 1..=10 {
            assert_eq!(line(reader), format!("line {n}\n"));
        }
    }
    assert_eq!(status(&other.run(&run)), "running", "all of that was read before the end");
    let mut late = follow(other, &run);
    assert_eq!(line(&mut late), "line 1\n", "who comes late gets what was printed before");
    std::fs::write(&stop, "").expect("a file can be written");
    let ends: Vec<String> = followers.iter_mut().map(rest).collect();
    let late = format!("line 1\n{}", rest(&mut late));
    assert_eq!(status(&other.ended(&run)), "succeeded");
    let (_, kept) = output(other, &run);
    assert!(kept.ends_with("the end\n"), "{kept}");
    for end in ends {
        let begin: String = (1..=10).map(|n| format!("line {n}\n")).collect();
        assert_eq!(begin + &end, kept, "in order, nothing twice, nothing left out");
    }
    assert_eq!(late, kept);
}

#[test]
fn what_was_printed_so_far_is_told_by_any_node() {
    let pair = Pair::start();
    let gate = Gate::new(pair.cluster.dir(), "gate");
    let printed = pair.cluster.dir().join("printed");
    let said = format!("echo said >> {}", printed.display());
    let run = pair.run_now("slow", &format!("echo one; {said}; {0}; echo two; {said}; {0}", gate.wait()));
    let (owner, other) = pair.of(&run);
    for (times, so_far) in [(1, "one\n"), (2, "one\ntwo\n")] {
        wait_for_lines(&printed, times);
        for node in [owner, other] {
            // The output of a command takes a moment to come through its pipe.
            node.wait_until("it is told", || output(node, &run) == (200, so_far.to_owned()));
            node.wait_until("it is shown", || node.run(&run)["output"] == so_far);
        }
        gate.open();
    }
    assert_eq!(status(&other.ended(&run)), "succeeded");
    assert_eq!(output(other, &run), (200, "one\ntwo\n".to_owned()));
}

#[test]
fn a_cancel_reaches_the_node_that_runs_it_even_while_that_drains() {
    let pair = Pair::start();
    let run = pair.run_now("long", "sleep 1000");
    let (_, other) = pair.of(&run);
    let cancel = |node: &Server, run: &str| {
        let (code, answer) = node.call("POST", &format!("/v1/runs/{run}/cancel"), Some(&json!({})));
        assert_eq!((code, &answer["cancelling"]), (202, &json!(true)), "{answer}");
    };
    cancel(other, &run);
    assert_eq!(status(&other.ended(&run)), "cancelled");

    let run = other.run_now("long");
    let (owner, other) = pair.of(&run);
    owner.signal(Signal::SIGTERM);
    other.wait_until("it drains", || super::sessions(other).iter().any(|session| session["state"] == "draining"));
    cancel(other, &run);
    let ended = other.ended(&run);
    assert_eq!((status(&ended), text(&ended, "reason")), ("cancelled", "cancelled"));
}

#[test]
fn run_now_and_wait_works_at_any_node() {
    let pair = Pair::start();
    for (asked, name) in pair.nodes.iter().zip(["a", "b"]) {
        // Which node a job falls to is drawn anew in each cluster: one of so many falls to the other.
        let ran_elsewhere = (0..60).any(|n| {
            let job_name = format!("job-{name}-{n}");
            asked.create(&job(&job_name, NEVER, &format!("echo {job_name} has run"), json!({})));
            let done = super::carillon(asked, &["job", "run", &job_name, "--wait"]);
            let (said, noted) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            assert_eq!((done.status.code(), &*said), (Some(0), &*format!("{job_name} has run\n")), "{noted}");
            text(&asked.runs(&job_name)[0], "node") != name
        });
        assert!(ran_elsewhere, "the other node has run none");
    }
}

#[test]
fn a_pause_holds_whichever_node_was_asked() {
    let pair = Pair::start();
    let started = pair.cluster.dir().join("started");
    pair.nodes[0].create(&job("tick", "@every 1s", &format!("echo x >> {}", started.display()), json!({})));
    for (pausing, resuming) in [(0, 1), (1, 0)] {
        let before = lines(&started).len();
        wait_for_lines(&started, before + 1);
        let (pausing, resuming) = (&pair.nodes[pausing], &pair.nodes[resuming]);
        assert_eq!(pausing.post("/v1/jobs/tick/pause", &json!({}))["paused"], true);
        resuming.wait_until("idle", || resuming.get("/v1/jobs/tick")["state"] == "idle");
        let before = lines(&started).len();
        // Another job, which is due each second too, says that time passes.
        let clock = pair.cluster.dir().join(format!("clock-{before}"));
        let name = format!("clock-{before}");
        resuming.create(&job(&name, "@every 1s", &format!("echo x >> {}", clock.display()), json!({})));
        wait_for_lines(&clock, 3);
        assert_eq!(lines(&started).len(), before, "nothing starts while paused");
        resuming.post("/v1/jobs/tick/resume", &json!({}));
        wait_for_lines(&started, before + 1);
    }
}

#[test]
fn a_follower_ends_when_the_run_is_lost_with_its_node() {
    let mut pair = Pair::start_with(STEADY);
    let run = pair.run_now("lonely", "echo begun; sleep 60");
    let (_, other) = pair.of(&run);
    let mut reader = follow(other, &run);
    assert_eq!(line(&mut reader), "begun\n");
    let owner = usize::from(text(&other.run(&run), "node") == "b");
    pair.nodes.remove(owner).kill();
    let said = rest(&mut reader);
    assert_eq!(status(&pair.nodes[0].run(&run)), "lost");
    assert_eq!(said, "\n[some output was left out here]\n", "nothing was kept of it");
}
