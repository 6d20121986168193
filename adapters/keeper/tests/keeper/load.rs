//! A node that runs nothing but jobs of the shell executor: `load MEMORY_MIB CGROUPS SECONDS PARAMS` keeps [`IN_FLIGHT`] of
//! them going and prints what [`Load`] holds.

use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carillon_executors::executor::{Executor, Live, Outcome};
use carillon_executors::shell::{ShellConfig, ShellExecutor};
use carillon_keeper::KeeperHandle;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::shell::facts;
use crate::support::keeper;

const IN_FLIGHT: usize = 64;
/// Until caches, directories of cgroups and buffers are there.
const WARM_UP: Duration = Duration::from_millis(300);

/// The work of a node and its cost.
pub struct Load {
    /// Runs that ended, a second.
    pub rate: f64,
    /// CPU time for 1,000 runs, in milliseconds: the node's, the keeper's, that of all the children between fork and end,
    /// and of the whole machine.
    pub cpu_ms: [f64; 4],
}

/// Measures a node of so much memory, which runs `params`.
pub fn measure(memory_mib: usize, cgroups: bool, seconds: f64, params: &Value) -> Load {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let arguments = [memory_mib.to_string(), cgroups.to_string(), seconds.to_string(), params.to_string()];
    let output = command.arg("load").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = line.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [rate, node, keeper, children, machine] = numbers[..] else { panic!("{line:?} is no measurement") };
    Load { rate, cpu_ms: [node, keeper, children, machine] }
}

/// The node.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<String> = arguments.map(|argument| argument.into_string().unwrap()).collect();
    let [memory_mib, cgroups, seconds, params] = &arguments[..] else { return ExitCode::from(2) };
    let resident = resident(memory_mib.parse().unwrap());
    let time = Duration::from_secs_f64(seconds.parse().unwrap());
    let params: Value = params.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let Load { rate, cpu_ms: [node, keeper, children, machine] } =
        runtime.block_on(async { load(keeper(cgroups == "true"), time, params).await });
    println!("{rate} {node} {keeper} {children} {machine}");
    drop(resident);
    ExitCode::SUCCESS
}

/// Memory with something on every page of it.
fn resident(mib: usize) -> Vec<u8> {
    let mut memory = vec![0; mib << 20];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    memory
}

async fn load(keeper: KeeperHandle, time: Duration, params: Value) -> Load {
    let executor = Arc::new(ShellExecutor::new(keeper.clone(), ShellConfig::default()));
    let (ended, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let workers: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (executor, params, ended, over) = (executor.clone(), params.clone(), ended.clone(), over.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let stop = CancellationToken::new();
                    let exit = executor.run(facts(params.clone()), Live::unheard(), stop).await;
                    assert_eq!(exit.how, Outcome::Succeeded, "{exit:?}");
                    ended.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    tokio::time::sleep(WARM_UP).await;
    let (began, before, cpu_before) = (Instant::now(), ended.load(Ordering::Relaxed), cpu_ms(&keeper));
    tokio::time::sleep(time).await;
    let (runs, cpu_after) = ((ended.load(Ordering::Relaxed) - before) as f64, cpu_ms(&keeper));
    let rate = runs / began.elapsed().as_secs_f64();
    over.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    Load { rate, cpu_ms: std::array::from_fn(|who| (cpu_after[who] - cpu_before[who]) * 1000.0 / runs) }
}

/// CPU time so far, in milliseconds, as [`Load::cpu_ms`] names it.
fn cpu_ms(keeper: &KeeperHandle) -> [f64; 4] {
    let node = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let node: f64 =
        [node.user_time(), node.system_time()].iter().map(|time| time.num_microseconds() as f64 / 1e3).sum();
    let numbers = |path: String| -> Vec<f64> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().next().unwrap().split_whitespace().map(|field| field.parse().unwrap_or(f64::NAN)).collect()
    };
    // Nanoseconds there, hundredths of a second here.
    let own = numbers(format!("/proc/{}/schedstat", keeper.pid()))[0] / 1e6;
    let stat = numbers(format!("/proc/{}/stat", keeper.pid()));
    let children = (stat[15] + stat[16]) * 10.0;
    // user, nice, system, and after idle and iowait: irq, softirq.
    let machine = numbers("/proc/stat".to_owned());
    [node, own, children, [1, 2, 3, 6, 7].iter().map(|field| machine[*field] * 10.0).sum()]
}
