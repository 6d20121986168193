//! Writes what a plugin prints to stdout or stderr into the server's log. All runs of a host share these two, so the text
//! cannot be assigned to a run.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::executor::Live;

/// Lines of one host in [`PERIOD`]; what is more is counted only.
const LINES: u32 = 100;
const PERIOD: Duration = Duration::from_secs(10);
/// Bytes of a line; what is longer is cut.
const LINE_BYTES: usize = 1_000;

/// To the log, line by line, as long as the host is there.
pub(crate) fn to_log(plugin: String) -> Live {
    let lines = Lines { plugin, rest: Vec::new(), began: Instant::now(), said: 0, left_out: 0 };
    let lines = Mutex::new(lines);
    Live::to(move |bytes| lines.lock().unwrap_or_else(PoisonError::into_inner).take(bytes))
}

/// The lines of one host.
struct Lines {
    plugin: String,
    /// Of the line that has no end yet.
    rest: Vec<u8>,
    /// When the period began.
    began: Instant,
    said: u32,
    left_out: u64,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) {
        if self.began.elapsed() >= PERIOD {
            if self.left_out > 0 {
                tracing::warn!("plugin {} printed {} more lines, which are left out", self.plugin, self.left_out);
            }
            (self.began, self.said, self.left_out) = (Instant::now(), 0, 0);
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_BYTES.saturating_sub(self.rest.len());
            self.rest.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                match self.said < LINES {
                    true => say(&self.plugin, &self.rest),
                    false => self.left_out += 1,
                }
                self.said = self.said.saturating_add(1);
                self.rest.clear();
            }
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if !self.rest.is_empty() {
            say(&self.plugin, &self.rest);
        }
    }
}

fn say(plugin: &str, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    // It may hold anything, also what a terminal obeys.
    let plain: String = line.trim_end().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    tracing::info!("plugin {plugin} printed: {plain}");
}
