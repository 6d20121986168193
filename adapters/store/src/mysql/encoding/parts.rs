//! Statements that answer rows of several kinds: each row names its kind, and is filled up with NULL to the length of the longest.

/// The parts of such a statement.
pub(in crate::mysql) struct Parts {
    width: usize,
    parts: Vec<String>,
}

impl Parts {
    /// None yet; a row has at most `width` columns beside its kind.
    pub fn of(width: usize) -> Self {
        Self { width, parts: Vec::new() }
    }

    /// Adds rows of a kind. None of the columns has a comma within it; `rest` begins with FROM.
    pub fn add(&mut self, kind: u8, columns: &str, rest: &str) {
        let missing = self.width.saturating_sub(columns.split(',').count());
        self.parts.push(format!("(SELECT {kind}, {columns}{} {rest})", ", NULL".repeat(missing)));
    }

    /// The statement.
    pub fn sql(&self) -> String {
        self.parts.join(" UNION ALL ")
    }
}
