//! The variables and the status of a server that count here.

use std::collections::BTreeMap;

/// By name in lower case.
#[derive(Debug, Default)]
pub(in crate::mysql) struct ServerState(BTreeMap<String, String>);

impl ServerState {
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

    /// An engine that speaks MySQL's protocol and on which promises are not proved.
    pub fn unproved_engine(&self) -> Option<&'static str> {
        let texts = [self.text("version"), self.text("version_comment")];
        let says = |name: &str| texts.iter().flatten().any(|text| text.to_lowercase().contains(&name.to_lowercase()));
        ["TiDB", "Vitess", "PlanetScale", "OceanBase"].into_iter().find(|name| says(name))
    }

    /// The name of this server among all others: its host and port, and the number that MySQL has for it.
    pub fn identity(&self) -> String {
        let at = format!("{}:{}", self.text("hostname").unwrap_or("?"), self.text("port").unwrap_or("?"));
        match self.text("server_uuid") {
            Some(number) => format!("{at} ({number})"),
            None => at,
        }
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
    fn a_server_is_known_by_its_host_and_by_its_number() {
        assert_eq!(state(&[("server_uuid", "u-1"), ("hostname", "h"), ("port", "3306")]).identity(), "h:3306 (u-1)");
        assert_eq!(state(&[("hostname", "h"), ("port", "3306")]).identity(), "h:3306");
    }
}
