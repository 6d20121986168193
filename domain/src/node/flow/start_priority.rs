//! Firings that fall due together are started before the first of them to end are recorded. Only for a short while, as a node that is
//! behind always has some waiting, and only while each has a place.

use std::time::Duration;

use crate::node::flow::Load;
use crate::time::BootTime;

/// The longest time for which starts go first.
const LONGEST: Duration = Duration::from_millis(250);

/// Whether starts go before finishes and recovery.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::node) enum StartPriority {
    #[default]
    Off,
    Until(BootTime),
    /// It has lasted long enough, and may begin again once no start waits.
    Over,
}

impl StartPriority {
    /// Until when starts go first, if they do. `waits`: due runs wait for the store and for nothing else.
    pub fn until(&mut self, load: &Load, waits: bool) -> Option<BootTime> {
        let starting = waits || load.starts > 0;
        let applies = starting && load.executing < load.max_executing && !load.drains;
        *self = match *self {
            _ if !applies => StartPriority::Off,
            StartPriority::Off => StartPriority::Until(load.now + LONGEST),
            StartPriority::Until(at) if at > load.now => StartPriority::Until(at),
            StartPriority::Until(_) | StartPriority::Over => StartPriority::Over,
        };
        match self {
            StartPriority::Until(at) => Some(*at),
            StartPriority::Off | StartPriority::Over => None,
        }
    }
}
