//! Keys that write nothing, by the numbers of the WebDriver standard.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// To the next field.
    Tab,
    /// Confirms.
    Enter,
    /// Leaves.
    Escape,
    /// Down.
    Down,
    /// Up.
    Up,
}

impl Key {
    /// As the protocol sends it.
    pub fn text(self) -> String {
        let code = match self {
            Self::Tab => '\u{e004}',
            Self::Enter => '\u{e007}',
            Self::Escape => '\u{e00c}',
            Self::Down => '\u{e015}',
            Self::Up => '\u{e013}',
        };
        code.to_string()
    }
}
