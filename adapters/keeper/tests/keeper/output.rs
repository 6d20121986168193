//! Output: its order, its bounds, and that the output of one run delays no other run.

use carillon_executors::executor::{Outcome, Stop};

use crate::node::Node;
use crate::support::*;
use crate::tests;

tests![
    stdout_and_stderr_keep_their_order,
    live_output_comes_before_the_end,
    the_first_and_the_last_32_kib_stay,
    endless_output_delays_nobody,
    a_node_that_does_not_read_costs_no_memory,
];

fn stdout_and_stderr_keep_their_order() {
    let exit = run(async { finish(&keeper(true), script("for i in {1..500}; do echo o$i; echo e$i >&2; done")).await });
    let expected: String = (1..=500).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(text(&exit), expected);
    assert!(!exit.output_truncated);
}

fn live_output_comes_before_the_end() {
    let mut witness = Witness::new();
    let fifo = witness.path();
    run(async {
        let (sender, mut live) = heard();
        let keeper = keeper(true);
        let mut child = keeper
            .spawn(script(&format!("echo first; exec 9>{}; echo up >&9; exec sleep 1000", fifo.display())), sender);
        assert_eq!(live.recv().await.unwrap(), b"first\n");
        child.stop(Stop::Now);
        let exit = child.exit().await;
        assert_eq!((exit.how, text(&exit)), (Outcome::Cancelled, "first\n"));
        assert_eq!(live.recv().await, None, "the channel closes with the run");
    });
    witness.is_dead();
}

fn the_first_and_the_last_32_kib_stay() {
    let exit = run(async { finish(&keeper(true), script("echo begin; seq 1 100000; echo -n end")).await });
    assert!(exit.output_truncated);
    assert_eq!(exit.output.len(), 64 << 10);
    assert!(exit.output.starts_with(b"begin\n1\n2\n") && exit.output.ends_with(b"99999\n100000\nend"));
}

fn endless_output_delays_nobody() {
    run(async {
        let keeper = keeper(true);
        let mut endless = [start(&keeper, argv(["yes"])), start(&keeper, argv(["cat", "/dev/zero"]))];
        for _ in 0..20 {
            assert_eq!(finish(&keeper, script("echo quick")).await.output, b"quick\n");
        }
        let mut timed = script("exec yes");
        timed.timeout = Some(std::time::Duration::from_millis(50));
        assert_eq!(finish(&keeper, timed).await.how, Outcome::TimedOut);
        for child in &mut endless {
            child.stop(Stop::Politely);
            let exit = child.exit().await;
            assert_eq!((exit.how, exit.output.len(), exit.output_truncated), (Outcome::Cancelled, 64 << 10, true));
        }
    });
}

fn a_node_that_does_not_read_costs_no_memory() {
    if !is_root() {
        return skip("reading /proc/PID/io of the keeper needs root");
    }
    let node = Node::start(3_600_000, true, "-", &["exec yes"]);
    let read = || proc_number(node.keeper, "io", "rchar:");
    until("output flows", || read() > 1_000_000);
    signal(node.process.id(), nix::sys::signal::Signal::SIGSTOP);
    let before = read();
    until("the keeper has read 300 MB more", || read() > before + 300_000_000);
    let resident_kb = proc_number(node.keeper, "status", "VmRSS:");
    assert!(resident_kb < 24_000, "the keeper has grown to {resident_kb} kB");
}
