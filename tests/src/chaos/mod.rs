//! Faults of chaos runs. Each strikes once, waits until it was seen to take effect, is undone, and says what was seen; one that
//! was not seen does not count.

mod class;
mod dice;
mod field;
mod nodes;
mod outcome;
pub mod wire;
mod wires;

pub use class::{Class, Reach};
pub use dice::Dice;
pub use field::{Field, Plan, Target};
pub use outcome::{Outcome, Seen, now_us};

use field::Hold;

/// Strikes once. Waits first until no other strike is in its way ([`Class::reach`]), so that several threads may strike;
/// then it ends within a few minutes at the most, whatever happens, and leaves nothing broken behind.
pub fn strike(class: Class, field: &Field, dice: &mut Dice) -> Outcome {
    let struck = match field.hold(class, dice) {
        Hold::Node(target, _busy) => match class {
            Class::WireCutBefore
            | Class::WireCutAfter
            | Class::WireHalfPacket
            | Class::WireHeld
            | Class::WireHeldClientGone => wires::snare(class, target, dice),
            Class::WireBlackHole | Class::WireOneWay => wires::close(class, target, dice),
            _ => nodes::strike(class, field, target, dice),
        },
        Hold::Database(_busy) => Err("it is not there yet".to_owned()),
        Hold::Alone(_busy) => Err("it is not there yet".to_owned()),
    };
    struck.into()
}
