//! The commands of the jobs, which write their own lives into one file, a line a write, as the checker reads it.

use std::path::{Path, PathBuf};

use carillon_checker::plan::Plan;
use carillon_checker::record::Record;
use carillon_checker::witness::{Life, lives};
use carillon_checker::{Evidence, time};
use nix::sys::stat::Mode;
use serde_json::Value;

use crate::fixture::lines;

/// The file that jobs write to, and what they wait at.
pub struct Witness {
    file: PathBuf,
    /// A named pipe that nothing is ever written to: reading it with a limit waits without a process of its own.
    nothing: PathBuf,
}

impl Witness {
    /// A witness in `dir`.
    pub fn new(dir: &Path) -> Self {
        let this = Self { file: dir.join("witness"), nothing: dir.join("nothing") };
        std::fs::write(&this.file, "").expect("the witness can be written");
        let _there_already = nix::unistd::mkfifo(&this.nothing, Mode::S_IRUSR | Mode::S_IWUSR);
        this
    }

    /// The file that jobs write to.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// A command that lives for `steps` times `pause_ms`, writing after each, and ends with what `code` is, in bash's words.
    pub fn command(&self, steps: u32, pause_ms: u32, code: &str) -> String {
        let (file, nothing) = (self.file.display(), self.nothing.display());
        let pause = format!("{}.{:03}", pause_ms / 1_000, pause_ms % 1_000);
        format!(
            "id=\"$CARILLON_RUN_ID $CARILLON_JOB $CARILLON_DUE_AT $CARILLON_ATTEMPT $CARILLON_FENCING_TOKEN\"\n\
             say() {{ echo \"$id $1 ${{EPOCHREALTIME/./}}\" >> {file}; }}\n\
             say start; exec 3<>{nothing}\n\
             for ((n = 0; n < {steps}; n++)); do read -r -t {pause} -u 3; say alive; done\n\
             code={code}; say end:$code; exit $code"
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

    /// Every process that has started.
    ///
    /// # Panics
    /// On a line that is torn.
    pub fn lives(&self) -> Vec<Life> {
        let (lives, torn) = lives(&std::fs::read_to_string(&self.file).expect("the witness can be read"));
        assert_eq!(torn, Vec::<String>::new());
        lives
    }

    /// The plan for jobs that fall due each second and may not overlap, as far as all their records, `runs`, reach.
    pub fn evidence(&self, runs: &[Value]) -> Evidence {
        self.evidence_every(1, runs)
    }

    /// The same where they come due every so many seconds.
    pub fn evidence_every(&self, seconds: i64, runs: &[Value]) -> Evidence {
        let records: Vec<Record> =
            runs.iter().map(|run| Record::from_json(run).unwrap_or_else(|error| panic!("{error}"))).collect();
        Evidence {
            plan: Plan::seen(&records, seconds * time::SECOND_US),
            lives: self.lives(),
            records,
            ..Evidence::default()
        }
    }
}
