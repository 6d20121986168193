// Written from the OpenAPI document by `UPDATE=1 cargo test -p carillon-tests --test clients`; not by hand.

//! Routes of alerts, messages and troubles.

use serde::{Deserialize, Serialize};

use super::*;

/// A route. It may be put back as it was read: secrets that are not shown stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// How many runs must end badly in a row.
    pub after: i64,
    pub created_at: String,
    pub r#match: AlertMatch,
    pub name: String,
    pub repeat: Option<String>,
    pub to: Vec<AlertTo>,
    pub updated_at: String,
    pub version: i64,
    pub when: Vec<AlertWhen>,
}

/// A route. Its name stands in the path.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AlertDefinition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#match: Option<AlertDefinitionMatch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
    pub to: Vec<AlertDefinitionTo>,
    pub when: Vec<AlertWhen>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AlertDefinitionMatch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<std::collections::BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum AlertDefinitionTo {
    #[serde(rename = "webhook")]
    Webhook {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<String>,
        /// Read without what follows the host; put back so, the stored one stays.
        url: String,
    },
    #[serde(rename = "slack")]
    Slack {
        /// Read without what follows the host; put back so, the stored one stays.
        url: String,
    },
    #[serde(rename = "mattermost")]
    Mattermost {
        /// Read without what follows the host; put back so, the stored one stays.
        url: String,
    },
    #[serde(rename = "teams")]
    Teams {
        /// Read without what follows the host; put back so, the stored one stays.
        url: String,
    },
    #[serde(rename = "mail")]
    Mail {
        to: Vec<String>,
    },
    #[serde(rename = "command")]
    Command {
        command: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlertMatch {
    /// Jobs of any of these names; `*` stands for any characters.
    pub jobs: Vec<String>,
    /// Jobs that have all of these.
    pub labels: std::collections::BTreeMap<String, String>,
    /// Jobs of any of these.
    pub namespaces: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum AlertTo {
    #[serde(rename = "webhook")]
    Webhook {
        secret: Option<String>,
        /// Read without what follows the host; put back so, the stored one stays.
        url: String,
    },
    #[serde(rename = "slack")]
    Slack {
        /// Read without what follows the host; put back so, the stored one stays.
        url: String,
    },
    #[serde(rename = "mattermost")]
    Mattermost {
        /// Read without what follows the host; put back so, the stored one stays.
        url: String,
    },
    #[serde(rename = "teams")]
    Teams {
        /// Read without what follows the host; put back so, the stored one stays.
        url: String,
    },
    #[serde(rename = "mail")]
    Mail {
        to: Vec<String>,
    },
    #[serde(rename = "command")]
    Command {
        command: String,
        timeout: String,
    },
}

choice! { AlertWhen {
    Failed = "failed",
    TimedOut = "timed_out",
    Lost = "lost",
    Skipped = "skipped",
    LateStart = "late_start",
    LateFinish = "late_finish",
    Recovered = "recovered",
    Output = "output",
    NodeLost = "node_lost",
    CommitsLost = "commits_lost",
    ClockDrift = "clock_drift",
    DatabaseAway = "database_away",
    DiskFull = "disk_full",
    PluginRefused = "plugin_refused",
    CertificateExpires = "certificate_expires",
} }

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alerts {
    pub items: Vec<Alert>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deliveries {
    pub items: Vec<Delivery>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    pub answer: Option<String>,
    pub host: String,
    pub id: i64,
    pub made_at: String,
    pub next_at: Option<String>,
    pub notice: Option<DeliveryNotice>,
    pub ping: Option<DeliveryPing>,
    pub route: Option<String>,
    pub settled_at: Option<String>,
    pub state: DeliveryState,
    pub tries: i64,
    pub r#type: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeliveryNotice {
    pub at: String,
    pub due_at: Option<String>,
    pub id: String,
    pub job: Option<String>,
    pub namespace: Option<String>,
    pub run: Option<String>,
    pub sentence: String,
    pub state: DeliveryNoticeState,
    pub then: String,
    pub when: AlertWhen,
}

choice! { DeliveryNoticeState {
    Open = "open",
    Recovered = "recovered",
    Test = "test",
} }

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeliveryPage {
    pub items: Vec<Delivery>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeliveryPing {
    pub id: String,
    pub kind: DeliveryPingKind,
    pub run: String,
}

choice! { DeliveryPingKind {
    Start = "start",
    Success = "success",
    Failure = "failure",
} }

choice! { DeliveryState {
    Waiting = "waiting",
    Sending = "sending",
    Sent = "sent",
    Dead = "dead",
} }

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    pub class: IncidentClass,
    pub count: i64,
    pub due_at: Option<String>,
    pub job: Option<String>,
    pub namespace: Option<String>,
    pub part: Option<String>,
    pub route: String,
    pub run: Option<String>,
    pub sentence: Option<String>,
    pub since: String,
    pub tellings: i64,
    pub then: Option<String>,
    pub told_at: Option<String>,
}

choice! { IncidentClass {
    Outcome = "outcome",
    Skipped = "skipped",
    LateStart = "late_start",
    LateFinish = "late_finish",
    NodeLost = "node_lost",
    CommitsLost = "commits_lost",
    ClockDrift = "clock_drift",
    DiskFull = "disk_full",
    PluginRefused = "plugin_refused",
    CertificateExpires = "certificate_expires",
} }

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incidents {
    pub items: Vec<Incident>,
}
