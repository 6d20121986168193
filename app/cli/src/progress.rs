//! How far a long command is: a line on standard error that is written over, on a terminal only.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How long a line stands before the next one is written over it.
const BETWEEN: Duration = Duration::from_millis(100);
/// How many characters the bar has.
const WIDTH: u64 = 30;

/// A bar. It is gone when it is dropped, so the answer stands where it was.
pub struct Progress {
    verb: &'static str,
    unit: fn(u64) -> String,
    is_shown: bool,
    shown_at: Option<Instant>,
}

impl Progress {
    /// A bar of things that are counted, such as `importing … 300 of 1000`.
    pub fn of_items(verb: &'static str) -> Self {
        Self::new(verb, |count| count.to_string())
    }

    /// A bar of bytes, such as `copying … 12 of 80 MB`.
    pub fn of_bytes(verb: &'static str) -> Self {
        Self::new(verb, megabytes)
    }

    fn new(verb: &'static str, unit: fn(u64) -> String) -> Self {
        Self { verb, unit, is_shown: io::stderr().is_terminal(), shown_at: None }
    }

    /// The same about one thing after another, each with a bar of its own.
    pub fn tell_of(&mut self, name: &'static str, done: u64, all: u64) {
        if self.verb != name {
            self.clear();
            self.verb = name;
        }
        self.tell(done, all);
    }

    /// Takes the bar away until there is more to tell.
    pub fn clear(&mut self) {
        if self.shown_at.take().is_some() {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }

    /// Says that `done` of `all` is done; nothing where there is nothing to do.
    pub fn tell(&mut self, done: u64, all: u64) {
        let is_new = self.shown_at.is_none_or(|at| at.elapsed() >= BETWEEN);
        if self.is_shown && is_new && all > 0 {
            self.shown_at = Some(Instant::now());
            // Nobody may be looking, which is no failure.
            let _ = write!(io::stderr(), "\r\u{1b}[K{}", line(self.verb, (done, all), self.unit));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A size in the unit that people compare.
pub fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

fn line(verb: &str, (done, all): (u64, u64), unit: fn(u64) -> String) -> String {
    let full = (done.min(all) * WIDTH).checked_div(all).unwrap_or(WIDTH);
    let repeated = |sign: &str, count: u64| sign.repeat(usize::try_from(count).unwrap_or_default());
    format!("{verb} [{}{}] {} of {}", repeated("#", full), repeated(".", WIDTH - full), unit(done), unit(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        let count = |count: u64| count.to_string();
        let bar = |full: usize| format!("{}{}", "#".repeat(full), ".".repeat(30 - full));
        for (done, all, full) in [(0, 10, 0), (5, 10, 15), (10, 10, 30), (11, 10, 30), (0, 0, 30)] {
            assert_eq!(line("importing", (done, all), count), format!("importing [{}] {done} of {all}", bar(full)));
        }
        assert_eq!(megabytes(1_250_000), "1.2 MB");
    }
}
