//! Standard output and standard error, without a panic when nobody reads them any more.
//!
//! `carillon next … | head -1` closes the pipe early. That is no failure of the command: what follows is dropped, and
//! commands that print without end ask [`Out::is_closed`] and stop. Any other fault, such as a full disk, is told.

use std::io::{self, BufWriter, Stdout, Write};

use serde_json::Value;

use super::failure::CommandFailure;
use super::table::{Colour, Table};

/// Standard output, buffered until [`Out::flush`].
pub struct Out {
    writer: BufWriter<Stdout>,
    closed: bool,
    coloured: bool,
}

impl Out {
    /// Takes standard output.
    pub fn stdout(colour: Colour) -> Self {
        Self { writer: BufWriter::new(io::stdout()), closed: false, coloured: colour.on_stdout() }
    }

    /// Writes a table; one without rows is a sentence on standard error.
    pub fn table(&mut self, table: &Table, nothing: &str) -> Result<(), CommandFailure> {
        if table.is_empty() {
            note(nothing);
            return Ok(());
        }
        self.bytes(table.text_in(self.coloured).as_bytes())
    }

    /// Whether nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes a line.
    pub fn line(&mut self, text: &str) -> Result<(), CommandFailure> {
        self.bytes(text.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes a JSON value on a line of its own.
    pub fn json(&mut self, value: &Value) -> Result<(), CommandFailure> {
        self.line(&value.to_string())
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), CommandFailure> {
        let done = if self.closed { Ok(()) } else { self.writer.write_all(bytes) };
        self.judge(done)
    }

    /// Hands over what was written so far.
    pub fn flush(&mut self) -> Result<(), CommandFailure> {
        let done = if self.closed { Ok(()) } else { self.writer.flush() };
        self.judge(done)
    }

    fn judge(&mut self, done: io::Result<()>) -> Result<(), CommandFailure> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => Err(CommandFailure::failed(format!(
                "cannot write to standard output: {error}; look at where it goes to"
            ))),
            Ok(()) => Ok(()),
        }
    }
}

/// Tells people something that is not the answer itself. Nobody may be reading, which is no failure.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
