//! The limits of servers that decide how long a failover takes, read from what a server says.

use std::time::Duration;

use carillon_domain::lease::FailoverLimits;

use super::Answers;

impl Answers {
    /// Those that the server tells.
    pub fn failover_limits(&self) -> FailoverLimits {
        let options = self.state.text("wsrep_provider_options").unwrap_or_default();
        let seconds = |name| self.state.number(name).map(Duration::from_secs);
        FailoverLimits {
            suspect: period(options, "evs.suspect_timeout"),
            inactive: period(options, "evs.inactive_timeout"),
            expel: seconds("group_replication_member_expel_timeout"),
            unreachable_majority: seconds("group_replication_unreachable_majority_timeout"),
        }
    }
}

/// A period such as `PT5S`, `PT0.5S` or `PT1M30S` among `name = value; name = value`.
fn period(options: &str, name: &str) -> Option<Duration> {
    let mut pairs = options.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(found, _)| found.trim() == name)?;
    let mut rest = value.trim().strip_prefix("PT")?;
    let mut total = 0.0;
    while let Some(end) = rest.find(['H', 'M', 'S']) {
        let (number, unit) = rest.split_at(end);
        let seconds = match unit.get(..1)? {
            "H" => 3_600.0,
            "M" => 60.0,
            _ => 1.0,
        };
        total += number.parse::<f64>().ok()? * seconds;
        rest = unit.get(1..)?;
    }
    if rest.is_empty() { Duration::try_from_secs_f64(total).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::topology::ServerState;

    #[test]
    fn limits_are_read_from_the_words_of_servers() {
        let limits = |pairs: &[(&str, &str)]| {
            let state = ServerState::of(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())));
            Answers { state, members: None }.failover_limits()
        };
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(limits(&[]), FailoverLimits::default());
        let options = "base_port = 4567; evs.inactive_timeout = PT15S; evs.suspect_timeout = PT5S; gcs.fc_limit = 16";
        let galera = limits(&[("wsrep_on", "ON"), ("wsrep_provider_options", options)]);
        assert_eq!((galera.suspect, galera.inactive), (ms(5_000), ms(15_000)));
        for (text, expected) in [
            ("PT0.5S", ms(500)),
            ("PT1M30S", ms(90_000)),
            ("PT1H", ms(3_600_000)),
            ("5", None),
            ("PT5", None),
            ("PTS", None),
        ] {
            assert_eq!(period(&format!("evs.suspect_timeout={text}"), "evs.suspect_timeout"), expected, "{text}");
        }
        let group = limits(&[
            ("group_replication_member_expel_timeout", "5"),
            ("group_replication_unreachable_majority_timeout", "0"),
        ]);
        assert_eq!((group.expel, group.unreachable_majority), (ms(5_000), ms(0)));
    }
}
