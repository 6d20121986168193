//! Private database servers for tests: started by the test, durable, gone when its process is.

mod brand;
mod clock;
mod database;
mod disk;
mod galera;
mod group;
mod network;
mod pristine;
pub mod proxy;
mod recorder;
mod replicated;
mod reused;
mod server;
mod servers;
mod slow_writer;
mod statement_count;

pub use brand::Brand;
pub use clock::Clock;
pub use database::Database;
pub use disk::Disk;
pub use galera::{Galera, MEMBERS};
pub use group::Group;
pub use network::{Cut, Network, Place};
pub use recorder::Recorder;
pub use replicated::Replicated;
pub use reused::{Lent, Reused};
pub use server::{Server, Surroundings, copy_data, free_port};
pub use servers::{Servers, blocking};
pub use slow_writer::SlowWriter;
pub use statement_count::StatementCount;
