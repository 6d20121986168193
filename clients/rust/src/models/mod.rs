//! The types of bodies and answers.
//!
//! The files below are written from the OpenAPI document. Times are RFC 3339 in UTC, and durations texts such as `90s`. A field that the
//! server adds in a later version is passed over. A text that a choice does not know is kept in `Other`.

// The document does not describe every field.
#![allow(missing_docs)]

/// One of some texts. A text that a later version of the server adds is no fault.
macro_rules! choice {
    ($name:ident { $($variant:ident = $text:literal,)* }) => {
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $(#[serde(rename = $text)] $variant,)*
            /// A text that this version of the client does not know.
            #[serde(untagged)]
            Other(String),
        }

        impl $name {
            /// The text of the API.
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $text,)*
                    $name::Other(text) => text,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

#[rustfmt::skip]
#[allow(unused_imports)]
mod alerts;
#[rustfmt::skip]
#[allow(unused_imports)]
mod cluster;
#[rustfmt::skip]
#[allow(unused_imports)]
mod jobs;
#[rustfmt::skip]
#[allow(unused_imports)]
mod runs;

pub use alerts::*;
pub use cluster::*;
pub use jobs::*;
pub use runs::*;
