//! History by its numbers. A number is drawn when a record is inserted, and not given back if the transaction is rolled back.

use std::collections::BTreeMap;

use carillon_domain::id::RunId;

use super::data::{Data, Place};
use carillon_store::feed::{JournalAsk, Numbered};
use carillon_store::tables::Recorded;

/// The numbers of history.
#[derive(Clone, Default)]
pub struct RunNumbers {
    last: u64,
    drawn: BTreeMap<RunId, u64>,
    places: BTreeMap<u64, Place>,
}

impl RunNumbers {
    /// Draws a number for a record that is about to be inserted, unless it is stored already.
    pub fn draw(&mut self, run: RunId) {
        self.last += 1;
        let is_shown = self.drawn.get(&run).is_some_and(|number| self.places.contains_key(number));
        if !is_shown {
            self.drawn.insert(run, self.last);
        }
    }

    /// A record becomes visible under the number that was drawn for it, or under a new one.
    pub fn show(&mut self, run: RunId, place: Place) {
        if !self.drawn.contains_key(&run) {
            self.draw(run);
        }
        if let Some(number) = self.drawn.get(&run) {
            self.places.insert(*number, place);
        }
    }

    /// A record is gone. Its number stays drawn.
    pub fn hide(&mut self, run: RunId) {
        if let Some(number) = self.drawn.get(&run) {
            self.places.remove(number);
        }
    }
}

impl Data {
    /// History by its numbers, as a journal is asked for.
    pub fn runs_numbered(&self, ask: &JournalAsk) -> Numbered<Recorded> {
        let places = &self.numbers.places;
        let newest = places.last_key_value().map_or(0, |(number, _)| *number);
        let gaps = ask.gaps.iter().flat_map(|span| places.range(span.first..=span.last));
        let above = places.iter().filter(|(number, _)| **number > ask.after).take(ask.limit);
        let rows = gaps.chain(above).filter_map(|(number, place)| Some((*number, self.recorded(place)?)));
        Numbered { newest, rows: rows.collect() }
    }
}
