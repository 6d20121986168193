//! A figure, not a test: how much CPU a node spends on a firing of `noop` beside the database, with the plugin in a host
//! process and in the server's own. Run it with
//! `cargo test --release -p carillon --test engine_cost -- --ignored --nocapture`.
//!
//! The engine, the keeper, the host and the log's formatting are the real ones. The store always has something due, answers
//! after a while and costs next to nothing, so what is left is the node.

mod endless;

use std::fs::{File, Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_domain::id::SessionId;
use carillon_domain::lease::Timing;
use carillon_domain::node::Config;
use carillon_domain::time::BootTime;
use carillon_executors::dylib::{Change, DylibExecutor, Folder, Host, Plugin};
use carillon_executors::executor::Isolation;
use carillon_executors::registry::Executors;
use carillon_keeper::{KeeperHandle, KeeperOptions, boottime_ms};
use carillon_node::engine::{End, Engine, EngineHandle, Parts, Shutdown};
use carillon_store::{Clock, SystemClock};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use tokio::sync::mpsc;

use endless::Endless;

const FIRINGS: usize = 60_000;
const PROGRAM: &str = env!("CARGO_BIN_EXE_carillon");

#[test]
#[ignore = "a measurement"]
fn cpu_of_a_firing() {
    let log = File::create("/dev/null").unwrap();
    tracing_subscriber::fmt().with_ansi(false).with_writer(log).init();
    for isolation in [Isolation::Process, Isolation::InProcess] {
        let (node, host, began) = (cpu_us(UsageWho::RUSAGE_SELF), cpu_us(UsageWho::RUSAGE_CHILDREN), Instant::now());
        let store = fire(isolation);
        let rate = FIRINGS as f64 / began.elapsed().as_secs_f64();
        let each = |us: i64| us as f64 / FIRINGS as f64;
        let node = each(cpu_us(UsageWho::RUSAGE_SELF) - node);
        let host = each(cpu_us(UsageWho::RUSAGE_CHILDREN) - host);
        println!(
            "{}: {:.1} µs of CPU a firing ({node:.1} in the node, {host:.1} in its children), {rate:.0} firings/s, {:.0} a call",
            isolation.as_str(),
            node + host,
            FIRINGS as f64 * 3.0 / store.calls() as f64,
        );
    }
}

/// Fires so many times and ends; all children are gone then.
fn fire(isolation: Isolation) -> Arc<Endless> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let session = SessionId::from_random(1);
        let store = Arc::new(Endless::new(session, FIRINGS));
        let keeper = keeper();
        let executors = Executors::new(Duration::from_secs(60));
        executors.offer(Arc::new(noop(&keeper, isolation)));
        let (engine, handle) = Engine::new(parts(store.clone(), keeper.clone(), executors, session));
        let (order, orders) = mpsc::unbounded_channel();
        let engine = tokio::spawn(engine.run(orders));
        store.all_finished().await;
        order.send(Shutdown::Drain).unwrap();
        assert_eq!(engine.await.unwrap(), End::Drained);
        assert_eq!(succeeded(&handle), FIRINGS as u64);
        drop(handle);
        keeper.close().await;
        store
    })
}

fn succeeded(handle: &EngineHandle) -> u64 {
    let finished = handle.counts().finished_total;
    assert!(finished.iter().all(|(status, count)| *status == "succeeded" || *count == 0), "{finished:?}");
    finished["succeeded"]
}

fn keeper() -> KeeperHandle {
    let options = KeeperOptions {
        program: PROGRAM.into(),
        arguments: vec!["keeper".into()],
        lock: None,
        cgroups: true,
        kill_node_after: None,
    };
    let keeper = KeeperHandle::start(options).unwrap();
    keeper.extend_deadline(u64::MAX);
    keeper
}

fn noop(keeper: &KeeperHandle, isolation: Isolation) -> DylibExecutor {
    match isolation {
        Isolation::Process => DylibExecutor::in_hosts(plugin(), keeper.clone()),
        Isolation::InProcess => DylibExecutor::in_process(plugin(), keeper.clone()).unwrap(),
    }
}

/// The plugin `noop`, which cargo has built beside this binary.
fn plugin() -> Plugin {
    let directory = tempfile::tempdir().unwrap();
    set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let file = directory.path().join("noop.so");
    std::fs::copy(std::env::current_exe().unwrap().with_file_name("libcarillon_noop.so"), &file).unwrap();
    set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    match Folder::new(directory.path(), Host::new(PROGRAM)).look().pop() {
        Some(Change::Found(plugin)) => plugin,
        Some(Change::Refused(refused)) => panic!("{refused}"),
        Some(Change::Gone(_)) | None => panic!("there is no plugin"),
    }
}

/// As a server has them by default.
fn parts(store: Arc<Endless>, keeper: KeeperHandle, executors: Executors, session: SessionId) -> Parts {
    let config = Config {
        timing: Timing::default(),
        self_kill: true,
        partitions: 16,
        horizon: Duration::from_secs(10),
        max_in_flight: 10_000,
        max_executing: 1_000,
        max_batch: 500,
        peek_every: Duration::from_secs(1),
        peek_every_at_rest: Duration::from_secs(1),
        steal_after: Duration::from_secs(5),
        recover_every: Duration::from_secs(5),
        remembered_ends: 10_000,
        flow: carillon_domain::node::FlowKind::Tuned,
        drain_timeout: Duration::from_secs(30),
    };
    Parts {
        store,
        keeper,
        executors,
        statement_timeout: Duration::from_secs(10),
        config,
        session,
        node: "measured".to_owned(),
        registered: BootTime::from_ms(boottime_ms()),
        tracer: None,
        utc: SystemClock.now(),
    }
}

/// User and system time so far, in microseconds.
fn cpu_us(who: UsageWho) -> i64 {
    let usage = getrusage(who).unwrap();
    usage.user_time().num_microseconds() + usage.system_time().num_microseconds()
}
