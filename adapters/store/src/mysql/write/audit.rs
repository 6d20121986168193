//! The audit log of a batch: as few statements as its history takes.

use std::sync::LazyLock;

use carillon_domain::store::AuditDocument;
use carillon_domain::time::Timestamp;

use crate::audit::document::to_text;
use crate::codec::run_bytes;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::batch::{Cell, Column, ColumnType, names, table, values};
use crate::mysql::encoding::list::list;
use crate::mysql::read::select::limit_of;
use crate::{AuditEntry, StoreResult};

const AUDIT: &[Column] = &[
    Column("at", ColumnType::Signed),
    Column("who", ColumnType::Text),
    Column("origin", ColumnType::Text),
    Column("action", ColumnType::Text),
    Column("namespace", ColumnType::Text),
    Column("job", ColumnType::Text),
    Column("job_id", ColumnType::Unsigned),
    Column("generation", ColumnType::Unsigned),
    Column("run", ColumnType::Bytes),
    Column("before_doc", ColumnType::Text),
    Column("after_doc", ColumnType::Text),
];

static INSERT: LazyLock<String> = LazyLock::new(|| {
    format!("INSERT INTO audit ({}) SELECT {} FROM {}", names(&[AUDIT]), values(&[AUDIT]), table(AUDIT))
});

/// The texts and bytes of an entry.
struct Texts {
    run: Option<[u8; 16]>,
    before: Option<String>,
    after: Option<String>,
}

impl Texts {
    fn of(entry: &AuditEntry) -> StoreResult<Self> {
        let text = |document: &Option<AuditDocument>| document.as_ref().map(to_text).transpose();
        Ok(Self { run: entry.run.map(run_bytes), before: text(&entry.before)?, after: text(&entry.after)? })
    }
}

/// In the order of [`AUDIT`].
fn cells<'a>(entry: &'a AuditEntry, texts: &'a Texts) -> Vec<Cell<'a>> {
    let job = entry.job.as_ref();
    vec![
        entry.at.as_ms().into(),
        Cell::Text(&entry.author.name),
        Cell::Text(&entry.author.origin),
        Cell::Text(entry.action.as_str()),
        job.map(|(key, _)| key.namespace.as_str()).into(),
        job.map(|(key, _)| key.name.as_str()).into(),
        job.map(|(_, id)| id.0).into(),
        entry.generation.into(),
        texts.run.as_ref().into(),
        texts.before.as_deref().into(),
        texts.after.as_deref().into(),
    ]
}

impl MySqlConnection {
    pub(in crate::mysql) async fn insert_entries(&mut self, entries: &[AuditEntry]) -> StoreResult<()> {
        let texts = entries.iter().map(Texts::of).collect::<StoreResult<Vec<_>>>()?;
        let rows: Vec<Vec<Cell<'_>>> = entries.iter().zip(&texts).map(|(entry, texts)| cells(entry, texts)).collect();
        self.insert_rows("audit", &[AUDIT], &INSERT, &rows).await.map(|_| ())
    }

    /// Deletes up to `limit` entries that are older than `before`.
    pub(in crate::mysql) async fn purge_entries(&mut self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        let (before, limit) = (before.as_ms(), limit_of(limit));
        let sql =
            format!("SELECT id FROM audit FORCE INDEX (audit_at) WHERE at < {before} ORDER BY at, id LIMIT {limit}");
        let old = self.numbers(&sql).await?;
        if old.is_empty() {
            return Ok(0);
        }
        let deleted = self.run(&format!("DELETE FROM audit WHERE id IN ({})", list(&old))).await?.matched;
        Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
    }
}
