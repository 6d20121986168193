//! Faults of chaos runs. Each strikes once, waits until it was seen to take effect, is undone, and says what was seen; one that
//! was not seen does not count.

mod appliers;
mod balancers;
mod class;
mod clocks;
mod dice;
mod disks;
mod ends;
mod failed_over;
mod field;
mod kind;
mod members;
mod nodes;
mod outcome;
mod probe;
mod refusals;
mod restored;
mod timing;
mod ways;
pub mod wire;
mod wires;

pub use class::{Class, Reach};
pub use dice::Dice;
pub use field::{Field, Plan, Target};
pub use kind::Kind;
pub use outcome::{Outcome, Seen, now_us};
pub use timing::Timing;
pub use ways::Ways;

use field::Hold;
use outcome::Struck;

/// Strikes once. Waits first until no other strike is in its way ([`Class::reach`]), so that several threads may strike;
/// then it ends within a few minutes at the most, whatever happens, and leaves nothing broken behind.
pub fn strike(class: Class, field: &Field, dice: &mut Dice) -> Outcome {
    if let Some(why) = field.kind.why_not(class) {
        return Outcome::NotEffective { why: why.to_owned() };
    }
    let struck = match field.hold(class, dice) {
        Hold::Node(target, _busy) => on_node(class, field, target, dice),
        Hold::Database(_busy) => on_database(class, field, dice),
        Hold::Alone(_busy) => match class {
            Class::ClusterBehind => members::made_whole(field).and_then(|()| restored::behind(field, dice)),
            Class::FailedOver => members::made_whole(field).and_then(|()| failed_over::strike(field, dice)),
            _ => restored::older_state(field, dice),
        },
    };
    struck.into()
}

fn on_node(class: Class, field: &Field, target: &Target, dice: &mut Dice) -> Struck {
    match class {
        Class::WireCutBefore
        | Class::WireCutAfter
        | Class::WireHalfPacket
        | Class::WireHeld
        | Class::WireHeldClientGone => wires::snare(class, target, dice),
        Class::WireBlackHole | Class::WireOneWay => wires::close(class, target, dice),
        Class::NodeClock => clocks::of_node(target, dice),
        Class::BalancerRotates => balancers::rotates(field, target, dice),
        _ => nodes::strike(class, field, target, dice),
    }
}

fn on_database(class: Class, field: &Field, dice: &mut Dice) -> Struck {
    members::made_whole(field)?;
    match class {
        Class::DatabaseKilled | Class::DatabaseRestarted | Class::DatabaseFrozen => ends::strike(class, field, dice),
        Class::DiskFull => disks::full(field, dice),
        Class::DatabaseClock => clocks::of_database(field, dice),
        Class::MemberBehind => appliers::behind(field, dice),
        Class::MemberCutOff | Class::SwitchedOver | Class::MemberOutside | Class::ClusterCrashed => {
            members::strike(class, field, dice)
        }
        _ => refusals::strike(class, field, dice),
    }
}
