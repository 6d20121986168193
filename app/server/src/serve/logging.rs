//! Logs, on stderr: for people by default, `--log-format json` for machines. `CARILLON_LOG` sets the level.
//!
//! A thread of its own writes them. The reader of the log may stall, and a server that waited for it would let its lease run out. So
//! lines that nobody takes are dropped and counted.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::time::ChronoUtc;

use crate::serve::args::LogFormat;

/// How many lines may wait for a reader.
const LINES_WAITING: usize = 4_096;
/// How long the end waits for the last lines to be read.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);

/// Starts logging; the first call wins. Keep what it answers to the end, which waits for the last lines.
pub(super) fn start(format: LogFormat) -> Log {
    // The migration library tells each step of its own; what matters of it is told by its errors.
    let levels = std::env::var("CARILLON_LOG").unwrap_or_else(|_| "info,refinery_core=warn".to_owned());
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).parse_lossy(levels);
    let time = ChronoUtc::new("%Y-%m-%dT%H:%M:%S%.3fZ".to_owned());
    let (queue, log) = queue();
    // Errors of the log itself would go to stderr too, by a macro that panics when nobody reads it.
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_timer(time).log_internal_errors(false);
    let lines = lines.with_writer(move || queue.clone());
    // A second start, in a test, keeps the first one's.
    let _ = match format {
        LogFormat::Text => {
            let colours = io::IsTerminal::is_terminal(&io::stderr());
            lines.with_target(false).with_ansi(colours).try_init()
        }
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    log
}

enum Message {
    Line(Vec<u8>),
    /// Everything before has been written.
    Flush(SyncSender<()>),
}

/// The way to the writing thread; one write is one line.
#[derive(Clone)]
struct Queue {
    messages: SyncSender<Message>,
    lost: Arc<AtomicU64>,
}

/// Waits for the last lines when it is dropped.
pub(super) struct Log(SyncSender<Message>);

fn queue() -> (Queue, Log) {
    let (messages, waiting) = sync_channel(LINES_WAITING);
    let lost = Arc::new(AtomicU64::new(0));
    let queue = Queue { messages: messages.clone(), lost: Arc::clone(&lost) };
    std::thread::spawn(move || write(&waiting, &lost));
    (queue, Log(messages))
}

/// Writes for ever. Nobody can be told of errors.
fn write(waiting: &Receiver<Message>, lost: &AtomicU64) {
    while let Ok(message) = waiting.recv() {
        let line = match message {
            Message::Line(line) => line,
            Message::Flush(written) => {
                let _ = written.send(());
                continue;
            }
        };
        let mut stderr = io::stderr();
        let count = lost.swap(0, Ordering::Relaxed);
        if count > 0 {
            let _ = writeln!(stderr, "carillon: {count} lines of the log were lost, as nobody read them");
        }
        let _ = stderr.write_all(&line);
    }
}

impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.messages.try_send(Message::Line(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let (written, all_written) = sync_channel(1);
        if self.0.try_send(Message::Flush(written)).is_ok() {
            // A reader that stalls loses the last lines.
            let _ = all_written.recv_timeout(LAST_LINES_WITHIN);
        }
    }
}
