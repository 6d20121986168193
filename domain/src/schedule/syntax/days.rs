//! The two day fields, and how they combine.
//!
//! The rule is Debian cron's: a day must match both fields if either begins with `*`, otherwise one of them is enough.

use super::ask;
use super::field::Field;
use super::term::{Term, Terms};
use crate::schedule::cron::month::{DaysByShape, SHAPES, shape};

/// The compiled day-of-month and day-of-week fields. [`describe`](crate::schedule::describe) puts them into words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schedule) struct Days {
    /// The plain days of the month, bits 1-31.
    pub dom: u64,
    /// `L`, `LW`, `L-3`, `15W`.
    pub dom_special: Box<[Term]>,
    /// The plain weekdays, bits 0-6 from Sunday.
    pub dow: u64,
    /// `FRI#3`, `5L`.
    pub dow_special: Box<[Term]>,
    /// Whether both fields must match.
    pub both: bool,
}

/// All days of the month as bits 1-31.
pub(in crate::schedule) const EVERY_DAY: u64 = 0xffff_fffe;

/// All weekdays as bits 0-6.
pub(in crate::schedule) const EVERY_WEEKDAY: u64 = 0x7f;

impl Days {
    /// Asks saffron for the values of the fields. The error is the field whose translation saffron refused.
    pub fn compile(dom: &Terms, dow: &Terms) -> Result<Self, Field> {
        Ok(Self {
            dom: ask::values(Field::DayOfMonth, &dom.items).ok_or(Field::DayOfMonth)?,
            dom_special: specials(dom),
            dow: ask::values(Field::DayOfWeek, &dow.items).ok_or(Field::DayOfWeek)?,
            dow_special: specials(dow),
            both: dom.star || dow.star,
        })
    }

    /// The matching days of each shape of a month. The error is as for [`Days::compile`].
    pub fn by_shape(&self) -> Result<DaysByShape, Field> {
        let (mut dom, mut dow): (DaysByShape, DaysByShape) = ([0; SHAPES], [0; SHAPES]);
        for length in 28..=31 {
            let whole_month = u32::MAX >> (32 - length);
            for first_weekday in 0..7 {
                let shape = shape(length, first_weekday);
                dom[shape] = u32::try_from(self.dom >> 1).unwrap_or(0) & whole_month;
                dow[shape] = weekdays_of_a_month(self.dow, first_weekday) & whole_month;
            }
        }
        for item in &self.dom_special {
            ask::add_special(*item, &mut dom).ok_or(Field::DayOfMonth)?;
        }
        for item in &self.dow_special {
            ask::add_special(*item, &mut dow).ok_or(Field::DayOfWeek)?;
        }
        Ok(std::array::from_fn(|n| if self.both { dom[n] & dow[n] } else { dom[n] | dow[n] }))
    }
}

fn specials(terms: &Terms) -> Box<[Term]> {
    terms.items.iter().copied().filter(|item| !matches!(item, Term::Values { .. })).collect()
}

/// The days of a month that begins on `first_weekday` and fall on one of `weekdays`; bit 0 is the first day.
fn weekdays_of_a_month(weekdays: u64, first_weekday: u8) -> u32 {
    (0..31)
        .filter(|day| weekdays >> ((day + u32::from(first_weekday)) % 7) & 1 != 0)
        .fold(0, |days, day| days | 1 << day)
}
