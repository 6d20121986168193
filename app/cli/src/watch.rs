//! `--watch`: a table is drawn again and again where it stands, until Ctrl-C.

use std::io::IsTerminal;
use std::time::Duration;

use carillon_store::{Clock, SystemClock};
use clap::Args;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::failure::{CommandFailure, FailureKind};
use super::out::Out;

/// To the upper left, and nothing below.
const CLEAR: &[u8] = b"\x1b[H\x1b[2J";

/// Whether a table is drawn once or again and again.
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// Draw it again each two seconds, or each so many, until Ctrl-C; on a terminal only
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "2")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3_600), conflicts_with = "json")]
    pub watch: Option<u64>,
}

impl WatchArgs {
    /// Draws once, or until somebody ends it.
    pub fn draw(
        &self,
        out: &mut Out,
        mut draw: impl FnMut(&mut Out) -> Result<(), CommandFailure>,
    ) -> Result<(), CommandFailure> {
        let Some(seconds) = self.watch else { return draw(out) };
        if !std::io::stdout().is_terminal() {
            return Err(CommandFailure::usage(
                "--watch draws on a terminal, and standard output is none: leave it out, or use --json in a loop",
            ));
        }
        end_at_once()?;
        while !out.is_closed() {
            out.bytes(CLEAR)?;
            let now = SystemClock.now().to_rfc3339_short();
            out.line(&format!("{now}, again each {seconds} s, until Ctrl-C"))?;
            match draw(out) {
                // A server that restarts is back at one of the next times.
                Err(failure) if failure.kind == FailureKind::Failed => out.line(&format!("error: {failure}"))?,
                drawn => drawn?,
            }
            out.flush()?;
            std::thread::park_timeout(Duration::from_secs(seconds));
        }
        Ok(())
    }
}

/// Ctrl-C ends the process with exit code 0, also while it waits for a server.
///
/// A handler holds for the whole process. A mask would hold for the threads made later only, and one that was there before
/// could take the signal and die of it.
fn end_at_once() -> Result<(), CommandFailure> {
    let failed = |error| CommandFailure::failed(format!("signals cannot be awaited: {error}; try again"));
    let runtime = Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let entered = runtime.enter();
    let mut interrupted = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
    drop(entered);
    let waiting = std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = terminated.recv() => {}
            }
        });
        super::out::note("");
        std::process::exit(0);
    });
    waiting.map(|_| ()).map_err(failed)
}
