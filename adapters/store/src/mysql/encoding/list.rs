//! Lists in the text of a statement.

/// Numbers for an `IN`.
pub(in crate::mysql) fn list<N: ToString>(numbers: &[N]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
