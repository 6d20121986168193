//! How far a reader has got, as the text that it sends back when it resumes.

use carillon_domain::id::SessionId;
use carillon_domain::time::Timestamp;
use carillon_store::feed::PerJournal;

/// So long after a mark was made a reader had better load everything anew: history may have been purged since, in milliseconds.
const GOOD_FOR_MS: i64 = 24 * 60 * 60 * 1_000;

/// A position in the journals. It is good at every node, as it names numbers of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The database's time when it was made.
    pub at: Timestamp,
    /// Every row of a journal up to its number was told.
    pub numbers: PerJournal<u64>,
}

impl Mark {
    /// From the text of `Last-Event-ID`; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-').map(number);
        let at = Timestamp::from_ms(i64::try_from(parts.next()??).ok()?);
        // A node of another version may know another number of journals.
        let numbers: Vec<u64> = parts.collect::<Option<_>>()?;
        Some(Self { at, numbers: numbers.try_into().ok()? })
    }

    /// Whether it is too old to resume from.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        now.as_ms().saturating_sub(self.at.as_ms()) > GOOD_FOR_MS
    }
}

/// Where a reader goes on: the text of `since` and of `Last-Event-ID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Good at every node.
    pub mark: Mark,
    /// The exact place in the memory of one node; ids of events have none.
    pub place: Option<Place>,
}

/// A place among the events that one node keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The session of the node.
    pub session: SessionId,
    /// In which unbroken stretch of its looks.
    pub epoch: u64,
    /// The number of the next event.
    pub next: u64,
}

/// Separates the parts of a position; neither marks nor sessions have it.
const BETWEEN: char = '~';

impl Position {
    /// From its text; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(BETWEEN);
        let mark = Mark::parse(parts.next()?)?;
        let Some(session) = parts.next() else { return Some(Self { mark, place: None }) };
        let (session, epoch, next) = (number(session)?, number(parts.next()?)?, number(parts.next()?)?);
        let place = Place { session: SessionId::from_random(session), epoch, next };
        parts.next().is_none().then_some(Self { mark, place: Some(place) })
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.mark)?;
        match self.place {
            None => Ok(()),
            Some(Place { session, epoch, next }) => {
                write!(f, "{BETWEEN}{}{BETWEEN}{epoch}{BETWEEN}{next}", session.as_u64())
            }
        }
    }
}

/// A number of digits only.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.at.as_ms().max(0))?;
        self.numbers.iter().try_for_each(|number| write!(f, "-{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_store::feed::Journal;

    #[test]
    fn a_mark_is_read_back_from_its_text() {
        let mark = Mark { at: Timestamp::from_ms(1_798_761_600_123), numbers: [u64::MAX; Journal::ALL.len()] };
        assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
        let too_large = "1-2-18446744073709551616";
        for text in ["", "-", "1", "1-", "-1", "1-2", "1-2-3-4", "+1-2-3", "1--2-3", "1-2-x", too_large, " 1-2-3"] {
            assert_eq!(Mark::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_position_is_read_back_from_its_text() {
        let mark = Mark { at: Timestamp::from_ms(7), numbers: [1; Journal::ALL.len()] };
        let place = Place { session: SessionId::from_random(9), epoch: 2, next: u64::MAX };
        for position in [Position { mark, place: None }, Position { mark, place: Some(place) }] {
            assert_eq!(Position::parse(&position.to_string()), Some(position));
        }
        let whole = Position { mark, place: Some(place) }.to_string();
        for bad in [format!("{whole}~"), format!("{whole}0"), whole.replace("~2~", "~-2~"), format!("{mark}~")] {
            assert_eq!(Position::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_mark_is_good_for_a_day() {
        let mark = Mark { at: Timestamp::from_ms(5), numbers: [1; Journal::ALL.len()] };
        assert!(!mark.is_stale(Timestamp::from_ms(5 + GOOD_FOR_MS)));
        assert!(mark.is_stale(Timestamp::from_ms(6 + GOOD_FOR_MS)));
    }
}
