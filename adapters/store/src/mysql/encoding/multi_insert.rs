//! Many new rows: a block of them as parameters of one statement, which costs the server half of what taking them out of
//! JSON does. What does not fill a block goes the way of all batches.

use std::iter::repeat_n;

use mysql_async::{Params, Value};

use crate::StoreResult;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::batch::{Batch, Cell, Column, ColumnType, batches, names, row};

/// How many rows a block has; a server takes 65,535 parameters, and a table here has some 20 columns.
const ROWS: usize = 250;
/// A statement stays far below the smallest `max_allowed_packet` that servers come with (16 MiB).
const MAX_BYTES: usize = 4 << 20;

/// `INSERT INTO t (a, b) VALUES (?,UNHEX(?)),(?,UNHEX(?))`, for a whole block.
fn statement(into: &str, columns: &[&[Column]]) -> String {
    let place = |column: &Column| if column.1 == ColumnType::Bytes { "UNHEX(?)" } else { "?" };
    let row: Vec<&str> = columns.iter().copied().flatten().map(place).collect();
    let rows: Vec<String> = repeat_n(format!("({})", row.join(",")), ROWS).collect();
    format!("INSERT INTO {into} ({}) VALUES {}", names(columns), rows.join(","))
}

/// The parameters of a block, if a statement can carry them.
fn parameters(block: &[Vec<Cell<'_>>]) -> Option<Vec<Value>> {
    let cells = || block.iter().flatten().copied();
    let bytes: usize = cells().map(Cell::bytes).sum();
    (bytes < MAX_BYTES).then(|| cells().map(Cell::parameter).collect())
}

fn in_json(rows: &[Vec<Cell<'_>>]) -> Vec<Batch> {
    batches(rows.iter().map(|cells| row(cells.iter().copied())))
}

impl MySqlConnection {
    /// Inserts rows, each in the order of the columns; answers how many. `batched` does the same from JSON.
    pub(in crate::mysql) async fn insert_rows(
        &mut self,
        into: &str,
        columns: &[&[Column]],
        batched: &str,
        rows: &[Vec<Cell<'_>>],
    ) -> StoreResult<u64> {
        let (whole, rest) = rows.split_at(rows.len() / ROWS * ROWS);
        let mut inserted = 0;
        if !whole.is_empty() {
            let sql = statement(into, columns);
            for block in whole.chunks(ROWS) {
                inserted += match parameters(block) {
                    Some(parameters) => self.exec(&sql, Params::Positional(parameters)).await?.matched,
                    None => self.each(batched, in_json(block), &[]).await?,
                };
            }
        }
        Ok(inserted + self.each(batched, in_json(rest), &[]).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_one_statement() {
        let sql = statement("t", &[&[Column("a", ColumnType::Unsigned)], &[Column("b", ColumnType::Bytes)]]);
        assert!(sql.starts_with("INSERT INTO t (a, b) VALUES (?,UNHEX(?)),(?,UNHEX(?)),"), "{sql}");
        assert_eq!(sql.matches('?').count(), 2 * ROWS);
    }

    #[test]
    fn values_keep_their_kind() {
        let bytes = [171; 16];
        let block =
            [vec![Cell::from(u64::MAX), Cell::from(-5_i64), Cell::Null, Cell::Text("ab"), Cell::from(Some(&bytes))]];
        let hex = "ab".repeat(16);
        let expected =
            vec![Value::UInt(u64::MAX), Value::Int(-5), Value::NULL, Value::from("ab"), Value::from(hex.as_str())];
        assert_eq!(parameters(&block), Some(expected));
    }

    #[test]
    fn what_is_too_large_for_a_packet_is_no_block() {
        let text = "x".repeat(1 << 20);
        let row = vec![Cell::Text(&text)];
        assert!(parameters(&vec![row.clone(); 3]).is_some());
        assert_eq!(parameters(&vec![row; 4]), None);
    }
}
