//! Tables with millions of rows, quickly: copies of one row that the server itself has written, with a few columns
//! computed from a number.

use crate::lab::Scratch;

/// Rows of one statement.
const CHUNK: u64 = 1_000_000;
/// `n` counts from 0 within the statement's part.
const NUMBERS: &str = "bench_numbers a STRAIGHT_JOIN bench_numbers b";

/// Makes what the filling counts with.
pub fn prepare(scratch: &Scratch<'_>) {
    let values: Vec<String> = (0..1_000).map(|n| format!("({n})")).collect();
    scratch.fill(&[
        "CREATE TABLE bench_numbers (n INT NOT NULL PRIMARY KEY)".to_owned(),
        format!("INSERT INTO bench_numbers VALUES {}", values.join(",")),
    ]);
}

/// Adds copies of the row of `table` that `template`, a condition on it, selects, for the numbers from `from` to below
/// `until`; `computed` are columns with what they become, `{n}` standing for the number.
pub fn copies(scratch: &Scratch<'_>, table: &str, template: &str, computed: &[(&str, &str)], from: u64, until: u64) {
    let sql = format!(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() \
         AND table_name = '{table}' ORDER BY ordinal_position"
    );
    let columns: Vec<String> = scratch.rows(&sql);
    // Of a table that it reads as well, a statement would keep all it inserts aside first.
    scratch.fill(&[
        "DROP TABLE IF EXISTS bench_template".to_owned(),
        format!("CREATE TABLE bench_template AS SELECT t.* FROM {table} t WHERE {template}"),
    ]);
    let statements = (from..until).step_by(CHUNK as usize).map(|first| {
        let number = format!("({first} + a.n * 1000 + b.n)");
        let value = |column: &String| match computed.iter().find(|(name, _)| name == column) {
            Some((_, text)) => text.replace("{n}", &number),
            None => format!("t.{column}"),
        };
        let values: Vec<String> = columns.iter().map(value).collect();
        let rest = (until - first).min(CHUNK);
        // The first table counts thousands: all rows but the needed ones are left out before they are made.
        let (whole, part) = (rest / 1_000, rest % 1_000);
        format!(
            "INSERT INTO {table} ({}) SELECT {} FROM {NUMBERS} STRAIGHT_JOIN bench_template t \
             WHERE (a.n < {whole} OR a.n = {whole} AND b.n < {part})",
            columns.join(", "),
            values.join(", ")
        )
    });
    scratch.fill(&statements.collect::<Vec<_>>());
}
