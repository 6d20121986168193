//! Random schedules over the whole syntax.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Fields, Item, PLACES, Place};

fn range(place: Place) -> impl Strategy<Value = (u32, u32)> {
    (place.min..=place.max, place.min..=place.max).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

fn plain(place: Place) -> BoxedStrategy<Item> {
    let value = place.min..=place.max;
    let step = 1..=place.max + 5;
    prop_oneof![
        2 => Just(Item::Star),
        1 => Just(Item::Question),
        4 => step.clone().prop_map(Item::StarStep),
        6 => value.clone().prop_map(Item::One),
        2 => value.clone().prop_map(Item::Name),
        5 => range(place).prop_map(|(a, b)| Item::Range(a, b)),
        3 => (range(place), step.clone()).prop_map(|((a, b), n)| Item::RangeStep(a, b, n)),
        1 => (value, step.clone()).prop_map(|(a, n)| Item::From(a, n)),
        1 => Just(Item::Hash),
        1 => step.clone().prop_map(Item::HashStep),
        1 => range(place).prop_map(|(a, b)| Item::HashRange(a, b)),
        1 => (range(place), step).prop_map(|((a, b), n)| Item::HashRangeStep(a, b, n)),
    ]
    .boxed()
}

fn item(place: Place) -> BoxedStrategy<Item> {
    match place.name {
        "day-of-month" => prop_oneof![
            8 => plain(place),
            1 => (0..=30_u32).prop_map(Item::LastDay),
            1 => Just(Item::LastDay(0)),
            1 => Just(Item::LastWorkday),
            2 => (1..=31_u32).prop_map(Item::Nearest),
        ]
        .boxed(),
        "day-of-week" => prop_oneof![
            8 => plain(place),
            2 => (0..=7_u32, 1..=5_u32).prop_map(|(day, n)| Item::Nth(day, n)),
            1 => (0..=7_u32).prop_map(Item::LastOf),
        ]
        .boxed(),
        _ => plain(place),
    }
}

fn field(n: usize) -> BoxedStrategy<Vec<Item>> {
    let star = Just(vec![Item::Star]);
    // Months and days are mostly `*`, so that due times occur within the few days that the oracle can walk.
    let stars = [1, 3, 3, 8, 12, 8][n];
    prop_oneof![stars => star, 3 => vec(item(PLACES[n]), 1), 2 => vec(item(PLACES[n]), 2..4)].boxed()
}

/// Any schedule of five fields, or of six.
pub fn fields(six: bool) -> impl Strategy<Value = Fields> {
    (field(0), field(1), field(2), field(3), field(4), field(5))
        .prop_map(move |(a, b, c, d, e, f)| Fields { six, items: [a, b, c, d, e, f] })
}

/// Schedules at midnight with restricted days.
pub fn days() -> impl Strategy<Value = Fields> {
    let zero = || vec![Item::One(0)];
    let some = |n: usize| prop_oneof![1 => Just(vec![Item::Star]), 6 => vec(item(PLACES[n]), 1..4)];
    (some(3), field(4), some(5))
        .prop_map(move |(d, e, f)| Fields { six: false, items: [zero(), zero(), zero(), d, e, f] })
}
