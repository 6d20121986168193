//! Finishes linger: they wait for others, so that one commit records many runs. A late start is seen by people, a late record is not. So a busy
//! node saves the database work here, and an idle one waits for nothing.

use std::time::Duration;

use crate::mechanism::{Mechanism, enabled as uses};
use crate::node::{Node, Run};
use crate::run::Trigger;
use crate::time::{BootTime, Timestamp};

/// How long after a finish the next one waits for more, where nobody needs its record.
const LINGER: Duration = Duration::from_millis(250);
/// The same where somebody may need it: a person, the next firing of the job, or a run without a place.
const HURRY: Duration = Duration::from_millis(25);
/// No schedule is closer than a second. Half a second after a due time the next one has not come.
const NOT_YET_DUE_AGAIN: Duration = Duration::from_millis(500);
/// If more runs than this execute, others will end soon after the first.
const FEW: usize = 10;
/// The most runs that one finish records. A pause of one of their jobs waits for the commit, which takes two to three times as long for
/// twice as many.
const TOGETHER: usize = 500;
/// The longest time for which starts go before finishes.
const STARTS_FIRST: Duration = Duration::from_millis(250);

/// The finishes sent lately, and how long ended runs may wait since then.
#[derive(Debug, Default, Clone, Hash)]
pub(in crate::node) struct Linger {
    /// When the last finish was sent, if that is no longer ago than [`LINGER`].
    sent: Option<BootTime>,
    /// When the most urgent of the ended runs is to be recorded.
    record_by: Option<BootTime>,
    /// Until when ended runs wait, if they do: the node wakes then.
    pub until: Option<BootTime>,
}

impl Linger {
    pub fn forget_if_over(&mut self, now: BootTime) {
        self.sent = self.sent.filter(|sent| *sent + LINGER > now);
    }

    pub fn was_sent(&mut self, now: BootTime) {
        *self = Self { sent: Some(now), ..Self::default() };
    }

    /// A run ended that is to be recorded by then.
    pub fn ended(&mut self, record_by: BootTime) {
        self.record_by = Some(self.record_by.map_or(record_by, |at| at.min(record_by)));
    }
}

/// Whether starts go before finishes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::node) enum StartPriority {
    #[default]
    Off,
    Until(BootTime),
    /// It has lasted long enough, and may begin again once no start waits.
    Over,
}

impl StartPriority {
    pub const fn until(self) -> Option<BootTime> {
        match self {
            StartPriority::Until(at) => Some(at),
            StartPriority::Off | StartPriority::Over => None,
        }
    }
}

impl Run {
    /// When the record of this run, which ends now, is to be sent at the latest.
    pub(in crate::node) fn record_by(&self, utc: Timestamp, now: BootTime) -> BootTime {
        now + self.record_may_wait_until.since(utc).clamp(HURRY, LINGER)
    }
}

/// How long nobody needs the record of a firing that should start at `start_at`.
pub(in crate::node) fn record_may_wait_until(trigger: Trigger, start_at: Timestamp) -> Timestamp {
    if trigger == Trigger::Manual { start_at } else { start_at + NOT_YET_DUE_AGAIN }
}

impl Node {
    /// The most runs that one finish records.
    pub(in crate::node) fn recorded_together(&self) -> usize {
        TOGETHER.min(self.config.max_batch)
    }

    /// Until when ended runs wait for more. After a pause the first one goes at once where few runs execute, and a drain waits for
    /// nothing.
    fn lingers_until(&self) -> Option<BootTime> {
        if !uses(Mechanism::Linger) || self.drain.begun || self.worklists.ended.len() >= self.recorded_together() {
            return None;
        }
        let Linger { sent, record_by, .. } = self.agenda.linger;
        let Some(sent) = sent else { return record_by.filter(|_| self.executing > FEW) };
        // Each keeps its place until it is recorded, and due runs have none.
        let is_full = self.executing >= self.config.max_executing && !self.due.is_empty();
        let until = if is_full { sent + HURRY } else { sent + LINGER };
        Some(record_by.map_or(until, |by| by.min(until)))
    }

    /// Whether ended runs still wait.
    pub(in crate::node) fn lingers(&mut self, now: BootTime) -> bool {
        self.agenda.linger.until = self.lingers_until().filter(|until| *until > now);
        self.agenda.linger.until.is_some()
    }

    /// Firings that fall due together are started before the first of them to end are recorded. Only for a short while, as a node that is
    /// behind always has some waiting, and only while each has a place.
    pub(in crate::node) fn starts_go_first(&mut self, now: BootTime) -> bool {
        let waits_for_the_store = !self.due.is_empty() && self.agenda.start_rate.until.is_none();
        let starting = waits_for_the_store || self.flight.starts() > 0;
        let starts_first = uses(Mechanism::StartPriority)
            && starting
            && self.executing < self.config.max_executing
            && !self.drain.begun;
        self.agenda.start_priority = match self.agenda.start_priority {
            _ if !starts_first => StartPriority::Off,
            StartPriority::Off => StartPriority::Until(now + STARTS_FIRST),
            StartPriority::Until(at) if at > now => StartPriority::Until(at),
            StartPriority::Until(_) | StartPriority::Over => StartPriority::Over,
        };
        matches!(self.agenda.start_priority, StartPriority::Until(_))
    }
}
