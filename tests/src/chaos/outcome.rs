//! The outcome of a strike.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The outcome of a strike. Times are microseconds since 1970 by the machine's clock, which no fault moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was seen to take effect, and is undone.
    Effective(Seen),
    /// It was undone without having been seen to take effect: it does not count.
    NotEffective {
        /// The missing part.
        why: String,
    },
}

/// A fault that took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The observation.
    pub evidence: String,
    /// When it began.
    pub from_us: u64,
    /// When it was undone and what it hurt was seen to be back.
    pub until_us: u64,
    /// The node that it strikes; none where it strikes the database.
    pub node: Option<String>,
    /// By how much the database's clock was moved meanwhile, which due times follow; 0 for all but one class.
    pub database_clock_ms: i64,
}

/// The answer of a strike: the observation, or why it does not count.
pub(super) type Struck = Result<Seen, String>;

impl From<Struck> for Outcome {
    fn from(struck: Struck) -> Self {
        match struck {
            Ok(seen) => Outcome::Effective(seen),
            Err(why) => Outcome::NotEffective { why },
        }
    }
}

/// A fault that has begun.
pub(super) struct Begun {
    from_us: u64,
    node: Option<String>,
}

impl Begun {
    /// Begins now, on a node or on the database.
    pub fn on(node: Option<&str>) -> Self {
        Self { from_us: now_us(), node: node.map(str::to_owned) }
    }

    /// It is over, and this was seen.
    pub fn seen(self, evidence: String) -> Seen {
        Seen { evidence, from_us: self.from_us, until_us: now_us(), node: self.node, database_clock_ms: 0 }
    }
}

/// The machine's clock in microseconds since 1970.
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    u64::try_from(since.as_micros()).expect("a time of this age")
}

/// Lets the whole of a time pass.
pub(super) fn last_for(time: Duration) {
    let end = Instant::now() + time;
    // A thread may be woken by what it waited for before.
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

/// Looks again and again; whether it came within `patience`.
pub(super) fn comes(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > patience {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    true
}

/// As [`comes`]; the sentence where it did not.
pub(super) fn must_come(patience: Duration, what: &str, condition: impl FnMut() -> bool) -> Result<(), String> {
    if comes(patience, condition) { Ok(()) } else { Err(format!("waited {patience:?} in vain: {what}")) }
}
