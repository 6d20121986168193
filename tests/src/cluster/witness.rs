//! What jobs write themselves: a line when they start, lines while they live, a line when they end. One file for all, a
//! line a write, so that nothing of Carillon is asked and nothing is torn.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::fixture::lines;

/// The file that jobs write to.
pub struct Witness {
    file: PathBuf,
}

/// One run as its own lines tell it. Times are microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// The run's id.
    pub run: String,
    /// The job's name.
    pub job: String,
    /// The due time, as the environment gave it.
    pub due_at: String,
    /// How many lines said that it started; more than one is two processes under one run id.
    pub starts: u32,
    /// Its first line.
    pub first_us: u64,
    /// Its last line, whichever it was.
    pub last_us: u64,
    /// Whether it wrote that it ended.
    pub ended: bool,
}

impl Witness {
    /// A witness in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self { file: dir.join("witness") }
    }

    /// A command that lives for `steps` times `pause`, writing before each.
    pub fn command(&self, steps: u32, pause: &str) -> String {
        let file = self.file.display();
        format!(
            "say() {{ echo \"$CARILLON_RUN_ID $CARILLON_JOB $CARILLON_DUE_AT $1 ${{EPOCHREALTIME/./}}\" >> {file}; }}; \
             say start; for n in {}; do sleep {pause}; say alive; done; say end",
            (1..=steps).map(|n| n.to_string()).collect::<Vec<_>>().join(" ")
        )
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        lines(&self.file).len()
    }

    /// Whether nothing has started yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every run that has started, by its id.
    ///
    /// # Panics
    /// On a line that is torn.
    pub fn lives(&self) -> Vec<Life> {
        let mut lives: BTreeMap<String, Life> = BTreeMap::new();
        for line in lines(&self.file) {
            let words: Vec<&str> = line.split(' ').collect();
            let [run, job, due_at, what, at] = words[..] else { panic!("a torn line: {line:?}") };
            let at: u64 = at.parse().expect("a time in microseconds");
            let life = lives.entry(run.to_owned()).or_insert_with(|| Life {
                run: run.to_owned(),
                job: job.to_owned(),
                due_at: due_at.to_owned(),
                starts: 0,
                first_us: at,
                last_us: at,
                ended: false,
            });
            life.starts += u32::from(what == "start");
            life.first_us = life.first_us.min(at);
            life.last_us = life.last_us.max(at);
            life.ended |= what == "end";
        }
        lives.into_values().collect()
    }
}
