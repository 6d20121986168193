//! The facts that a store assumes for an optimistic start: the database's time, and that the session was in order.
//!
//! Neither is certain. The time is a lower bound, as the node's own is (`carillon_domain::lease::DatabaseClock`), and drifts. The
//! session may have been ended since. So the statement that writes checks both again.

use carillon_domain::id::SessionId;
use carillon_domain::time::Timestamp;

use crate::tables::Standing;

/// The best bound of the time is forgotten after one to two of these periods, as clocks are set now and then. The period is longer
/// than the node's own, so a run that is due by the node's clock is due by this one.
const KEPT_US: u64 = 15_000_000;

/// The estimate for a session that may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Estimate {
    /// The database's time, never later than it shows.
    pub now: Timestamp,
    /// The end of the newest loss window there ever was.
    pub losses_until: Option<Timestamp>,
}

/// The times that the database has told.
#[derive(Debug, Default)]
pub(crate) struct ClockEstimate {
    /// The database's time minus the boot clock, at best, lately and in the period before.
    offset_us: Option<i64>,
    older_offset_us: Option<i64>,
    /// When the period began.
    since_us: u64,
    in_order: Option<(SessionId, Option<Timestamp>)>,
}

impl ClockEstimate {
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

    /// The session stands like this. The estimate holds only for one that may start.
    pub fn see(&mut self, session: SessionId, standing: &Standing) {
        self.in_order = standing.is_in_order().then_some((session, standing.losses_until));
    }

    /// Nothing is known of the session until its standing is read again.
    pub fn forget(&mut self) {
        self.in_order = None;
    }

    /// The estimate when the boot clock shows `at_us`.
    pub fn known(&self, session: SessionId, at_us: u64) -> Option<Estimate> {
        let (_, losses_until) = self.in_order.filter(|(of, _)| *of == session)?;
        Some(Estimate { now: Timestamp::from_ms(self.now_us(at_us)?.div_euclid(1000)), losses_until })
    }

    /// The database's time in microseconds, whatever the session, when the boot clock shows `at_us`. It is never later than the database
    /// shows.
    pub fn now_us(&self, at_us: u64) -> Option<i64> {
        let offset_us = self.offset_us.max(self.older_offset_us)?;
        let fresh = at_us.saturating_sub(self.since_us) < 2 * KEPT_US;
        fresh.then(|| i64::try_from(at_us).unwrap_or(i64::MAX).saturating_add(offset_us))
    }
}

#[cfg(test)]
mod tests {
    use carillon_domain::lost_commits::LossWindow;

    use super::*;
    use crate::tables::KnownSession;
    use crate::{SessionBeat, SessionState};

    const ME: fn() -> SessionId = || SessionId::from_random(1);

    fn standing(state: SessionState) -> Standing {
        let beat = SessionBeat { id: ME(), seq: 3, state };
        let own = KnownSession { beat, node: "n".to_owned(), heartbeat_at: Timestamp::EPOCH };
        Standing { session: Some(own), open: None, losses_until: Some(Timestamp::from_ms(7)) }
    }

    fn in_order() -> ClockEstimate {
        let mut reckoning = ClockEstimate::default();
        reckoning.see(ME(), &standing(SessionState::Live));
        reckoning
    }

    fn now_ms(reckoning: &ClockEstimate, at_us: u64) -> Option<i64> {
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
        for (seen, known) in [
            (&live, true),
            (&draining, true),
            (&standing(SessionState::Ended), false),
            (&Standing { session: None, ..live.clone() }, false),
            (&Standing { open, ..live.clone() }, false),
        ] {
            let mut reckoning = ClockEstimate::default();
            reckoning.hear(1_000, 0);
            reckoning.see(ME(), seen);
            let expected = known.then_some(Estimate { now: Timestamp::from_ms(1), losses_until: live.losses_until });
            assert_eq!(reckoning.known(ME(), 0), expected, "{seen:?}");
            assert_eq!(reckoning.known(SessionId::from_random(2), 0), None);
            reckoning.forget();
            assert_eq!(reckoning.known(ME(), 0), None);
        }
    }
}
