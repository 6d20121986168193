//! A run, or due times that did not run, as the API of the scheduler told it.

use serde_json::Value;

use crate::time;

/// One item of `/v1/runs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The run's id.
    pub id: String,
    /// The job's name.
    pub job: String,
    /// The due time; of a stretch the last.
    pub due_us: i64,
    /// Of a stretch the first due time, otherwise the due time.
    pub first_due_us: i64,
    /// How many due times it stands for.
    pub count: u64,
    /// Which attempt; 1 is the first.
    pub attempt: u64,
    /// `schedule`, `misfire` or `manual`.
    pub trigger: String,
    /// `succeeded`, `lost`, `skipped` and so on.
    pub status: String,
    /// Why, where the status alone does not tell.
    pub reason: String,
    /// The exit code, where there was one.
    pub exit_code: Option<i64>,
    /// By the scheduler's clock.
    pub started_us: Option<i64>,
    /// By the scheduler's clock.
    pub finished_us: Option<i64>,
    /// How late it started, by the scheduler's clock.
    pub lag_ms: Option<i64>,
    /// The node that ran it.
    pub node: Option<String>,
    /// The session that ran it.
    pub session: Option<String>,
}

impl Record {
    /// From an item of a listing.
    ///
    /// # Errors
    /// Says what item is none.
    pub fn from_json(item: &Value) -> Result<Self, String> {
        Self::read(item).ok_or_else(|| format!("this is no run: {item}"))
    }

    fn read(item: &Value) -> Option<Self> {
        let text = |field: &str| item[field].as_str().map(str::to_owned);
        let at = |field: &str| item[field].as_str().and_then(time::parse);
        let due_us = at("due_at")?;
        Some(Self {
            id: text("id")?,
            job: text("job")?,
            due_us,
            first_due_us: at("first_due_at").unwrap_or(due_us),
            count: item["count"].as_u64().unwrap_or(1),
            attempt: item["attempt"].as_u64()?,
            trigger: text("trigger")?,
            status: text("status")?,
            reason: text("reason").unwrap_or_default(),
            exit_code: item["exit_code"].as_i64(),
            started_us: at("started_at"),
            finished_us: at("finished_at"),
            lag_ms: item["lag_ms"].as_i64(),
            node: text("node"),
            session: text("session"),
        })
    }

    /// Whether a person asked for it.
    pub fn is_manual(&self) -> bool {
        self.trigger == "manual"
    }

    /// Whether it stands for due times that did not run.
    pub fn is_skipped(&self) -> bool {
        self.status == "skipped"
    }

    /// Whether it has an outcome.
    pub fn is_settled(&self) -> bool {
        !matches!(&*self.status, "running" | "waiting")
    }
}
