//! Logs, on stderr: for people by default, `--log-format json` for machines. `CARILLON_LOG` sets the level.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::time::ChronoUtc;

use crate::cli::args::LogFormat;

/// Starts logging; the first call wins.
pub(super) fn start(format: LogFormat) {
    // The migration library tells each step of its own; what matters of it is told by its errors.
    let levels = std::env::var("CARILLON_LOG").unwrap_or_else(|_| "info,refinery_core=warn".to_owned());
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).parse_lossy(levels);
    let time = ChronoUtc::new("%Y-%m-%dT%H:%M:%S%.3fZ".to_owned());
    // Errors of the log itself would go to stderr too, by a macro that panics when nobody reads it.
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_timer(time).log_internal_errors(false);
    let lines = lines.with_writer(std::io::stderr);
    // A second start, in a test, keeps the first one's.
    let _ = match format {
        LogFormat::Text => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            lines.with_target(false).with_ansi(colours).try_init()
        }
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}
