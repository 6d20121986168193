//! The common beginning and end of a column's values are sent once, and each row carries the rest. A server reads a batch letter by letter.
//! MariaDB reads those of a row again for each column behind them, and keeps all of them in its binary log.

use std::borrow::Cow;

use carillon_domain::mechanism::{Mechanism, enabled as uses};
use mysql_async::Value;

use crate::codec::{firing_text, hex};
use crate::mysql::encoding::batch::{Cell, Column, ColumnType};

/// A column of a batch, with its values.
pub(in crate::mysql) struct PrefixEncoded<'a> {
    column: &'a Column,
    values: Values<'a>,
}

enum Values<'a> {
    Numbers(Vec<Cell<'a>>),
    /// How many bytes of each go along once, at its beginning and its end.
    Texts {
        begin: usize,
        end: usize,
        texts: Vec<Option<Cow<'a, str>>>,
    },
    Bytes {
        begin: usize,
        bytes: Vec<Option<&'a [u8]>>,
    },
}

impl<'a> PrefixEncoded<'a> {
    pub fn of(column: &'a Column, cells: impl Iterator<Item = Cell<'a>>) -> Self {
        let values = match column.1 {
            ColumnType::Unsigned | ColumnType::Signed => Values::Numbers(cells.collect()),
            ColumnType::Text => texts(cells.map(text).collect()),
            ColumnType::Bytes => bytes(cells.map(raw).collect()),
        };
        Self { column, values }
    }

    pub fn column(&self) -> &'a Column {
        self.column
    }

    /// Short ones go first: a server looks for each column from the beginning of its row.
    pub fn is_long(&self) -> bool {
        !matches!(self.values, Values::Numbers(_))
    }

    /// Its value in a row of the batch, with the parameters of that.
    pub fn value(&self, scalars: &mut Vec<Value>) -> String {
        let name = self.column.0;
        match &self.values {
            Values::Numbers(_) => self.column.value(),
            Values::Texts { begin, end, texts } => {
                let text = texts.iter().flatten().next().map_or("", |text| text);
                let (front, back) = (text.get(..*begin), text.get(text.len() - end..));
                scalars.extend([front.unwrap_or_default().into(), back.unwrap_or_default().into()]);
                format!("CONCAT(?, t.{name}, ?)")
            }
            Values::Bytes { begin, bytes } => {
                let front = bytes.iter().flatten().next().and_then(|bytes| bytes.get(..*begin));
                scalars.push(hex(front.unwrap_or_default()).into());
                format!("UNHEX(CONCAT(?, t.{name}))")
            }
        }
    }

    /// The part that a row carries.
    pub fn cell(&self, row: usize) -> Cell<'_> {
        match &self.values {
            Values::Numbers(cells) => cells[row],
            Values::Texts { begin, end, texts } => {
                texts[row].as_ref().and_then(|text| text.get(*begin..text.len() - end)).into()
            }
            Values::Bytes { begin, bytes } => {
                bytes[row].and_then(|bytes| bytes.get(*begin..)).map_or(Cell::Null, Cell::Bytes)
            }
        }
    }
}

fn text(cell: Cell<'_>) -> Option<Cow<'_, str>> {
    match cell {
        Cell::Text(text) => Some(text.into()),
        Cell::Firing(firing) => Some(firing_text(firing).into()),
        Cell::Null | Cell::Unsigned(_) | Cell::Signed(_) | Cell::Bytes(_) => None,
    }
}

fn raw(cell: Cell<'_>) -> Option<&[u8]> {
    match cell {
        Cell::Bytes(bytes) => Some(bytes),
        Cell::Null | Cell::Unsigned(_) | Cell::Signed(_) | Cell::Text(_) | Cell::Firing(_) => None,
    }
}

fn texts(texts: Vec<Option<Cow<'_, str>>>) -> Values<'_> {
    let mut all = texts.iter().flatten().map(|text| &**text);
    let Some(first) = all.next() else { return Values::Texts { begin: 0, end: 0, texts } };
    let (mut begin, mut end) = (first.len(), first.len());
    for text in all {
        begin = alike(text.bytes(), first.bytes()).min(begin);
        end = alike(text.bytes().rev(), first.bytes().rev()).min(end);
    }
    let begin = first.floor_char_boundary(begin);
    // No byte of the shortest is taken twice.
    let shortest = texts.iter().flatten().map(|text| text.len()).min().unwrap_or(begin);
    let end = first.len() - first.ceil_char_boundary(first.len() - end.min(shortest - begin));
    Values::Texts { begin, end, texts }
}

fn bytes(bytes: Vec<Option<&[u8]>>) -> Values<'_> {
    let mut all = bytes.iter().flatten();
    let first = all.next().copied().unwrap_or_default();
    let begin = all.fold(first.len(), |begin, bytes| alike(bytes.iter(), first.iter()).min(begin));
    Values::Bytes { begin, bytes }
}

/// How many are the same before the first that is not.
fn alike<T: PartialEq>(one: impl Iterator<Item = T>, other: impl Iterator<Item = T>) -> usize {
    if !uses(Mechanism::PrefixEncoding) {
        return 0;
    }
    one.zip(other).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: Column = Column("held", ColumnType::Text);
    const BYTES: Column = Column("id", ColumnType::Bytes);

    fn packed<'a>(column: &'static Column, cells: &[Cell<'a>]) -> (String, Vec<Value>, Vec<Cell<'a>>) {
        let packed = PrefixEncoded::of(column, cells.iter().copied());
        let mut scalars = Vec::new();
        let value = packed.value(&mut scalars);
        let rests = (0..cells.len()).map(|row| match (packed.cell(row), cells[row]) {
            (Cell::Text(rest), Cell::Text(whole)) => {
                let from = rest.as_ptr().addr() - whole.as_ptr().addr();
                Cell::Text(&whole[from..from + rest.len()])
            }
            (Cell::Bytes(rest), Cell::Bytes(whole)) => Cell::Bytes(&whole[whole.len() - rest.len()..]),
            _ => Cell::Null,
        });
        let rests = rests.collect();
        (value, scalars, rests)
    }

    #[test]
    fn what_texts_begin_and_end_with_goes_along_once() {
        let cases = [
            (["one two", "one too"], "one t", "o", ["w", "o"]),
            (["12 open", "345 open"], "", " open", ["12", "345"]),
            // Bytes that could belong to both belong to the beginning.
            (["aa", "aaaa"], "aa", "", ["", "aa"]),
            (["aba", "ababa"], "aba", "", ["", "ba"]),
            (["a-c", "abc"], "a", "c", ["-", "b"]),
            // No letter is cut: ä and ö begin alike, ä and Τ end alike.
            (["xä", "xö"], "x", "", ["ä", "ö"]),
            (["ä", "Τ"], "", "", ["ä", "Τ"]),
            (["", "a"], "", "", ["", "a"]),
        ];
        for (texts, begin, end, rests) in cases {
            let (value, scalars, found) = packed(&TEXT, &texts.map(Cell::Text));
            assert_eq!(value, "CONCAT(?, t.held, ?)");
            assert_eq!((scalars, found), (vec![begin.into(), end.into()], rests.map(Cell::Text).to_vec()), "{texts:?}");
        }
    }

    #[test]
    fn what_bytes_begin_with_goes_along_once() {
        let (value, scalars, rests) =
            packed(&BYTES, &[Cell::Bytes(&[1, 2, 3]), Cell::Null, Cell::Bytes(&[1, 2, 0xff])]);
        assert_eq!((value.as_str(), scalars), ("UNHEX(CONCAT(?, t.id))", vec!["0102".into()]));
        assert_eq!(rests, [Cell::Bytes(&[3]), Cell::Null, Cell::Bytes(&[0xff])]);
    }

    #[test]
    fn what_is_in_one_row_only_goes_along_beside_it() {
        let (_, scalars, rests) = packed(&TEXT, &[Cell::Null, Cell::Text("one")]);
        assert_eq!((scalars, rests), (vec!["one".into(), "".into()], vec![Cell::Null, Cell::Text("")]));
        let (_, scalars, rests) = packed(&BYTES, &[Cell::Null, Cell::Null]);
        assert_eq!((scalars, rests), (vec!["".into()], vec![Cell::Null, Cell::Null]));
    }
}
