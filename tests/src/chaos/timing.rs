//! How long the nodes of a field may be without something, as their configuration says.

use std::time::Duration;

/// Of `[session]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Without an acknowledged heartbeat for so long, a node ends itself.
    pub self_kill_after: Duration,
    /// So long may a keeper go without CPU.
    pub pause: Duration,
    /// So long after its last sign of life the others end a node's session.
    pub expire_after: Duration,
}

impl Timing {
    /// Reads `carillon.toml`; what it does not name is as the server presets it.
    ///
    /// # Panics
    /// On a time that is neither in `ms` nor in `s`.
    pub fn of(config: &str) -> Self {
        let named = |name: &str| {
            let line = |line: &str| Some(line.trim().strip_prefix(name)?.trim().strip_prefix('=')?.trim().to_owned());
            config.lines().find_map(line).map(|value| duration(value.trim_matches('"')))
        };
        Self {
            self_kill_after: named("self_kill_after").unwrap_or(Duration::from_secs(12)),
            pause: named("pause").unwrap_or(Duration::from_secs(4)),
            expire_after: named("expire_after").unwrap_or(Duration::from_secs(20)),
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
    use super::Timing;
    use crate::cluster::FAST;
    use std::time::Duration;

    #[test]
    fn a_configuration_is_read_and_the_presets_stand_in() {
        let fast = Timing::of(FAST);
        assert_eq!((fast.self_kill_after, fast.pause), (Duration::from_millis(2_400), Duration::from_secs(1)));
        assert_eq!(fast.expire_after, Duration::from_secs(4));
        assert_eq!(Timing::of("").expire_after, Duration::from_secs(20));
    }
}
