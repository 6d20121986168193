//! Many new rows: a block of them as parameters of one statement, which costs the server half of what taking them out of
//! JSON does. What does not fill a block goes the way of all batches.

use std::iter::repeat_n;

use mysql_async::{Params, Value};
use serde_json::Value as Json;

use super::batch::{Column, Kind, batches, names};
use super::transaction::Transaction;
use crate::store::StoreError;

type Answer<T> = Result<T, StoreError>;

/// How many rows a block has; a server takes 65,535 parameters, and a table here has some 20 columns.
const ROWS: usize = 250;
/// A statement stays far below the smallest `max_allowed_packet` that servers come with (16 MiB).
const MAX_BYTES: usize = 4 << 20;

/// `INSERT INTO t (a, b) VALUES (?,UNHEX(?)),(?,UNHEX(?))`, for a whole block.
fn statement(into: &str, columns: &[&[Column]]) -> String {
    let place = |column: &Column| if column.1 == Kind::Bytes { "UNHEX(?)" } else { "?" };
    let row: Vec<&str> = columns.iter().copied().flatten().map(place).collect();
    let rows: Vec<String> = repeat_n(format!("({})", row.join(",")), ROWS).collect();
    format!("INSERT INTO {into} ({}) VALUES {}", names(columns), rows.join(","))
}

fn parameter(value: &Json) -> Value {
    match value {
        Json::Null => Value::NULL,
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => number.as_u64().map(Value::from).unwrap_or_else(|| Value::from(number.as_i64())),
        Json::String(text) => Value::from(text),
        Json::Array(_) | Json::Object(_) => Value::from(value.to_string()),
    }
}

/// The parameters of a block, if a statement can carry them.
fn parameters(block: &[Json]) -> Option<Vec<Value>> {
    let values = || block.iter().filter_map(Json::as_array).flatten();
    let bytes: usize = values().map(|value| value.as_str().map_or(8, str::len)).sum();
    (bytes < MAX_BYTES).then(|| values().map(parameter).collect())
}

impl Transaction {
    /// Inserts rows, each an array in the order of the columns; `batched` does the same from JSON.
    pub(super) async fn insert_rows(
        &mut self,
        into: &str,
        columns: &[&[Column]],
        batched: &str,
        rows: &[Json],
    ) -> Answer<()> {
        let (whole, rest) = rows.split_at(rows.len() / ROWS * ROWS);
        if !whole.is_empty() {
            let sql = statement(into, columns);
            for block in whole.chunks(ROWS) {
                match parameters(block) {
                    Some(parameters) => {
                        self.wrote = true;
                        if self.line.exec(&sql, Params::Positional(parameters)).await?.matched != ROWS as u64 {
                            return Err(self.moved_on());
                        }
                    }
                    None => self.each(batched, batches(block.iter().cloned())).await?,
                }
            }
        }
        self.each(batched, batches(rest.iter().cloned())).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_block_is_one_statement() {
        let sql = statement("t", &[&[Column("a", Kind::Unsigned)], &[Column("b", Kind::Bytes)]]);
        assert!(sql.starts_with("INSERT INTO t (a, b) VALUES (?,UNHEX(?)),(?,UNHEX(?)),"), "{sql}");
        assert_eq!(sql.matches('?').count(), 2 * ROWS);
    }

    #[test]
    fn values_keep_their_kind() {
        let block = [json!([u64::MAX, -5, null, "ab", true])];
        let expected = vec![Value::UInt(u64::MAX), Value::Int(-5), Value::NULL, Value::from("ab"), Value::from(true)];
        assert_eq!(parameters(&block), Some(expected));
    }

    #[test]
    fn what_is_too_large_for_a_packet_is_no_block() {
        let row = json!(["x".repeat(1 << 20)]);
        assert!(parameters(&vec![row.clone(); 3]).is_some());
        assert_eq!(parameters(&vec![row; 4]), None);
    }
}
