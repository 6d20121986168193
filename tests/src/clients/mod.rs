//! The clients in `clients/`: their models and calls are written from the OpenAPI document.
//!
//! The document is made from the table that the server answers by. So a call or a field that is new there is in both clients after
//! `UPDATE=1 cargo test -p carillon-tests --test clients`, and until then that test fails.

mod python;
mod read;
mod rust;

use serde_json::Value;

pub use self::read::Api;

/// The first line of each file that is written.
const HEADER: &str =
    "Written from the OpenAPI document by `UPDATE=1 cargo test -p carillon-tests --test clients`; not by hand.";

/// A file that is written: its path below `clients/`, and its text.
pub type Written = (String, String);

/// All files of both clients that are written from the document.
pub fn written(document: &Value) -> Vec<Written> {
    let api = Api::read(document);
    let mut files = rust::files(&api);
    files.extend(python::files(&api));
    files
}
