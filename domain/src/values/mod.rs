//! Values without rules of their own: ids, names, instants, durations, measurements.

pub mod duration;
pub mod id;
pub mod measured;
pub mod name;
pub mod time;
