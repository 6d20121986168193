//! The faults of the cluster while the jobs ran.

use serde_json::{Value, json};

/// A fault that was seen to take effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind of the fault.
    pub class: String,
    /// The node that it strikes; `None` where it strikes the database.
    pub node: Option<String>,
    /// When it began.
    pub from_us: i64,
    /// When it was over.
    pub until_us: i64,
    /// Whether it killed the process of a run.
    pub kills_runs: bool,
    /// Whether it moved the clock of the database.
    pub moves_clock: bool,
    /// Whether commits that had been acknowledged were lost.
    pub loses_commits: bool,
}

/// The process of a node that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The node.
    pub node: String,
    /// When it was seen.
    pub at_us: i64,
    /// The exit status.
    pub how: String,
}

impl Fault {
    /// As [`Fault::to_json`] writes it; what else stands there is for people.
    ///
    /// # Errors
    /// Says what is no fault.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        Self::read(value).ok_or_else(|| format!("this is no fault: {value}"))
    }

    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            class: value["class"].as_str()?.to_owned(),
            node: value["node"].as_str().map(str::to_owned),
            from_us: value["from_us"].as_i64()?,
            until_us: value["until_us"].as_i64()?,
            kills_runs: value["kills_runs"].as_bool()?,
            moves_clock: value["moves_clock"].as_bool()?,
            loses_commits: value["loses_commits"].as_bool()?,
        })
    }

    /// As [`Fault::from_json`] reads it.
    pub fn to_json(&self) -> Value {
        json!({"class": self.class, "node": self.node, "from_us": self.from_us, "until_us": self.until_us,
               "kills_runs": self.kills_runs, "moves_clock": self.moves_clock,
               "loses_commits": self.loses_commits})
    }

    /// Whether it was going on between two times, or within `slack_us` of them.
    pub fn touches(&self, from_us: i64, until_us: i64, slack_us: i64) -> bool {
        self.from_us <= until_us + slack_us && self.until_us >= from_us - slack_us
    }
}

impl End {
    /// As [`End::to_json`] writes it.
    ///
    /// # Errors
    /// Says what is no end.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        let read = || {
            let text = |field: &str| value[field].as_str().map(str::to_owned);
            Some(Self { node: text("node")?, at_us: value["at_us"].as_i64()?, how: text("how")? })
        };
        read().ok_or_else(|| format!("this is no end of a node: {value}"))
    }

    /// As [`End::from_json`] reads it.
    pub fn to_json(&self) -> Value {
        json!({"node": self.node, "at_us": self.at_us, "how": self.how})
    }
}
