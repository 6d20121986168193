//! The params of a job.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use crate::status::Statuses;

/// The params of a job; `params.schema.json` says what they mean and what is allowed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub(crate) url: Text,
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Text>,
    pub(crate) body: Option<Text>,
    #[serde(default, deserialize_with = "given")]
    pub(crate) json: Option<Value>,
    #[serde(default)]
    pub(crate) expect_status: Statuses,
    pub(crate) expect_body: Option<String>,
    #[serde(default)]
    pub(crate) follow_redirects: u32,
    #[serde(default)]
    pub(crate) allow_private: bool,
    #[serde(default = "half_a_minute", deserialize_with = "duration")]
    pub(crate) timeout: Duration,
    pub(crate) ca_file: Option<PathBuf>,
    #[serde(default = "kept_by_default")]
    pub(crate) max_response: usize,
}

/// A text, or `{"value": TEXT, "secret": true}`, which the server shows to nobody. Shown by no `Debug` either.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    Plain(String),
    Wrapped { value: String },
}

impl Text {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Wrapped { value: text } => text,
        }
    }
}

/// Leaves out what may be secret.
impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Params").field("method", &self.method).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

fn half_a_minute() -> Duration {
    Duration::from_secs(30)
}

fn kept_by_default() -> usize {
    64 << 10
}

/// `"json": null` is a body too.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = parse_duration(&text).filter(|duration| !duration.is_zero());
    parsed.ok_or_else(|| de::Error::custom(format!("timeout {text:?} is not a duration such as 90s or 1m30s")))
}

/// The longest duration that the server reads anywhere.
const LONGEST: Duration = Duration::from_secs(36_500 * 86_400);

/// Whole numbers, each with a unit, as the server reads durations everywhere.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)].iter();
    let (mut total_ms, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (_, ms) = units.find(|(unit, _)| *unit == &after[..unit_end])?;
        total_ms = total_ms.checked_add(number.parse::<u64>().ok()?.checked_mul(*ms)?)?;
        rest = &after[unit_end..];
    }
    Some(Duration::from_millis(total_ms)).filter(|duration| *duration <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_the_server_reads_them() {
        for (text, ms) in [("90s", 90_000), ("1m30s", 90_000), ("1h", 3_600_000), ("500ms", 500), ("1s5ms", 1005)] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in ["5", "s", "1s1m", "1s1s", "-1s", "1 s", "1x", "99999999999999999999h", "36501d"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        for bad in [r#"{"url": "http://a", "timeout": "0s"}"#, r#"{"url": "http://a", "timeout": ""}"#] {
            let error = serde_json::from_str::<Params>(bad).unwrap_err().to_string();
            assert!(error.contains("is not a duration such as 90s"), "{error}");
        }
    }

    #[test]
    fn a_secret_is_read_and_not_printed() {
        let params = r#"{"url": {"value": "http://a/hush", "secret": true}, "json": null}"#;
        let params: Params = serde_json::from_str(params).unwrap();
        assert_eq!((params.url.as_str(), &params.json), ("http://a/hush", &Some(Value::Null)));
        assert!(!format!("{params:?}").contains("hush"));
    }
}
