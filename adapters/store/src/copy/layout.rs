//! The tables of a store as both kinds of databases have them: names, kinds of values, and the order in which rows are copied.
//!
//! A copy leaves out the rows that only a running node needs: published outputs and locks. Its partitions and the versions of its schema
//! each database decides for itself.

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A signed number.
    Signed,
    /// The bits of an unsigned number; SQLite keeps them in a signed one.
    Unsigned,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// The time of a start. MySQL has 0 where there was none.
    Start,
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub sqlite: &'static str,
    pub mysql: &'static str,
    pub kind: Kind,
}

/// One table. Its first columns are the key by which rows are ordered.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub name: &'static str,
    pub columns: Vec<Column>,
    pub key: usize,
    /// Its first column is numbered by the database, and a number is never used again.
    pub is_numbered: bool,
}

/// Outputs belong to a run by its number in SQLite and by its id in MySQL. Rows of the copy carry both.
pub(crate) const OUTPUT: &str = "output";
/// Rows of this table that a database decides for itself.
pub(crate) const META: &str = "meta";
/// The names of those.
pub(crate) const OWN_META: [&str; 3] = ["partitions", "oldest_friend", MARK];
/// The name of the row that a target has while it is not whole. Its value tells the source.
pub(crate) const MARK: &str = "copying";

/// The sentence for a node that opens a target too early.
pub(crate) const NOT_WHOLE: &str =
    "a copy into it is not finished: run `carillon copy` again with the same --from and --to, or name another database";

/// Each with the length of its key, whether its numbers are never used again, and its columns as `NAME[=NAME IN MYSQL][/KIND]`. A table that
/// another one refers to comes first.
const TABLES: [(&str, usize, bool, &str); 21] = [
    (META, 1, false, "name/t value/t"),
    ("job", 1, true, "id/u namespace/t name/t generation/u anchor_at document/t created_at updated_at deleted_at"),
    (
        "job_state",
        1,
        false,
        "id/u partition_id/u executor/t claim_at version/u generation/u anchor_at cursor_at armed/t manual/t manual_run/b \
         last_manual_at catch_up_until held/t held_run/b held_session/u started_at/s fencing_token/u pause_since pause_until \
         pause_reason/t cancel/t deleted/u last_status/u troubled_since",
    ),
    (
        "concurrent_run",
        3,
        false,
        "job_id/u due_at trigger=trigger_name/t claim_at version/u waiting/t waiting_run/b held/t held_run/b held_session/u \
         started_at/s fencing_token/u cancel/t withdrawn/u",
    ),
    (
        "run",
        1,
        true,
        "seq/u id/b job_id/u due_at trigger=trigger_name/t attempt/u status/t reason/t exit_code signal=signal_number started_at \
         finished_at lag_ms session/u node/t fencing_token/u count=due_count/u first_due_at prepared_ms/u cpu_ms/u \
         peak_memory_kib/u",
    ),
    (OUTPUT, 1, false, "run_seq/u run/b truncated/u bytes/b"),
    ("run_params", 2, false, "job_id/u due_at params/t"),
    ("session", 1, false, "id/u node/t address/t version/t state/t seq/u started_at heartbeat_at wrote_back"),
    ("spent_session", 1, false, "id/u seq/u ended_at"),
    ("loss_window", 1, false, "id/u is_open/u session/u node/t from_at until_at noticed_at accepted_at"),
    (
        "audit",
        1,
        true,
        "id at who/t origin/t action/t namespace/t job/t job_id/u generation/u run/b before_doc/t after_doc/t",
    ),
    ("sign_in_link", 1, false, "digest/b expires_at"),
    (
        "activity",
        2,
        false,
        "namespace/t begins_at succeeded/u failed/u timed_out/u cancelled/u lost/u skipped/u started/u lag_total_ms/u lag_max_ms/u",
    ),
    ("job_day", 2, false, "day/u job_id/u succeeded/u failed/u timed_out/u cancelled/u lost/u skipped/u"),
    ("history_count", 1, false, "id/u done/u seen/u seen_at"),
    ("alert_route", 1, false, "name/t version created_at updated_at document/t"),
    ("alert_fact", 1, true, "seq fact_key/t is_open at document/t"),
    ("alert_incident", 1, false, "id/t route/t job_id/u namespace/t since next_look document/t"),
    (
        "alert_delivery",
        1,
        true,
        "id version message/t route/t job_id/u place kind/t host/t made_at state/t claim_at session tries refusals first_try_at \
         settled_at answer/t document/t",
    ),
    ("alert_cursor", 1, false, "id epoch document/t"),
    ("alert_watch", 1, false, "job_id/u starts ends look_at pings"),
];

/// All of them, in the order in which they are copied.
pub(crate) fn tables() -> Vec<Table> {
    let table = |(name, key, is_numbered, columns): (&'static str, usize, bool, &'static str)| Table {
        name,
        columns: columns.split_whitespace().map(column).collect(),
        key,
        is_numbered,
    };
    TABLES.into_iter().map(table).collect()
}

fn column(text: &'static str) -> Column {
    let (names, kind) = text.split_once('/').unwrap_or((text, "i"));
    let (sqlite, mysql) = names.split_once('=').unwrap_or((names, names));
    let kind = match kind {
        "u" => Kind::Unsigned,
        "t" => Kind::Text,
        "b" => Kind::Bytes,
        "s" => Kind::Start,
        _ => Kind::Signed,
    };
    Column { sqlite, mysql, kind }
}

/// The statements that read a table, in the names that one kind of database has for its columns.
pub(crate) struct Reading<'a> {
    pub table: &'a Table,
    /// The name of a column.
    pub name: fn(&Table, &Column) -> &'static str,
    /// `FROM` with the rows of outputs, which each kind of database keeps in its own way.
    pub outputs: &'static str,
}

impl Reading<'_> {
    fn from(&self) -> String {
        match self.table.name {
            OUTPUT => self.outputs.to_owned(),
            META => format!("FROM meta WHERE name NOT IN ('{}')", OWN_META.join("', '")),
            name => format!("FROM {name}"),
        }
    }

    fn names(&self) -> Vec<&'static str> {
        self.table.columns.iter().map(|column| (self.name)(self.table, column)).collect()
    }

    fn key(&self) -> Vec<&'static str> {
        self.names().into_iter().take(self.table.key).collect()
    }

    /// How many rows there are.
    pub fn count(&self) -> String {
        format!("SELECT COUNT(*) {}", self.from())
    }

    /// The key of the last row.
    pub fn last_key(&self) -> String {
        let key = self.key();
        let order: Vec<String> = key.iter().map(|name| format!("{name} DESC")).collect();
        format!("SELECT {} {} ORDER BY {} LIMIT 1", key.join(", "), self.from(), order.join(", "))
    }

    /// The rows in the order of their key, all of them or those behind a key.
    pub fn rows(&self, is_behind: bool) -> String {
        let (names, key, from) = (self.names().join(", "), self.key(), self.from());
        let joint = if from.contains(" WHERE ") { "AND" } else { "WHERE" };
        let behind = if is_behind { format!(" {joint} {}", behind(&key)) } else { String::new() };
        format!("SELECT {names} {from}{behind} ORDER BY {}", key.join(", "))
    }
}

/// True from the row on that comes after the given place of a key. A row is behind if it is behind in one column and equal in all before.
/// One comparison of rows would read whole tables in MySQL.
fn behind(key: &[&str]) -> String {
    let cases: Vec<String> = (0..key.len())
        .map(|at| {
            let equal = key.iter().take(at).map(|name| format!("{name} = ?"));
            let last = key.get(at).map(|name| format!("{name} > ?"));
            equal.chain(last).collect::<Vec<_>>().join(" AND ")
        })
        .collect();
    format!("({})", cases.join(" OR "))
}

impl Table {
    /// The columns of its key.
    pub fn key_columns(&self) -> &[Column] {
        self.columns.get(..self.key).unwrap_or_default()
    }

    /// The values of a key for [`Reading::rows`].
    pub fn behind_values<T: Clone>(&self, key: &[T]) -> Vec<T> {
        (0..key.len()).flat_map(|at| key.iter().take(at + 1).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_from_their_texts() {
        let tables = tables();
        let run = tables.iter().find(|table| table.name == "run").unwrap();
        let trigger = run.columns.iter().find(|column| column.sqlite == "trigger").unwrap();
        assert_eq!((trigger.mysql, trigger.kind), ("trigger_name", Kind::Text));
        assert_eq!(run.columns.first().map(|column| (column.sqlite, column.kind)), Some(("seq", Kind::Unsigned)));
        let place = |name| tables.iter().position(|table| table.name == name);
        assert!(place("job") < place("run") && place("run") < place(OUTPUT));
    }

    #[test]
    fn a_row_is_behind_a_key_column_by_column() {
        let table = tables().into_iter().find(|table| table.name == "concurrent_run").unwrap();
        let key: Vec<&str> = table.key_columns().iter().map(|column| column.mysql).collect();
        let sql = behind(&key);
        assert_eq!(sql, "(job_id > ? OR job_id = ? AND due_at > ? OR job_id = ? AND due_at = ? AND trigger_name > ?)");
        assert_eq!(table.behind_values(&[1, 2, 3]), [1, 1, 2, 1, 2, 3]);
    }
}
