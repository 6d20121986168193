//! The statements of alerts, for every database that speaks SQL. Parameters are `?`; numbers of rows go into the text.
//!
//! A session is kept as the signed number of the same bits.

mod read;
mod rows;
mod write;

pub(crate) use read::{
    CURSOR, HAS_WATCHED, LOCK_CURSOR, NEWEST_FACT, NEWEST_NOTICE, ROUTES, among, counts, deliveries, facts, first_look,
    incidents, notices, watched_due,
};
pub(crate) use rows::{
    Cells, count_by_text, count_of, delivery, fact_row, incident, numbered_delivery, route, text_of, time_of, watch,
};
pub(crate) use write::statements;

/// How the two databases differ in what is asked of them here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    MySql,
    Sqlite,
}

/// A parameter, or a column of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    Number(i64),
    Text(String),
}

/// A statement and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub sql: String,
    pub params: Vec<Cell>,
}

impl Statement {
    pub fn new(sql: impl Into<String>, params: Vec<Cell>) -> Self {
        Self { sql: sql.into(), params }
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Cell::Number(number)
    }
}

impl From<u64> for Cell {
    /// Numbers of rows and versions are far below the half of what fits; of a session the bits count.
    fn from(number: u64) -> Self {
        Cell::Number(number as i64)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

impl From<carillon_domain::time::Timestamp> for Cell {
    fn from(at: carillon_domain::time::Timestamp) -> Self {
        Cell::Number(at.as_ms())
    }
}

/// `?, ?, ?`
fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// Numbers for an `IN`.
fn list(numbers: impl IntoIterator<Item = u64>) -> String {
    numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}
