//! The source dies while its asynchronous replica is behind, and the replica takes over. Nodes notice, and people accept the loss when the
//! nodes say so. The former source then becomes a replica of the other one.

use super::dice::Dice;
use super::field::Field;
use super::outcome::{Begun, Struck, now_us};
use super::restored::{go_on, lost};
use crate::databases::Servers;

pub(super) fn strike(field: &Field, dice: &mut Dice) -> Struck {
    let Servers::Replicated(pair) = &field.servers else {
        return Err("there is no replica that could take over".to_owned());
    };
    let (begun, from_us) = (Begun::on(None), now_us());
    pair.let_it_fall_behind()?;
    if let Err(why) = go_on(field, dice) {
        return pair.apply_again().and(Err(why));
    }
    let died = pair.source_number();
    let fail_over = || pair.fail_over().map(|()| now_us());
    let said = lost(field, dice, from_us, fail_over, || pair.take_back(died));
    pair.rebuild()?;
    Ok(begun.seen(format!("server {died} died, and the other one took over, behind since then: {}", said?)))
}
