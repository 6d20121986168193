//! A job's definition as a JSON document, the form in which every database keeps it.
//!
//! The document is a private mirror of [`Job`]: the domain knows no serde, and a stored document outlives the binary that
//! wrote it. A field that an older binary did not write takes its default. A field that a newer binary added is refused with a sentence.
//! To run a job and ignore half of its definition would be worse than not to run it.

use std::collections::BTreeMap;
use std::time::Duration;

use carillon_domain::alert::{Expect, Ping, TimeOfDay};
use carillon_domain::job::{Job, Misfire, MisfirePolicy, OnLost, Overlap, Retry};
use carillon_domain::schedule::{Dst, Gap, Overlap as DstOverlap};
use carillon_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use carillon_domain::store::Definition;

use super::codec::named;
use super::{JobKey, StoreError};

/// The mirror of a job.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    schedule: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timezone: Option<String>,
    dst_gap: String,
    dst_overlap: String,
    jitter_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end_at_ms: Option<i64>,
    executor: String,
    params: String,
    overlap: String,
    misfire: String,
    misfire_grace_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    kill_grace_ms: u64,
    retry_max_attempts: u32,
    retry_backoff_ms: u64,
    retry_max_backoff_ms: u64,
    on_lost: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<ExpectDocument>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ping: Option<PingDocument>,
}

/// The mirror of a job's expectations.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectDocument {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_within_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finish_within_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finish_by: Option<String>,
}

/// The mirror of a job's monitor.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PingDocument {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl Document {
    /// The mirror of a job, with these params in place of its own.
    pub fn of(job: &Job, params: String) -> Self {
        Self {
            schedule: job.schedule.clone(),
            timezone: job.timezone.clone(),
            dst_gap: gap_name(job.dst.gap).to_owned(),
            dst_overlap: dst_overlap_name(job.dst.overlap).to_owned(),
            jitter_ms: ms(job.jitter),
            start_at_ms: job.start_at.map(Timestamp::as_ms),
            end_at_ms: job.end_at.map(Timestamp::as_ms),
            executor: job.executor.clone(),
            params,
            overlap: job.overlap.as_str().to_owned(),
            misfire: job.misfire.policy.as_str().to_owned(),
            misfire_grace_ms: ms(job.misfire.grace),
            timeout_ms: job.timeout.map(ms),
            kill_grace_ms: ms(job.kill_grace),
            retry_max_attempts: job.retry.max_attempts,
            retry_backoff_ms: ms(job.retry.backoff),
            retry_max_backoff_ms: ms(job.retry.max_backoff),
            on_lost: job.on_lost.as_str().to_owned(),
            labels: job.labels.clone(),
            expect: job.expect.map(ExpectDocument::of),
            ping: job.ping.clone().map(PingDocument::of),
        }
    }

    /// The job of that name.
    pub fn read(self, namespace: &str, name: &str) -> Result<Job, String> {
        let document = self;
        Ok(Job {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            schedule: document.schedule,
            timezone: document.timezone,
            dst: Dst {
                gap: named(&[Gap::After, Gap::Skip], gap_name, &document.dst_gap)?,
                overlap: named(&[DstOverlap::First, DstOverlap::Both], dst_overlap_name, &document.dst_overlap)?,
            },
            jitter: Duration::from_millis(document.jitter_ms),
            start_at: document.start_at_ms.map(Timestamp::from_ms),
            end_at: document.end_at_ms.map(Timestamp::from_ms),
            executor: document.executor,
            params: document.params,
            overlap: named(&Overlap::ALL, Overlap::as_str, &document.overlap)?,
            misfire: Misfire {
                policy: named(&MisfirePolicy::ALL, MisfirePolicy::as_str, &document.misfire)?,
                grace: Duration::from_millis(document.misfire_grace_ms),
            },
            timeout: document.timeout_ms.map(Duration::from_millis),
            kill_grace: Duration::from_millis(document.kill_grace_ms),
            retry: Retry {
                max_attempts: document.retry_max_attempts,
                backoff: Duration::from_millis(document.retry_backoff_ms),
                max_backoff: Duration::from_millis(document.retry_max_backoff_ms),
            },
            on_lost: named(&OnLost::ALL, OnLost::as_str, &document.on_lost)?,
            labels: document.labels,
            expect: document.expect.map(ExpectDocument::read).transpose()?,
            ping: document.ping.map(PingDocument::read),
        })
    }
}

impl ExpectDocument {
    fn of(Expect { start_within, finish_within, finish_by }: Expect) -> Self {
        let finish_by = finish_by.map(|by| by.to_string());
        Self { start_within_ms: start_within.map(ms), finish_within_ms: finish_within.map(ms), finish_by }
    }

    fn read(self) -> Result<Expect, String> {
        let finish_by = self.finish_by.map(|by| by.parse::<TimeOfDay>().map_err(|e| e.to_string())).transpose()?;
        let within = |ms: Option<u64>| ms.map(Duration::from_millis);
        Ok(Expect {
            start_within: within(self.start_within_ms),
            finish_within: within(self.finish_within_ms),
            finish_by,
        })
    }
}

impl PingDocument {
    fn of(Ping { start, success, failure }: Ping) -> Self {
        Self { start, success, failure }
    }

    fn read(self) -> Ping {
        let Self { start, success, failure } = self;
        Ping { start, success, failure }
    }
}

/// The document of a job; its name stands in columns beside it.
pub(crate) fn to_document(job: &Job) -> Result<String, StoreError> {
    serde_json::to_string(&Document::of(job, job.params.clone()))
        .map_err(|e| StoreError::Permanent(format!("{} cannot be written: {e}", job.key())))
}

/// Reads a document back.
pub(crate) fn from_document(key: JobKey, text: &str) -> Result<Job, StoreError> {
    let JobKey { namespace, name } = key;
    read(&namespace, &name, text).map_err(|problem| {
        StoreError::Permanent(format!(
            "the stored definition of {namespace}/{name} cannot be read ({problem}); it may have been written by a newer \
             Carillon"
        ))
    })
}

fn read(namespace: &str, name: &str, text: &str) -> Result<Job, String> {
    serde_json::from_str::<Document>(text).map_err(|e| e.to_string())?.read(namespace, name)
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

const fn gap_name(gap: Gap) -> &'static str {
    match gap {
        Gap::After => "after",
        Gap::Skip => "skip",
    }
}

const fn dst_overlap_name(overlap: DstOverlap) -> &'static str {
    match overlap {
        DstOverlap::First => "first",
        DstOverlap::Both => "both",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> JobKey {
        JobKey { namespace: "default".into(), name: "backup".into() }
    }

    fn job() -> Job {
        Job {
            namespace: "default".into(),
            name: "backup".into(),
            schedule: "@every 60s".into(),
            timezone: Some("Europe/Berlin".into()),
            dst: Dst { gap: Gap::Skip, overlap: DstOverlap::Both },
            jitter: Duration::from_millis(1500),
            start_at: Some(Timestamp::from_ms(5)),
            end_at: None,
            executor: "shell".into(),
            params: r#"{"command":"true"}"#.into(),
            overlap: Overlap::Delay,
            misfire: Misfire { policy: MisfirePolicy::CatchUp, grace: Duration::from_secs(7) },
            timeout: Some(Duration::from_secs(3600)),
            kill_grace: Job::DEFAULT_KILL_GRACE,
            retry: Retry { max_attempts: 3, ..Retry::default() },
            on_lost: OnLost::Rerun,
            labels: BTreeMap::from([("team".into(), "data".into())]),
            expect: Some(Expect {
                start_within: Some(Duration::from_secs(300)),
                finish_within: None,
                finish_by: TimeOfDay::new(6, 0, 30),
            }),
            ping: Some(Ping { start: None, ..Ping::of_url("https://hc-ping.com/0f0e") }),
        }
    }

    #[test]
    fn a_definition_survives_its_document() {
        assert_eq!(from_document(key(), &to_document(&job()).unwrap()), Ok(job()));
    }

    #[test]
    fn a_field_of_a_newer_binary_is_refused_by_name() {
        let text = to_document(&job()).unwrap().replacen('{', r#"{"colour":"red","#, 1);
        let StoreError::Permanent(sentence) = from_document(key(), &text).unwrap_err() else {
            panic!("not permanent");
        };
        assert!(sentence.contains("default/backup") && sentence.contains("colour") && sentence.contains("newer"));
    }
}
