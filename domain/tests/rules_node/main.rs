//! The node machine under a scripted driver: every cell of the matrix, the lease, the drain and the clock.

mod answers;
mod asking;
mod capacity;
mod cells;
mod claim_and_start;
mod clock;
mod driver;
mod eager;
mod ending;
mod finishing;
mod matrix;
mod replacing;
mod resting;
mod start_rate;
mod stealing;
mod suspension;
mod writing_back;
