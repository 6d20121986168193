//! What a store need not ask before it starts what it knows: how late it is by the database, and that the session was in order
//! when it was looked at last.
//!
//! Neither is certain. The time is a lower bound, as the node's own is (`carillon_domain::lease::DatabaseClock`), and drifts;
//! the session may have been ended since. So whoever reckons with it has the statement that writes ask again.

use carillon_domain::id::SessionId;
use carillon_domain::time::Timestamp;

use super::tables::Standing;

/// After so long the best bound of a time is forgotten, as clocks are set now and then; at the latest after twice as long.
/// Longer than the node keeps those of its heartbeats, so that what is due by its clock is due by this one.
const KEPT_US: u64 = 15_000_000;

/// A session that may start, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reckoned {
    /// The database's time, never later than it shows.
    pub now: Timestamp,
    /// The end of the newest window of lost commits there ever was.
    pub losses_until: Option<Timestamp>,
}

/// What was heard of the database.
#[derive(Debug, Default)]
pub(super) struct Reckoning {
    /// The database's time minus the boot clock, at best, lately and in the period before.
    offset_us: Option<i64>,
    older_offset_us: Option<i64>,
    /// When the period began.
    since_us: u64,
    in_order: Option<(SessionId, Option<Timestamp>)>,
}

impl Reckoning {
    /// The database showed `now_us` before `arrived_us` by the boot clock.
    pub fn hear(&mut self, now_us: i64, arrived_us: u64) {
        let past_us = arrived_us.saturating_sub(self.since_us);
        if past_us >= KEPT_US {
            self.older_offset_us = self.offset_us.take().filter(|_| past_us < 2 * KEPT_US);
            self.since_us = arrived_us;
        }
        let offset_us = now_us.saturating_sub(i64::try_from(arrived_us).unwrap_or(i64::MAX));
        self.offset_us = self.offset_us.max(Some(offset_us));
    }

    /// The session stands like this, with any run `beside` its job's row or none. One that may not start, or not without a look
    /// at other rows, is asked for each time.
    pub fn see(&mut self, session: SessionId, standing: &Standing, beside: bool) {
        self.in_order = (standing.is_in_order() && !beside).then_some((session, standing.losses_until));
    }

    /// Until it is looked at again nothing is known of the session.
    pub fn forget(&mut self) {
        self.in_order = None;
    }

    /// What may be reckoned with, when the boot clock shows `at_us`.
    pub fn known(&self, session: SessionId, at_us: u64) -> Option<Reckoned> {
        let (_, losses_until) = self.in_order.filter(|(of, _)| *of == session)?;
        let offset_us = self.offset_us.max(self.older_offset_us)?;
        let fresh = at_us.saturating_sub(self.since_us) < 2 * KEPT_US;
        let now_us = i64::try_from(at_us).unwrap_or(i64::MAX).saturating_add(offset_us);
        fresh.then_some(Reckoned { now: Timestamp::from_ms(now_us.div_euclid(1000)), losses_until })
    }
}

#[cfg(test)]
mod tests {
    use carillon_domain::lost_commits::LossWindow;

    use super::super::tables::KnownSession;
    use super::*;
    use crate::{SessionBeat, SessionState};

    const ME: fn() -> SessionId = || SessionId::from_random(1);

    fn standing(state: SessionState) -> Standing {
        let beat = SessionBeat { id: ME(), seq: 3, state };
        let own = KnownSession { beat, node: "n".to_owned(), heartbeat_at: Timestamp::EPOCH };
        Standing { session: Some(own), open: None, losses_until: Some(Timestamp::from_ms(7)) }
    }

    fn in_order() -> Reckoning {
        let mut reckoning = Reckoning::default();
        reckoning.see(ME(), &standing(SessionState::Live), false);
        reckoning
    }

    fn now_ms(reckoning: &Reckoning, at_us: u64) -> Option<i64> {
        reckoning.known(ME(), at_us).map(|known| known.now.as_ms())
    }

    #[test]
    fn the_best_bound_counts_until_its_time_is_over() {
        let mut reckoning = in_order();
        assert_eq!(now_ms(&reckoning, 0), None, "nothing was heard");
        // The answer took 2 ms, then 40 ms, then 1 ms.
        reckoning.hear(5_000_000, 2_000);
        reckoning.hear(5_100_000, 140_000);
        assert_eq!(now_ms(&reckoning, 202_000), Some(5_200));
        reckoning.hear(5_300_000, 301_000);
        assert_eq!([now_ms(&reckoning, 401_000), now_ms(&reckoning, 401_900)], [Some(5_400), Some(5_400)]);
        // The clock is set back by a second: the old bound counts for a period or two.
        reckoning.hear(20_000_000, 16_000_000);
        assert_eq!(now_ms(&reckoning, 17_000_000), Some(21_999));
        reckoning.hear(36_000_000, 32_000_000);
        assert_eq!(now_ms(&reckoning, 32_000_000), Some(36_000));
    }

    #[test]
    fn what_was_heard_long_ago_is_not_known() {
        let mut reckoning = in_order();
        reckoning.hear(5_000_000, 1_000_000);
        assert_eq!(now_ms(&reckoning, 40_000_000), None);
        reckoning.hear(10_000_000, 40_000_000);
        assert_eq!(now_ms(&reckoning, 40_000_000), Some(10_000), "nor counts it beside what is heard now");
    }

    #[test]
    fn only_a_session_in_order_is_known() {
        let at = Timestamp::from_ms(9);
        let open = Some(LossWindow { from_at: at, until_at: at, noticed_at: at });
        let (live, draining) = (standing(SessionState::Live), standing(SessionState::Draining));
        for (seen, beside, known) in [
            (&live, false, true),
            (&draining, false, true),
            (&live, true, false),
            (&standing(SessionState::Ended), false, false),
            (&Standing { session: None, ..live.clone() }, false, false),
            (&Standing { open, ..live.clone() }, false, false),
        ] {
            let mut reckoning = Reckoning::default();
            reckoning.hear(1_000, 0);
            reckoning.see(ME(), seen, beside);
            let expected = known.then_some(Reckoned { now: Timestamp::from_ms(1), losses_until: live.losses_until });
            assert_eq!(reckoning.known(ME(), 0), expected, "{seen:?}, {beside}");
            assert_eq!(reckoning.known(SessionId::from_random(2), 0), None);
            reckoning.forget();
            assert_eq!(reckoning.known(ME(), 0), None);
        }
    }
}
