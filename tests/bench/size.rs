//! How much of everything: a full run, or a quick one that only shows that the bench works.

use std::time::Duration;

use carillon_tests::cluster::{FAST, STEADY};

/// Sizes of all scenarios.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// One-shot jobs that come due at the same instant, each a run of `noop`.
    pub noop_shots: usize,
    /// The same for the shell.
    pub shell_shots: usize,
    /// Firings that a node holds at the most in those two.
    pub in_flight: usize,
    /// Jobs that come due each second.
    pub crowd: usize,
    /// How long a steady load goes on before it is measured.
    pub warm: Duration,
    /// For how long a steady load is measured.
    pub window: Duration,
    /// For how long a raw ceiling is measured, each way of getting at it.
    pub ceiling: Duration,
    /// Batches that each caller of the store sends.
    pub store_batches: usize,
    /// Rows of a batch of the store.
    pub batch: usize,
    /// Jobs that come due at once, and how many times.
    pub few_at_once: (usize, usize),
    /// The same, many.
    pub many_at_once: (usize, usize),
    /// Firings a second of the steady loads.
    pub paces: [usize; 3],
    /// Jobs stored in the two scans.
    pub stored: [u64; 2],
    /// Jobs within the horizon of a node with the smaller number of jobs stored.
    pub armed: usize,
    /// How many times a scan is measured.
    pub scans: usize,
    /// Jobs of the takeover, and `[session]` of its nodes.
    pub taken_over: (usize, &'static str),
    /// How many nodes share a database.
    pub nodes: &'static [usize],
    /// History rows that are to be purged, or that the page has to do with.
    pub history: u64,
    /// Jobs that the page has to do with.
    pub page_jobs: u64,
    /// How often each screen is asked for.
    pub page_asks: usize,
    /// How often a browser paints a screen.
    pub paints: usize,
    /// Readers of events at one node.
    pub page_readers: usize,
    /// Whether this is worth judging.
    pub judged: bool,
}

impl Size {
    /// Worth keeping.
    pub const FULL: Self = Self {
        noop_shots: 60_000,
        shell_shots: 40_000,
        in_flight: 10_000,
        crowd: 60_000,
        warm: Duration::from_secs(5),
        window: Duration::from_secs(15),
        ceiling: Duration::from_secs(2),
        store_batches: 15,
        batch: 1_000,
        few_at_once: (1_000, 5),
        many_at_once: (10_000, 2),
        paces: [100, 1_000, 10_000],
        stored: [1_000_000, 10_000_000],
        armed: 10_000,
        scans: 20,
        taken_over: (300, FAST),
        nodes: &[1, 2, 3, 5],
        history: 10_000_000,
        page_jobs: 100_000,
        page_asks: 400,
        paints: 7,
        page_readers: 1_000,
        judged: true,
    };

    /// For an ablation.
    pub const ABLATION: Self =
        Self { noop_shots: 30_000, warm: Duration::from_secs(4), window: Duration::from_secs(8), ..Self::FULL };

    /// All of it within seconds.
    pub const QUICK: Self = Self {
        noop_shots: 400,
        shell_shots: 80,
        in_flight: 100,
        crowd: 200,
        warm: Duration::from_millis(500),
        window: Duration::from_secs(1),
        ceiling: Duration::from_millis(100),
        store_batches: 2,
        batch: 100,
        few_at_once: (50, 1),
        many_at_once: (100, 1),
        paces: [10, 20, 40],
        stored: [10_000, 100_000],
        armed: 100,
        scans: 3,
        // As it runs beside other tests, which may keep a node from its heartbeats for a while.
        taken_over: (30, STEADY),
        nodes: &[1, 2],
        history: 50_000,
        page_jobs: 2_000,
        page_asks: 3,
        paints: 1,
        page_readers: 20,
        judged: false,
    };
}
