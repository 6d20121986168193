//! How many messages are on their way at once, in all and to each receiver.
//!
//! A receiver that hangs holds a place for as long as a message may take. So each receiver has a *lane* with a few
//! places, and a lane that hung has one for an hour. All that hung share half of the places; the rest is for receivers that
//! answer.

use std::collections::BTreeMap;
use std::time::Duration;

use carillon_domain::time::BootTime;

/// How much may be on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Messages at once, to all receivers together; at least 2.
    pub in_all: usize,
    /// Messages at once to one receiver; at least 1.
    pub per_lane: usize,
    /// Messages to one receiver that may follow each other without a pause.
    pub burst: u32,
    /// The pause between two messages to one receiver after a burst. Slack asks for a second.
    pub pause: Duration,
}

/// How long a lane that hung has one place only, unless it answers.
const REMEMBERED: Duration = Duration::from_secs(3_600);

impl Default for Limits {
    fn default() -> Self {
        Self { in_all: 32, per_lane: 4, burst: 10, pause: Duration::from_secs(1) }
    }
}

/// Why a message has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// All places are taken; ask again after the next [`Lanes::leave`].
    ForAPlace,
    /// The receiver has had enough for now; ask again at this time.
    Until(BootTime),
}

/// How a message left its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The receiver answered, whatever it said.
    Answered,
    /// The receiver answered and asks to be left alone for so long.
    Hold(Duration),
    /// The receiver did not answer in time, or could not be reached.
    Hung,
}

/// The lanes of one node. They are not shared between nodes: each node has its own few places.
#[derive(Debug, Default)]
pub struct Lanes {
    limits: Limits,
    lanes: BTreeMap<String, Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    inside: usize,
    /// When the messages sent so far are paid for, at one `pause` each.
    paid_until: BootTime,
    held_until: BootTime,
    /// Until when it counts as a lane that hangs.
    hung_until: BootTime,
}

impl Lanes {
    /// Lanes with nothing on its way.
    pub fn new(limits: Limits) -> Self {
        Self { limits, lanes: BTreeMap::new() }
    }

    /// Takes a place in the lane `name`. Who takes one calls [`Lanes::leave`] when the message is done.
    pub fn enter(&mut self, name: &str, now: BootTime) -> Result<(), Wait> {
        let inside: usize = self.lanes.values().map(|lane| lane.inside).sum();
        let hung: usize = self.lanes.values().filter(|lane| lane.hung_until > now).map(|lane| lane.inside).sum();
        let Limits { in_all, per_lane, burst, pause } = self.limits;
        let lane = self.lanes.get(name);
        let (taken, hangs) = lane.map_or((0, false), |lane| (lane.inside, lane.hung_until > now));
        let places = if hangs { 1 } else { per_lane };
        if inside >= in_all || taken >= places || (hangs && hung >= in_all / 2) {
            return Err(Wait::ForAPlace);
        }
        let (paid_until, held_until) = lane.map_or_else(Default::default, |lane| (lane.paid_until, lane.held_until));
        let credit = pause.saturating_mul(burst.saturating_sub(1));
        let free_at = BootTime::from_ms(paid_until.as_ms().saturating_sub((BootTime::default() + credit).as_ms()));
        let free_at = free_at.max(held_until);
        if free_at > now {
            return Err(Wait::Until(free_at));
        }
        let lane = self.lanes.entry(name.to_owned()).or_default();
        lane.inside += 1;
        lane.paid_until = paid_until.max(now) + pause;
        Ok(())
    }

    /// Gives the place back.
    pub fn leave(&mut self, name: &str, now: BootTime, left: Left) {
        if let Some(lane) = self.lanes.get_mut(name) {
            lane.inside = lane.inside.saturating_sub(1);
            match left {
                Left::Answered => lane.hung_until = BootTime::default(),
                Left::Hold(hold) => {
                    lane.hung_until = BootTime::default();
                    lane.held_until = lane.held_until.max(now + hold);
                }
                Left::Hung => lane.hung_until = now + REMEMBERED,
            }
        }
        // A lane that says nothing any more is forgotten, so that the map stays as small as what is going on.
        self.lanes.retain(|_, lane| lane.inside > 0 || lane.paid_until.max(lane.held_until).max(lane.hung_until) > now);
    }

    /// Messages on their way.
    pub fn inside(&self) -> usize {
        self.lanes.values().map(|lane| lane.inside).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits { in_all: 4, per_lane: 2, burst: 3, pause: Duration::from_secs(1) };

    fn at(ms: u64) -> BootTime {
        BootTime::from_ms(100_000 + ms)
    }

    #[test]
    fn a_hanging_receiver_holds_up_nobody_else() {
        let mut lanes = Lanes::new(LIMITS);
        for name in ["a", "a", "b", "b"] {
            assert_eq!(lanes.enter(name, at(0)), Ok(()));
        }
        // At first all places may be taken by receivers that hang: nobody knows yet.
        assert_eq!(lanes.enter("healthy", at(0)), Err(Wait::ForAPlace));
        for name in ["a", "a", "b", "b"] {
            lanes.leave(name, at(0), Left::Hung);
        }
        // From then on each has one place, and all of them half of the places.
        assert_eq!(lanes.enter("a", at(5_000)), Ok(()));
        assert_eq!(lanes.enter("a", at(5_000)), Err(Wait::ForAPlace));
        assert_eq!(lanes.enter("b", at(5_000)), Ok(()));
        assert_eq!(lanes.enter("healthy", at(5_000)), Ok(()));
        assert_eq!(lanes.enter("healthy", at(5_000)), Ok(()));
        assert_eq!(lanes.inside(), 4);
        // An answer opens the lane again.
        lanes.leave("a", at(6_000), Left::Answered);
        lanes.leave("healthy", at(6_000), Left::Answered);
        lanes.leave("healthy", at(6_000), Left::Answered);
        assert_eq!((lanes.enter("a", at(9_000)), lanes.enter("a", at(9_000))), (Ok(()), Ok(())));
    }

    #[test]
    fn all_that_hung_share_half_of_the_places() {
        let mut lanes = Lanes::new(LIMITS);
        for name in ["a", "b", "c"] {
            assert_eq!(lanes.enter(name, at(0)), Ok(()));
        }
        for name in ["a", "b", "c"] {
            lanes.leave(name, at(0), Left::Hung);
        }
        assert_eq!((lanes.enter("a", at(1)), lanes.enter("b", at(1))), (Ok(()), Ok(())));
        assert_eq!(lanes.enter("c", at(1)), Err(Wait::ForAPlace));
        assert_eq!((lanes.enter("d", at(1)), lanes.enter("e", at(1))), (Ok(()), Ok(())));
    }

    #[test]
    fn after_a_burst_messages_keep_a_pause() {
        let mut lanes = Lanes::new(LIMITS);
        for _ in 0..3 {
            assert_eq!(lanes.enter("a", at(0)), Ok(()));
            lanes.leave("a", at(0), Left::Answered);
        }
        assert_eq!(lanes.enter("a", at(0)), Err(Wait::Until(at(1_000))));
        assert_eq!(lanes.enter("b", at(0)), Ok(()));
        assert_eq!(lanes.enter("a", at(999)), Err(Wait::Until(at(1_000))));
        assert_eq!(lanes.enter("a", at(1_000)), Ok(()));
        assert_eq!(lanes.enter("a", at(1_000)), Err(Wait::Until(at(2_000))));
    }

    #[test]
    fn a_receiver_that_asks_for_it_is_left_alone() {
        let mut lanes = Lanes::new(LIMITS);
        lanes.enter("a", at(0)).unwrap();
        lanes.leave("a", at(10), Left::Hold(Duration::from_secs(30)));
        assert_eq!(lanes.enter("a", at(20_000)), Err(Wait::Until(at(30_010))));
        assert_eq!(lanes.enter("b", at(20_000)), Ok(()));
        assert_eq!(lanes.enter("a", at(30_010)), Ok(()));
    }

    #[test]
    fn lanes_are_forgotten_when_they_say_nothing_any_more() {
        let mut lanes = Lanes::new(LIMITS);
        for n in 0..1_000 {
            let name = format!("receiver {n}");
            lanes.enter(&name, at(n * 2_000)).unwrap();
            lanes.leave(&name, at(n * 2_000 + 1_500), Left::Answered);
        }
        assert!(lanes.lanes.len() <= 1, "{} lanes", lanes.lanes.len());
    }

    proptest! {
        #[test]
        fn no_limit_is_ever_passed_and_no_place_is_lost(
            steps in prop::collection::vec((0..6_usize, 0..4_u8, 0..1_500_u64), 1..200),
        ) {
            let mut lanes = Lanes::new(LIMITS);
            let (mut inside, mut entered, mut now) = ([0_usize; 6], [const { Vec::<u64>::new() }; 6], 0);
            for (lane, step, later) in steps {
                now += later;
                let name = lane.to_string();
                if step < 2 {
                    if lanes.enter(&name, at(now)).is_ok() {
                        inside[lane] += 1;
                        entered[lane].push(now);
                    }
                } else if inside[lane] > 0 {
                    inside[lane] -= 1;
                    lanes.leave(&name, at(now), if step == 2 { Left::Answered } else { Left::Hung });
                }
                prop_assert!(inside.iter().all(|inside| *inside <= LIMITS.per_lane));
                prop_assert!(inside.iter().sum::<usize>() <= LIMITS.in_all);
                prop_assert_eq!(inside.iter().sum::<usize>(), lanes.inside());
            }
            // Any four that follow each other take at least the pause: three are a burst.
            for times in &entered {
                prop_assert!(times.windows(4).all(|four| four[3] - four[0] >= 1_000));
            }
            for (lane, inside) in inside.iter().enumerate() {
                for _ in 0..*inside {
                    lanes.leave(&lane.to_string(), at(now), Left::Answered);
                }
            }
            prop_assert_eq!(lanes.inside(), 0);
            prop_assert_eq!(lanes.enter("another", at(now)), Ok(()));
        }
    }
}
