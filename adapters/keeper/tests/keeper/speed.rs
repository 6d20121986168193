//! Figures, not a test: what the shell executor and the keeper reach of the rate at which this machine spawns at all. Run it
//! with `cargo test --release -p carillon-keeper --test keeper -- --ignored --nocapture`.

use serde_json::{Value, json};

use crate::load::{Load, measure};
use crate::raw;
use crate::support::*;
use crate::tests;

tests![; ignored shell_runs_a_second];

/// Of each measurement.
const SECONDS: f64 = 2.0;
/// Memory of a small node, and of a large one.
const MEMORY_MIB: [usize; 2] = [0, 4 << 10];

fn shell_runs_a_second() {
    let programs: [(&[&str], Value); 2] =
        [(&["/bin/true"], json!({"argv": ["/bin/true"]})), (&["/bin/bash", "-c", "true"], json!({"command": "true"}))];
    for (argv, params) in programs {
        println!("\n{}", argv.join(" "));
        let best = best_raw(argv);
        for cgroups in BOTH {
            for memory_mib in MEMORY_MIB {
                let Load { rate, cpu_ms: [node, keeper, children, machine] } =
                    measure(memory_mib, cgroups, SECONDS, &params);
                println!(
                    "  shell executor, cgroups {cgroups:5}, {memory_mib:4} MiB in the node: {rate:5.0}/s, {:3.0} % of raw; \
                     CPU ms per 1,000 runs: node {node:.0}, keeper {keeper:.0}, children {children:.0}, all {machine:.0}",
                    100.0 * rate / best
                );
            }
        }
    }
}

/// The best that the machine does, after printing all.
fn best_raw(argv: &[&str]) -> f64 {
    let mut best: f64 = 0.0;
    for pipe in [false, true] {
        for spawners in [1, 2, 4] {
            let rate = raw::rate(argv, spawners, pipe, SECONDS / 2.0);
            println!("  raw, {spawners} spawners, {}: {rate:5.0}/s", if pipe { "with a pipe" } else { "no pipe    " });
            best = best.max(rate);
        }
    }
    best
}
