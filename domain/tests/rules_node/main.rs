//! The node machine under a scripted driver: every cell of the matrix, the lease, the drain and the clock.

mod capacity;
mod clock;
mod driver;
mod ending;
mod matrix;
mod replacing;
mod stealing;
mod withholding;
