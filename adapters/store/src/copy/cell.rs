//! Values on their way from one database to another, and what they add up to.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::codec::hex;

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    /// A number, or the bits of an unsigned one.
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row in the order of its table's columns.
pub(crate) type Row = Vec<Cell>;

impl Cell {
    /// About so many bytes.
    pub fn size(&self) -> usize {
        match self {
            Cell::Null | Cell::Number(_) => 8,
            Cell::Text(text) => text.len(),
            Cell::Bytes(bytes) => bytes.len(),
        }
    }
}

/// All rows of a table in the order of its key: how many, and a SHA-256 over every value.
#[derive(Clone, PartialEq, Eq)]
pub struct TableDigest {
    /// How many rows.
    pub rows: u64,
    /// Over all of them.
    pub sum: [u8; 32],
}

/// The sum in hexadecimal digits.
impl fmt::Display for TableDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.sum))
    }
}

impl fmt::Debug for TableDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, {}", self.rows, hex(&self.sum))
    }
}

/// Adds rows up.
#[derive(Default)]
pub(crate) struct Summing {
    rows: u64,
    hash: Sha256,
}

impl Summing {
    /// Each value with its kind and length, so that no two tables of different values look the same.
    pub fn add(&mut self, row: &Row) {
        self.rows += 1;
        for cell in row {
            let number;
            let (kind, bytes): (u8, &[u8]) = match cell {
                Cell::Null => (0, &[]),
                Cell::Number(value) => {
                    number = value.to_be_bytes();
                    (1, &number)
                }
                Cell::Text(text) => (2, text.as_bytes()),
                Cell::Bytes(bytes) => (3, bytes),
            };
            self.hash.update([kind]);
            self.hash.update((bytes.len() as u64).to_be_bytes());
            self.hash.update(bytes);
        }
    }

    pub fn done(self) -> TableDigest {
        TableDigest { rows: self.rows, sum: self.hash.finalize().into() }
    }
}

/// The SHA-256 of a text, in digits.
pub(crate) fn sum_of(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_differ_have_different_digests() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let tables: Vec<Vec<Row>> = vec![
            vec![],
            vec![vec![Cell::Null, text("")]],
            vec![vec![text(""), Cell::Null]],
            vec![vec![text("ab"), text("c")]],
            vec![vec![text("a"), text("bc")]],
            vec![vec![text("a")], vec![text("bc")]],
            vec![vec![text("1")]],
            vec![vec![Cell::Number(1)]],
            vec![vec![Cell::Bytes(b"1".to_vec())]],
        ];
        let sum = |rows: &Vec<Row>| {
            let mut summing = Summing::default();
            rows.iter().for_each(|row| summing.add(row));
            summing.done()
        };
        for (n, one) in tables.iter().enumerate() {
            assert_eq!(sum(one), sum(one));
            assert!(tables.iter().skip(n + 1).all(|other| sum(other) != sum(one)), "{one:?}");
        }
    }
}
