//! A plugin that does nothing: for measuring what a run costs, and for trying how runs end.

use std::io::Write;
use std::time::{Duration, SystemTime};

use carillon_plugin::{Failure, Plugin, Run, export_plugin};
use serde::Deserialize;

/// The executor `noop`.
#[derive(Debug, Default)]
pub struct Noop;

/// The params of a job; all of them are optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How long to sleep first, in milliseconds.
    sleep_ms: u64,
    /// Fail with this sentence.
    fail: Option<String>,
    /// Panic with this sentence.
    panic: Option<String>,
    /// Say something first.
    print: Option<Print>,
}

/// The outcome of a run.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Print {
    /// When it began: microseconds since 1970 in UTC by the machine's clock.
    Time,
}

impl Plugin for Noop {
    const NAME: &'static str = "noop";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const PARAMS_SCHEMA: &'static str = r#"{
        "type": "object",
        "properties": {
            "sleep_ms": {"type": "integer", "minimum": 0, "description": "how long to sleep, in milliseconds"},
            "fail": {"type": "string", "description": "fail with this sentence"},
            "panic": {"type": "string", "description": "panic with this sentence"},
            "print": {"enum": ["time"], "description": "print the time of the start, in microseconds since 1970"}
        },
        "additionalProperties": false
    }"#;
    type Params = Params;

    fn run(&self, params: Params, run: &Run<'_>) -> Result<(), Failure> {
        if let Some(Print::Time) = params.print {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            writeln!(run.output(), "{}", since.as_micros())?;
        }
        run.sleep(Duration::from_millis(params.sleep_ms))?;
        if let Some(sentence) = params.panic {
            std::panic::panic_any(sentence);
        }
        params.fail.map_or(Ok(()), |sentence| Err(Failure::new(sentence)))
    }
}

export_plugin!(Noop);
