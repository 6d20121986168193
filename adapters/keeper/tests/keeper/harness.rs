//! As much of a test harness as is needed when the binary has a main of its own.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

/// A test: its name, and whether it runs only when asked for by `--ignored` (a measurement).
pub struct Test {
    pub name: &'static str,
    pub run: fn(),
    pub ignored: bool,
}

/// Names the tests of a module: `tests![one, two]`, or with `ignored` measurements.
#[macro_export]
macro_rules! tests {
    ($($test:ident),* $(,)? $(; ignored $($ignored:ident),*)?) => {
        pub const TESTS: &[$crate::harness::Test] = &[
            $($crate::harness::Test {
                name: concat!(module_path!(), "::", stringify!($test)), run: $test, ignored: false
            },)*
            $($($crate::harness::Test {
                name: concat!(module_path!(), "::", stringify!($ignored)), run: $ignored, ignored: true
            },)*)?
        ];
    };
}

/// At once; most of them wait most of the time.
const THREADS: usize = 4;

pub fn main(modules: &[&[Test]]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let takes_value = |argument: &str| ["--test-threads", "--skip", "--format", "--color"].contains(&argument);
    let is_value = |index: usize| index > 0 && takes_value(&arguments[index - 1]);
    let plain = |(index, argument): &(usize, &String)| !argument.starts_with('-') && !is_value(*index);
    let filters: Vec<&String> = arguments.iter().enumerate().filter(plain).map(|(_, argument)| argument).collect();
    let named = |test: &&Test| {
        let fits = |filter: &&String| if flag("--exact") { test.name == **filter } else { test.name.contains(*filter) };
        filters.is_empty() || filters.iter().any(fits)
    };
    let chosen = modules.iter().copied().flatten().filter(named);
    let chosen: Vec<&Test> = chosen.filter(|test| test.ignored == flag("--ignored")).collect();
    if flag("--list") {
        chosen.iter().for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    let (queue, failed) = (Mutex::new(chosen.iter()), Mutex::new(Vec::new()));
    let kept = Kept::begin();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let Some(test) = queue.lock().unwrap().next() else { return };
                    let began = Instant::now();
                    let passed = catch_unwind(AssertUnwindSafe(test.run)).is_ok();
                    println!("test {} ... {} ({:?})", test.name, if passed { "ok" } else { "FAILED" }, began.elapsed());
                    if !passed {
                        failed.lock().unwrap().push(test.name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    kept.end(!failed.is_empty());
    println!("\n{} tests, {} failed {failed:?}", chosen.len(), failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The words of all tests, and of the processes that they start, on stderr. Plugins panic there because a test wants them to, and nobody who
/// looks for a failure is to find that first.
struct Kept {
    said: File,
    stderr: OwnedFd,
}

impl Kept {
    fn begin() -> Self {
        let said = tempfile::tempfile().expect("a file");
        let stderr = nix::unistd::dup(std::io::stderr()).expect("stderr is open");
        nix::unistd::dup2_stderr(&said).expect("stderr can lead elsewhere");
        Self { said, stderr }
    }

    /// Shows all of it if something failed, else only what was skipped.
    fn end(mut self, shows_all: bool) {
        nix::unistd::dup2_stderr(&self.stderr).expect("stderr can lead back");
        let mut said = Vec::new();
        self.said.rewind().and_then(|()| self.said.read_to_end(&mut said)).expect("the file can be read");
        let said = String::from_utf8_lossy(&said);
        let shown = said.lines().filter(|line| shows_all || line.contains("SKIPPED, NOT TESTED HERE"));
        shown.for_each(|line| _ = writeln!(std::io::stderr(), "{line}"));
    }
}
