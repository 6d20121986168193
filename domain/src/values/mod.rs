//! Values without rules of their own: ids, names, instants, durations.

pub mod duration;
pub mod id;
pub mod name;
pub mod time;
