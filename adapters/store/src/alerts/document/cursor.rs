//! The cursor: how far both journals are judged, and the storms of all routes.

use std::collections::BTreeMap;

use carillon_domain::alert::Storm;
use carillon_domain::time::Timestamp;
use serde_json::{Value, json};

use super::{Fields, Read, parse, storm_from, storm_value};
use crate::StoreResult;
use crate::feed::Tail;

/// The one row that a step locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// How far history is judged.
    pub runs: Tail,
    /// How far the other facts are judged.
    pub facts: Tail,
    /// When the last step was: its commit is acknowledged, or the cursor would not say so.
    pub stepped_at: Timestamp,
    /// By route.
    pub storms: BTreeMap<String, Storm>,
}

impl Cursor {
    /// A cursor behind everything that is visible.
    pub fn after(runs: u64, facts: u64, now: Timestamp) -> Self {
        Self { runs: Tail::after(runs), facts: Tail::after(facts), stepped_at: now, storms: BTreeMap::new() }
    }

    /// The document of a cursor; `None` while nobody is to be told anything.
    pub fn text(cursor: Option<&Self>) -> String {
        let Some(Self { runs, facts, stepped_at, storms }) = cursor else { return json!({ "idle": true }).to_string() };
        let storms: BTreeMap<&String, Value> =
            storms.iter().map(|(route, storm)| (route, storm_value(storm))).collect();
        json!({
            "runs": runs.to_text(),
            "facts": facts.to_text(),
            "stepped_at": stepped_at.as_ms(),
            "storms": storms,
        })
        .to_string()
    }

    /// Reads it; `None` while nobody is to be told anything.
    pub fn read(text: Option<&str>) -> StoreResult<Option<Self>> {
        let Some(text) = text else { return Ok(None) };
        parse("the cursor of alerts", text, |fields| {
            if fields.flag("idle") {
                return Ok(None);
            }
            let tail = |field: &str| {
                Tail::from_text(fields.text(field)?).ok_or_else(|| format!("{field} is no position in a journal"))
            };
            let storms = fields.maybe("storms").and_then(Value::as_object).into_iter().flatten();
            let storm = |(route, storm): (&String, &Value)| Ok((route.clone(), storm_from(&Fields(storm))?));
            Ok(Some(Self {
                runs: tail("runs")?,
                facts: tail("facts")?,
                stepped_at: fields.at("stepped_at")?,
                storms: storms.map(storm).collect::<Read<_>>()?,
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_document() {
        let storm = Storm { since: Timestamp::from_ms(1), told: 2, folded: BTreeMap::new(), names: Vec::new() };
        let cursor =
            Cursor { storms: [("ops".to_owned(), storm)].into(), ..Cursor::after(7, 9, Timestamp::from_ms(5)) };
        assert_eq!(Cursor::read(Some(&Cursor::text(Some(&cursor)))), Ok(Some(cursor)));
        assert_eq!(Cursor::read(Some(&Cursor::text(None))), Ok(None));
        assert_eq!(Cursor::read(None), Ok(None));
    }
}
