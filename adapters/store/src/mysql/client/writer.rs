//! Whether a server takes writes: what it says about itself on each new connection, in one round trip.

use std::collections::BTreeMap;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

/// No server of the address takes writes now, with the reason of each.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(in crate::mysql) struct NoWriter(pub String);

/// The variables and the status of a server that count here, by name in lower case.
#[derive(Debug, Default)]
pub(in crate::mysql) struct ServerState(BTreeMap<String, String>);

const QUESTION: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'read_only', 'super_read_only', \
    'innodb_read_only', 'offline_mode', 'log_bin', 'binlog_format', 'innodb_flush_log_at_trx_commit', 'sync_binlog', \
    'max_allowed_packet', 'server_uuid', 'hostname', 'port', 'wsrep_on', 'wsrep_node_name', \
    'group_replication_group_name', 'group_replication_single_primary_mode'); \
    SHOW GLOBAL STATUS WHERE Variable_name IN ('uptime', 'wsrep_ready', 'wsrep_cluster_status', \
    'wsrep_local_state_comment')";

/// The members of a group: which one this is, its state, its role, and how many of all can be reached.
const MEMBERS: &str = "SELECT MEMBER_ID = @@GLOBAL.server_uuid, MEMBER_STATE, MEMBER_ROLE \
    FROM performance_schema.replication_group_members";

impl ServerState {
    /// Asks the server.
    pub async fn ask(conn: &mut Conn) -> Result<Self, mysql_async::Error> {
        let mut answers = conn.query_iter(QUESTION).await?;
        let mut pairs: Vec<(String, String)> = answers.collect().await?;
        pairs.extend(answers.collect::<(String, String)>().await?);
        answers.drop_result().await?;
        Ok(Self::of(pairs))
    }

    /// From names and values.
    pub fn of(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    pub fn is(&self, name: &str, value: &str) -> bool {
        self.text(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
    }

    pub fn is_on(&self, name: &str) -> bool {
        self.text(name).is_some_and(|found| !["0", "off", "none"].contains(&found.to_lowercase().as_str()))
    }

    pub fn is_mariadb(&self) -> bool {
        self.text("version").is_some_and(|version| version.contains("MariaDB"))
    }

    /// Whether it belongs to a group of Group Replication.
    pub fn is_in_group(&self) -> bool {
        self.text("group_replication_group_name").is_some()
    }

    /// The name of this server among all others: MySQL has a number for it, MariaDB its host and port.
    pub fn identity(&self) -> String {
        let host = || format!("{}:{}", self.text("hostname").unwrap_or("?"), self.text("port").unwrap_or("?"));
        self.text("server_uuid").map_or_else(host, str::to_owned)
    }

    /// Why it takes no writes now, as the end of a sentence that begins with its name. `None` if it takes them.
    pub fn why_no_writer(&self) -> Option<String> {
        let read_only = ["super_read_only", "read_only", "innodb_read_only"].into_iter().find(|name| self.is_on(name));
        if let Some(name) = read_only {
            return Some(format!("{name} is on: it is a replica, or it was closed for writing; name the primary"));
        }
        if self.is_on("offline_mode") {
            return Some("offline_mode is on: it lets in administrators only".to_owned());
        }
        if self.is_on("wsrep_on") {
            let state = |name| self.text(name).unwrap_or("unknown");
            if !self.is_on("wsrep_ready") || !self.is("wsrep_cluster_status", "Primary") {
                let status = state("wsrep_cluster_status");
                return Some(format!(
                    "it is not in the majority of its Galera cluster (wsrep_cluster_status is {status})"
                ));
            }
            if !self.is("wsrep_local_state_comment", "Synced") {
                let comment = state("wsrep_local_state_comment");
                return Some(format!("it is behind its Galera cluster (wsrep_local_state_comment is {comment})"));
            }
        }
        None
    }
}

/// The members of a group as one of them sees them.
#[derive(Debug, Default)]
pub(in crate::mysql) struct Members {
    reachable: usize,
    all: usize,
    state: Option<String>,
    role: Option<String>,
}

impl Members {
    /// Asks a server that [belongs to a group](ServerState::is_in_group). `None` where its user may not know.
    pub async fn ask(conn: &mut Conn) -> Result<Option<Self>, mysql_async::Error> {
        const DENIED: u16 = 1142;
        match conn.query::<(bool, String, String), _>(MEMBERS).await {
            Ok(rows) => Ok(Some(Self::of(rows))),
            Err(mysql_async::Error::Server(error)) if error.code == DENIED => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn of(rows: Vec<(bool, String, String)>) -> Self {
        let reachable = |state: &str| state == "ONLINE" || state == "RECOVERING";
        let mut this = Self { all: rows.len(), ..Self::default() };
        for (is_me, state, role) in rows {
            this.reachable += usize::from(reachable(&state));
            if is_me {
                (this.state, this.role) = (Some(state), Some(role));
            }
        }
        this
    }

    /// See [`ServerState::why_no_writer`].
    pub fn why_no_writer(&self) -> Option<String> {
        let state = self.state.as_deref().unwrap_or("OFFLINE");
        if state != "ONLINE" {
            return Some(format!(
                "it is outside its group (its member state is {state}); join it again with START GROUP_REPLICATION"
            ));
        }
        if self.role.as_deref() == Some("SECONDARY") {
            return Some("it is a secondary of its group".to_owned());
        }
        let (reachable, all) = (self.reachable, self.all);
        (reachable * 2 <= all).then(|| format!("it reaches {reachable} of the {all} members of its group, no majority"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(pairs: &[(&str, &str)]) -> ServerState {
        ServerState::of(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    fn why(pairs: &[(&str, &str)]) -> String {
        state(pairs).why_no_writer().unwrap_or_default()
    }

    #[test]
    fn a_server_that_takes_no_writes_says_why() {
        assert_eq!(why(&[("read_only", "OFF"), ("super_read_only", "OFF"), ("wsrep_on", "OFF")]), "");
        assert!(why(&[("read_only", "ON")]).starts_with("read_only is on"));
        assert!(why(&[("read_only", "ON"), ("super_read_only", "ON")]).starts_with("super_read_only is on"));
        assert!(why(&[("offline_mode", "ON")]).starts_with("offline_mode"));
        let galera = |ready, status, comment| {
            why(&[
                ("wsrep_on", "ON"),
                ("wsrep_ready", ready),
                ("wsrep_cluster_status", status),
                ("wsrep_local_state_comment", comment),
            ])
        };
        assert_eq!(galera("ON", "Primary", "Synced"), "");
        assert!(galera("OFF", "Primary", "Synced").contains("majority"));
        assert!(galera("ON", "non-Primary", "Synced").contains("non-Primary"));
        assert!(galera("ON", "Primary", "Donor/Desynced").contains("Donor/Desynced"));
    }

    #[test]
    fn a_member_writes_only_as_the_primary_of_a_majority() {
        let why = |rows: &[(bool, &str, &str)]| {
            let rows = rows.iter().map(|(me, state, role)| (*me, (*state).to_owned(), (*role).to_owned())).collect();
            Members::of(rows).why_no_writer().unwrap_or_default()
        };
        let (online, lost) = ("ONLINE", "UNREACHABLE");
        assert_eq!(why(&[(true, online, "PRIMARY"), (false, online, "SECONDARY"), (false, lost, "SECONDARY")]), "");
        assert!(
            why(&[(true, online, "PRIMARY"), (false, lost, "SECONDARY"), (false, lost, "SECONDARY")])
                .contains("1 of the 3")
        );
        assert!(why(&[(true, online, "PRIMARY"), (false, lost, "SECONDARY")]).contains("no majority"));
        assert!(why(&[(true, online, "SECONDARY"), (false, online, "PRIMARY")]).contains("secondary"));
        assert!(why(&[(true, "OFFLINE", "")]).contains("outside its group"));
        assert!(why(&[]).contains("outside its group"));
    }

    #[test]
    fn a_server_is_known_by_its_number_or_by_its_host() {
        assert_eq!(state(&[("server_uuid", "u-1"), ("hostname", "h")]).identity(), "u-1");
        assert_eq!(state(&[("hostname", "h"), ("port", "3306")]).identity(), "h:3306");
    }
}
