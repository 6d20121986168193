//! How long the nodes of a field may be without something, as their configuration says.

use std::time::Duration;

use super::kind::Kind;

/// Of `[session]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// So often it tells that it lives.
    pub heartbeat: Duration,
    /// Without an acknowledged heartbeat for so long, a node ends itself.
    pub self_kill_after: Duration,
    /// So long may a keeper go without CPU.
    pub pause: Duration,
    /// So long after its last sign of life the others end a node's session.
    pub expire_after: Duration,
}

impl Timing {
    /// Reads `carillon.toml`; what it does not name is as the server presets it, which depends on the database where it names nothing
    /// at all.
    ///
    /// # Panics
    /// On a time that is neither in `ms` nor in `s`.
    pub fn of(config: &str, kind: Kind) -> Self {
        let (self_kill_after, expire_after) = match kind {
            _ if config.contains("[session]") => (12, 20),
            Kind::One(_) | Kind::Replicated(_) => (12, 20),
            Kind::Galera | Kind::GaleraMultiWriter => (18, 26),
            Kind::Group => (30, 40),
        };
        let named = |name: &str| {
            let line = |line: &str| Some(line.trim().strip_prefix(name)?.trim().strip_prefix('=')?.trim().to_owned());
            config.lines().find_map(line).map(|value| duration(value.trim_matches('"')))
        };
        Self {
            heartbeat: named("heartbeat").unwrap_or(Duration::from_secs(3)),
            self_kill_after: named("self_kill_after").unwrap_or(Duration::from_secs(self_kill_after)),
            pause: named("pause").unwrap_or(Duration::from_secs(4)),
            expire_after: named("expire_after").unwrap_or(Duration::from_secs(expire_after)),
        }
    }
}

fn duration(text: &str) -> Duration {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let number = digits.parse().unwrap_or_else(|_| panic!("{text} is no time"));
    match &text[digits.len()..] {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        _ => panic!("{text} is neither in ms nor in s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Timing};
    use crate::cluster::FAST;
    use crate::databases::Brand;
    use std::time::Duration;

    #[test]
    fn a_configuration_is_read_and_the_presets_stand_in() {
        let one = Kind::One(Brand::MariaDb);
        let fast = Timing::of(FAST, Kind::Group);
        assert_eq!(fast.heartbeat, Duration::from_millis(500));
        assert_eq!((fast.self_kill_after, fast.pause), (Duration::from_millis(2_400), Duration::from_secs(1)));
        assert_eq!(fast.expire_after, Duration::from_secs(4));
        let presets = |kind| Timing::of("", kind).expire_after.as_secs();
        assert_eq!([one, Kind::Galera, Kind::Group].map(presets), [20, 26, 40]);
        assert_eq!(Timing::of("[session]\npause = \"1s\"\n", Kind::Group).expire_after, Duration::from_secs(20));
    }
}
