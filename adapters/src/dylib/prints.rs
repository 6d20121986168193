//! What a plugin prints to stdout or stderr instead of handing it to its run: many runs share these, so it is nobody's
//! output, and goes to the server's log.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many chunks may wait for the log before some are lost.
pub(super) const CHUNKS_WAITING: usize = 16;
/// Lines of one host in [`PERIOD`]; what is more is counted only.
const LINES: u32 = 100;
const PERIOD: Duration = Duration::from_secs(10);
/// Bytes of a line; what is longer is cut.
const LINE_BYTES: usize = 1_000;

/// Logs line by line until the host has ended.
pub(super) async fn log(plugin: String, mut printed: mpsc::Receiver<Vec<u8>>) {
    let mut rest: Vec<u8> = Vec::new();
    let (mut began, mut lines, mut left_out) = (Instant::now(), 0, 0_u64);
    while let Some(chunk) = printed.recv().await {
        if began.elapsed() >= PERIOD {
            if left_out > 0 {
                tracing::warn!("plugin {plugin} printed {left_out} more lines, which are left out");
            }
            (began, lines, left_out) = (Instant::now(), 0, 0);
        }
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_BYTES.saturating_sub(rest.len());
            rest.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                match lines < LINES {
                    true => say(&plugin, &rest),
                    false => left_out += 1,
                }
                lines = lines.saturating_add(1);
                rest.clear();
            }
        }
    }
    if !rest.is_empty() {
        say(&plugin, &rest);
    }
}

fn say(plugin: &str, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    // It may hold anything, also what a terminal obeys.
    let plain: String = line.trim_end().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    tracing::info!("plugin {plugin} printed: {plain}");
}
