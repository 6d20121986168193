//! The mechanisms that make a firing cheap, each with a switch, so that `./bench ablate` can show its gain.
//!
//! No mechanism is needed for correctness: the node and the stores do the same without it, with more statements or more CPU.
//! A server reads the switches once at its start; a switch costs one relaxed load of an atomic number.

use std::sync::atomic::{AtomicU32, Ordering};

/// The list: the meaning of each and its name on command lines.
macro_rules! mechanisms {
    ($($(#[$doc:meta])+ $mechanism:ident $name:literal;)+) => {
        /// A mechanism for speed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Mechanism {
            $($(#[$doc])+ $mechanism,)+
        }

        impl Mechanism {
            /// All of them.
            pub const ALL: [Mechanism; [$($name),+].len()] = [$(Mechanism::$mechanism),+];

            /// Its name on command lines and in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Mechanism::$mechanism => $name,)+
                }
            }
        }
    };
}

mechanisms! {
    /// Finishes wait for others, so that one commit records many.
    Linger "linger";
    /// Starts are limited to about thirty a second, so that one commit starts many.
    StartRate "start-rate";
    /// A second start or finish goes while the first is in flight.
    InFlightWindow "in-flight-window";
    /// Starts go before finishes for a moment.
    StartPriority "start-priority";
    /// A finish claims the job's next firing in its commit.
    SuccessorClaim "successor-claim";
    /// A claim starts in its commit what is due already.
    ClaimAndStart "claim-and-start";
    /// The process remembers the rows that it wrote, each at its version.
    RowCache "row-cache";
    /// A start of cached rows is one statement that commits by itself.
    OptimisticStart "optimistic-start";
    /// A batch carries the common prefix of its values once.
    PrefixEncoding "prefix-encoding";
    /// A short run of a plugin has no task of its own.
    DetachedRun "detached-run";
}

/// A bit for each mechanism that is switched off.
static OFF: AtomicU32 = AtomicU32::new(0);

impl Mechanism {
    /// The mechanism of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    const fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// Whether the mechanism is used.
pub fn enabled(mechanism: Mechanism) -> bool {
    OFF.load(Ordering::Relaxed) & mechanism.bit() == 0
}

/// Switches the mechanism off for the life of the process.
pub fn switch_off(mechanism: Mechanism) {
    OFF.fetch_or(mechanism.bit(), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mechanism_has_a_name_and_a_bit_of_its_own() {
        let mut bits = 0;
        for mechanism in Mechanism::ALL {
            assert_eq!(Mechanism::from_name(mechanism.name()), Some(mechanism));
            assert_eq!(bits & mechanism.bit(), 0, "{mechanism:?}");
            bits |= mechanism.bit();
            assert!(enabled(mechanism), "{mechanism:?} is on by default");
        }
        assert_eq!(Mechanism::from_name("magic"), None);
    }
}
