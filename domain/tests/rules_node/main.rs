//! The node machine under a scripted driver: every cell of the matrix, the lease, the drain and the clock.

mod along;
mod asking;
mod capacity;
mod cells;
mod clock;
mod driver;
mod ending;
mod finishing;
mod matrix;
mod pacing;
mod replacing;
mod stealing;
mod withholding;
