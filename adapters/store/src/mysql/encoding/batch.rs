//! One prepared statement for a batch of any size: the rows go as one JSON parameter and come out of JSON_TABLE. A row is
//! an array in the order of the columns; with names in it the server would need half as long again.

use std::fmt::Write as _;

use carillon_domain::firing::Firing;
use mysql_async as sql;

use crate::codec::{firing_text, hex};

/// A statement stays far below the smallest `max_allowed_packet` that servers come with (16 MiB).
const MAX_BYTES: usize = 4 << 20;

/// A column of the batch. A value that does not fit its type is an error, never a NULL.
pub(in crate::mysql) struct Column(pub &'static str, pub ColumnType);

/// How a column travels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::mysql) enum ColumnType {
    /// An unsigned number.
    Unsigned,
    /// A signed number.
    Signed,
    /// Text.
    Text,
    /// Bytes, as hexadecimal digits.
    Bytes,
}

impl Column {
    fn definition(&self, at: usize) -> String {
        let Self(name, kind) = self;
        let sql = match kind {
            ColumnType::Unsigned => "BIGINT UNSIGNED",
            ColumnType::Signed => "BIGINT",
            ColumnType::Text | ColumnType::Bytes => "LONGTEXT CHARACTER SET utf8mb4",
        };
        format!("{name} {sql} PATH '$[{at}]' ERROR ON ERROR")
    }

    /// Its value as a parameter of its own.
    pub fn parameter(&self) -> String {
        if self.1 == ColumnType::Bytes { "UNHEX(?)".to_owned() } else { "?".to_owned() }
    }

    /// Its value in a row of the batch.
    pub fn value(&self) -> String {
        let Self(name, kind) = self;
        if *kind == ColumnType::Bytes { format!("UNHEX(t.{name})") } else { format!("t.{name}") }
    }
}

/// The batch as a table `t`.
pub(in crate::mysql) fn table<'a>(columns: impl IntoIterator<Item = &'a Column>) -> String {
    let columns = columns.into_iter().enumerate();
    let columns: Vec<String> = columns.map(|(at, column)| column.definition(at)).collect();
    format!("JSON_TABLE(?, '$[*]' COLUMNS ({})) t", columns.join(", "))
}

/// `a, b, c`.
pub(in crate::mysql) fn names(columns: &[&[Column]]) -> String {
    columns.iter().copied().flatten().map(|Column(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// `t.a, UNHEX(t.b), t.c`.
pub(in crate::mysql) fn values(columns: &[&[Column]]) -> String {
    columns.iter().copied().flatten().map(Column::value).collect::<Vec<_>>().join(", ")
}

/// `s.a = t.a, s.b = UNHEX(t.b)`.
pub(in crate::mysql) fn assignments(alias: &str, columns: &[Column]) -> String {
    let assign = |column: &Column| format!("{alias}.{} = {}", column.0, column.value());
    columns.iter().map(assign).collect::<Vec<_>>().join(", ")
}

/// A parameter and how many rows are in it.
pub(in crate::mysql) struct Batch {
    pub json: String,
    pub rows: u64,
}

/// The rows as few parameters as statements can carry.
pub(in crate::mysql) fn batches(rows: impl IntoIterator<Item = String>) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for text in rows {
        match batches.last_mut() {
            Some(last) if last.json.len() + text.len() < MAX_BYTES => {
                last.json.push(',');
                last.json.push_str(&text);
                last.rows += 1;
            }
            _ => batches.push(Batch { json: format!("[{text}"), rows: 1 }),
        }
    }
    batches.iter_mut().for_each(|batch| batch.json.push(']'));
    batches
}

/// A value on its way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::mysql) enum Cell<'a> {
    Null,
    Unsigned(u64),
    Signed(i64),
    Text(&'a str),
    /// Its text is made when it is written: a row is compared more often than it is sent.
    Firing(Firing),
    Bytes(&'a [u8]),
}

impl Cell<'_> {
    /// About how many bytes it takes in a packet.
    pub fn bytes(self) -> usize {
        match self {
            Cell::Null | Cell::Unsigned(_) | Cell::Signed(_) => 8,
            Cell::Firing(_) => 64,
            Cell::Text(text) => text.len(),
            Cell::Bytes(bytes) => 2 * bytes.len(),
        }
    }

    /// As a parameter of its own.
    pub fn parameter(self) -> sql::Value {
        match self {
            Cell::Null => sql::Value::NULL,
            Cell::Unsigned(number) => number.into(),
            Cell::Signed(number) => number.into(),
            Cell::Text(text) => text.into(),
            Cell::Firing(firing) => firing_text(firing).into(),
            Cell::Bytes(bytes) => hex(bytes).into(),
        }
    }

    fn write(self, json: &mut String) {
        let _infallible = match self {
            Cell::Null => json.write_str("null"),
            Cell::Unsigned(number) => write!(json, "{number}"),
            Cell::Signed(number) => write!(json, "{number}"),
            Cell::Text(text) if is_plain(text) => write!(json, "\"{text}\""),
            Cell::Text(text) => write!(json, "{}", serde_json::Value::from(text)),
            // Digits, letters and spaces.
            Cell::Firing(firing) => write!(json, "\"{}\"", firing_text(firing)),
            Cell::Bytes(bytes) => write!(json, "\"{}\"", hex(bytes)),
        };
    }
}

impl From<u64> for Cell<'_> {
    fn from(number: u64) -> Self {
        Cell::Unsigned(number)
    }
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Cell::Signed(number)
    }
}

impl From<Option<u64>> for Cell<'_> {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Cell::Null, Cell::Unsigned)
    }
}

impl From<Option<i64>> for Cell<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Cell::Null, Cell::Signed)
    }
}

impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Cell::Null, Cell::Text)
    }
}

impl From<Option<Firing>> for Cell<'_> {
    fn from(firing: Option<Firing>) -> Self {
        firing.map_or(Cell::Null, Cell::Firing)
    }
}

impl<'a> From<Option<&'a [u8; 16]>> for Cell<'a> {
    fn from(bytes: Option<&'a [u8; 16]>) -> Self {
        bytes.map_or(Cell::Null, |bytes| Cell::Bytes(bytes))
    }
}

/// The value of a column, if it is the same in every row. It is sent once, as a parameter in place of the batch's column.
pub(in crate::mysql) fn of_all<'a>(mut cells: impl Iterator<Item = Cell<'a>>) -> Option<Cell<'a>> {
    let first = cells.next()?;
    cells.all(|cell| cell == first).then_some(first)
}

/// A row of the batch.
pub(in crate::mysql) fn row<'a>(cells: impl IntoIterator<Item = Cell<'a>>) -> String {
    let mut json = String::from("[");
    for cell in cells {
        if json.len() > 1 {
            json.push(',');
        }
        cell.write(&mut json);
    }
    json.push(']');
    json
}

/// Whether JSON writes it as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_json() {
        let cells =
            [Cell::Null, Cell::Unsigned(u64::MAX), Cell::Signed(-1), Cell::Text("\"ö\n"), Cell::Bytes(&[1, 255])];
        assert_eq!(row(cells), format!(r#"[null,{},-1,"\"ö\n","01ff"]"#, u64::MAX));
    }

    #[test]
    fn a_batch_is_cut_where_a_packet_would_be_too_large() {
        let row = || "x".repeat(1 << 20);
        let sizes: Vec<u64> = batches((0..7).map(|_| row())).iter().map(|batch| batch.rows).collect();
        assert_eq!(sizes, [3, 3, 1]);
        assert_eq!(batches(["1".to_owned(), "2".to_owned()])[0].json, "[1,2]");
        assert_eq!((batches([]).len(), hex(&[0, 171, 255])), (0, "00abff".to_owned()));
    }
}
