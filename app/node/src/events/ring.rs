//! The newest events, in the order in which they were told. Each has a place, which ascends for ever.

use std::collections::VecDeque;

use carillon_store::feed::PerJournal;

use super::event::{Event, Row};

/// How many events are kept, and how many bytes of text at the most.
const MOST_EVENTS: usize = 20_000;
const MOST_BYTES: usize = 16 << 20;

/// An event, or a row of a journal.
#[derive(Debug, Clone)]
pub(super) enum Told {
    /// It is in no journal: the start of a run, a session.
    Event(Event),
    /// It may be asked for again by its number.
    Row(Row),
}

impl Told {
    pub const fn event(&self) -> &Event {
        match self {
            Self::Event(event) => event,
            Self::Row(row) => &row.event,
        }
    }

    fn bytes(&self) -> usize {
        let start = match self {
            Self::Event(_) => 0,
            Self::Row(row) => row.start.as_ref().map_or(0, |start| start.frame.len()),
        };
        start + self.event().frame.len()
    }
}

/// A bounded queue of events.
#[derive(Debug)]
pub(super) struct Ring {
    told: VecDeque<Told>,
    first: u64,
    bytes: usize,
    /// Every row of a journal with a number above its own here that was told is still in the ring.
    complete_above: PerJournal<u64>,
    most_events: usize,
}

impl Ring {
    /// An empty one, for rows with numbers above these. Places go on from `first`.
    pub fn above(numbers: PerJournal<u64>, first: u64) -> Self {
        Self::of(MOST_EVENTS, numbers, first)
    }

    fn of(most_events: usize, complete_above: PerJournal<u64>, first: u64) -> Self {
        Self { told: VecDeque::new(), first, bytes: 0, complete_above, most_events }
    }

    /// The place of the next event.
    pub fn end(&self) -> u64 {
        self.first + self.told.len() as u64
    }

    /// The event at a place; `None` where it is not told yet.
    ///
    /// # Errors
    /// [`Dropped`] where it is here no more.
    pub fn get(&self, place: u64) -> Result<Option<&Told>, Dropped> {
        let at = place.checked_sub(self.first).ok_or(Dropped)?;
        Ok(usize::try_from(at).ok().and_then(|at| self.told.get(at)))
    }

    /// The place from which a reader that has all rows up to these numbers goes on.
    ///
    /// # Errors
    /// [`Dropped`] where a row above that was dropped.
    pub fn resume(&self, numbers: PerJournal<u64>) -> Result<u64, Dropped> {
        let complete = numbers.iter().zip(self.complete_above).all(|(number, above)| *number >= above);
        if complete { Ok(self.first) } else { Err(Dropped) }
    }

    pub fn push(&mut self, told: Told) {
        self.bytes += told.bytes();
        self.told.push_back(told);
        while self.told.len() > self.most_events || (self.bytes > MOST_BYTES && self.told.len() > 1) {
            let Some(dropped) = self.told.pop_front() else { break };
            self.first += 1;
            self.bytes -= dropped.bytes();
            if let Told::Row(row) = dropped {
                let above = &mut self.complete_above[row.journal.place()];
                *above = row.number.max(*above);
            }
        }
    }
}

/// An event is not in memory any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dropped;

#[cfg(test)]
mod tests {
    use super::super::event::Kind;
    use super::*;
    use carillon_store::feed::Journal;

    fn event(text: &str) -> Event {
        Event { kind: Kind::RunEnded, about: None, at: None, frame: text.to_owned().into() }
    }

    fn row(number: u64) -> Told {
        Told::Row(Row { journal: Journal::Runs, number, start: None, event: event(&number.to_string()) })
    }

    fn text(ring: &Ring, place: u64) -> Result<Option<&[u8]>, Dropped> {
        ring.get(place).map(|told| told.map(|told| &told.event().frame[..]))
    }

    #[test]
    fn the_newest_events_are_found_at_their_places() {
        let mut ring = Ring::of(3, [10, 0], 100);
        assert_eq!((text(&ring, 100), text(&ring, 99), ring.end()), (Ok(None), Err(Dropped), 100));
        for number in [11, 13, 12, 14] {
            ring.push(row(number));
        }
        assert_eq!((ring.end(), text(&ring, 100), text(&ring, 104)), (104, Err(Dropped), Ok(None)));
        assert_eq!((text(&ring, 101), text(&ring, 103)), (Ok(Some(&b"13"[..])), Ok(Some(&b"14"[..]))));
    }

    #[test]
    fn a_reader_resumes_only_where_nothing_was_dropped() {
        let mut ring = Ring::of(3, [10, 0], 0);
        assert_eq!((ring.resume([9, 0]), ring.resume([10, 0])), (Err(Dropped), Ok(0)));
        for number in [11, 14, 12, 13] {
            ring.push(row(number));
        }
        assert_eq!((ring.resume([10, 0]), ring.resume([11, 0])), (Err(Dropped), Ok(1)));
        ring.push(Told::Event(event("start")));
        assert_eq!(
            (ring.resume([13, 0]), ring.resume([14, 0])),
            (Err(Dropped), Ok(2)),
            "14 was told early, and is gone"
        );
    }

    #[test]
    fn its_bytes_are_bounded() {
        let mut ring = Ring::above([0; 2], 0);
        let large = "x".repeat(1 << 20);
        for number in 1..=40 {
            ring.push(Told::Row(Row {
                journal: Journal::Runs,
                number,
                start: Some(event(&large)),
                event: event(&large),
            }));
        }
        assert!(ring.bytes <= MOST_BYTES && ring.told.len() == 8, "{} events", ring.told.len());
        ring.push(Told::Event(event(&"x".repeat(MOST_BYTES + 1))));
        assert_eq!(ring.told.len(), 1, "one event is kept whatever its size");
    }
}
