//! What people do, at every moment at which they may do it.

use carillon_domain::firing::{CancelledBy, Phase, Rejected, Why};
use carillon_domain::job::{Job, MisfirePolicy, Overlap};
use carillon_domain::run::Status;

use super::desk::{Desk, at, every, misfire, overlap, retrying, secs};

#[test]
fn a_firing_claimed_ahead_and_put_back_hides_no_due_time_of_a_new_timing() {
    let mut desk = Desk::new(every(60));
    desk.claim_ahead(31, 30).unwrap();
    assert_eq!(desk.update(32, every(10)), Ok(Why::Updated));
    assert_eq!(desk.armed().due_at, at(42));
    desk.run(42);
    desk.finish(43, Status::Succeeded).unwrap();
    assert_eq!(desk.armed().due_at, at(52));
}
