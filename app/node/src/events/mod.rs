//! Events: what happens in the cluster, told to any number of readers at this node.
//!
//! One task looks at the database while somebody reads, and fans out. So a thousand readers cost the database what one does.
//!
//! - [`follow`] makes events from looks: it knows what was told.
//! - [`merge`] puts the events of one look in order.
//! - [`ring`] keeps the newest events in memory. It serves slow readers, and those that come back.
//! - [`feed`] is the task and the way to it, [`reader`] the way of events to one reader.

mod event;
mod feed;
mod follow;
mod mark;
mod merge;
mod notices;
mod reader;
mod ring;

#[cfg(test)]
mod tests;

pub use event::{Filter, Kind, Kinds};
pub use feed::{EventCounts, Feed, NotSubscribed};
pub use mark::{Mark, Position};
pub use reader::Reader;
