//! Logs, on stderr: for people by default, `--log-format json` for machines. `CARILLON_LOG` sets the level.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::ChronoUtc;

use crate::cli::args::LogFormat;

/// Starts logging; the first call wins.
pub(super) fn start(format: LogFormat) {
    let filter = EnvFilter::builder()
        .with_env_var("CARILLON_LOG")
        .with_default_directive(tracing::Level::INFO.into())
        .from_env_lossy();
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
