//! Routes, deliveries and incidents as clients write and read them.

mod route;
mod shown;
mod target;

pub use route::{route_json, route_of, stored_route_json};
pub use shown::{delivery_json, incident_json};
