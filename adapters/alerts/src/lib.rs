//! Messages for people and programs: how a notice looks to each kind of receiver, and how it gets there.
//!
//! [`render`] makes a [`Payload`] of a notice, without I/O. A [`Sender`] sends it and answers in a sentence. [`Lanes`]
//! keep one receiver that hangs from holding up the others. When to send, and how often, the domain decides.

mod config;
mod lanes;
mod outcome;
mod render;
mod send;

pub use config::{AlertsConfig, Login, MailConfig, SmtpUrl};
pub use lanes::{Lanes, Left, Limits, Wait};
pub use outcome::Outcome;
pub use render::{Command, Extra, Mail, MailBody, Payload, Post, render, render_ping, render_start};
pub use send::{Policy, Reach, Resolve, Resolving, SIGNATURE_HEADER, Sender, reach, signature};
