//! A second, naive implementation of the schedule rules, written from the user's documentation alone. It walks the wall
//! clock step by step and decides on one moment at a time. It is slow, and too simple to share a mistake with the real
//! one.

pub mod random;

use carillon_domain::schedule::{Gap, Overlap, stable_hash};
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, TimeDelta, TimeZone, Timelike, Weekday};
use chrono_tz::Tz;

/// The key that `H` hashes in these tests.
pub const KEY: &str = "default/oracle";

/// An item of a field's list, as a test generates it.
#[derive(Debug, Clone)]
pub enum Item {
    Star,
    Question,
    StarStep(u32),
    One(u32),
    Name(u32),
    Range(u32, u32),
    RangeStep(u32, u32, u32),
    From(u32, u32),
    Hash,
    HashStep(u32),
    HashRange(u32, u32),
    HashRangeStep(u32, u32, u32),
    LastDay(u32),
    LastWorkday,
    Nearest(u32),
    Nth(u32, u32),
    LastOf(u32),
}

/// The field of an item: its name, its limits and the limit of `H`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    pub name: &'static str,
    pub min: u32,
    pub max: u32,
    pub hash_max: u32,
}

pub const PLACES: [Place; 6] = [
    Place { name: "seconds", min: 0, max: 59, hash_max: 59 },
    Place { name: "minute", min: 0, max: 59, hash_max: 59 },
    Place { name: "hour", min: 0, max: 23, hash_max: 23 },
    Place { name: "day-of-month", min: 1, max: 31, hash_max: 28 },
    Place { name: "month", min: 1, max: 12, hash_max: 12 },
    Place { name: "day-of-week", min: 0, max: 7, hash_max: 6 },
];

const MONTHS: [&str; 13] = ["", "jan", "Feb", "MAR", "apr", "MAY", "Jun", "jul", "AUG", "sep", "OCT", "nov", "DEC"];
const WEEKDAYS: [&str; 8] = ["SUN", "mon", "Tue", "WED", "thu", "FRI", "Sat", "sun"];

impl Item {
    pub fn text(&self, place: Place) -> String {
        match *self {
            Item::Star => "*".into(),
            Item::Question => "?".into(),
            Item::StarStep(n) => format!("*/{n}"),
            Item::One(a) => format!("{a}"),
            Item::Name(a) if place.name == "month" => MONTHS[a as usize].into(),
            Item::Name(a) if place.name == "day-of-week" => WEEKDAYS[a as usize].into(),
            Item::Name(a) => format!("0{a}"),
            Item::Range(a, b) => format!("{a}-{b}"),
            Item::RangeStep(a, b, n) => format!("{a}-{b}/{n}"),
            Item::From(a, n) => format!("{a}/{n}"),
            Item::Hash => "H".into(),
            Item::HashStep(n) => format!("H/{n}"),
            Item::HashRange(a, b) => format!("H({a}-{b})"),
            Item::HashRangeStep(a, b, n) => format!("H({a}-{b})/{n}"),
            Item::LastDay(0) => "L".into(),
            Item::LastDay(n) => format!("L-{n}"),
            Item::LastWorkday => "LW".into(),
            Item::Nearest(a) => format!("{a}W"),
            Item::Nth(day, n) => format!("{day}#{n}"),
            Item::LastOf(day) => format!("{day}L"),
        }
    }

    fn has(&self, place: Place, value: u32) -> bool {
        let hash = stable_hash(KEY, place.name);
        let pick = |first: u32, choices: u32| first + (hash % u64::from(choices)) as u32;
        let stepped = |first: u32, last: u32, step: u32| (first..=last).step_by(step as usize).any(|v| v == value);
        let size = place.hash_max - place.min + 1;
        // A week has seven days for `H`, although Sunday has two numbers.
        let hash_end = if place.name == "day-of-week" { 6 } else { place.max };
        match *self {
            Item::Star | Item::Question => true,
            Item::StarStep(n) => stepped(place.min, place.max, n),
            Item::One(a) | Item::Name(a) => a == value,
            Item::Range(a, b) => a <= value && value <= b,
            Item::RangeStep(a, b, n) => stepped(a, b, n),
            Item::From(a, n) => stepped(a, place.max, n),
            Item::Hash => pick(place.min, size) == value,
            Item::HashStep(n) => stepped(pick(place.min, n.min(size)), hash_end, n),
            Item::HashRange(a, b) => pick(a, b - a + 1) == value,
            Item::HashRangeStep(a, b, n) => stepped(pick(a, n.min(b - a + 1)), b, n),
            _ => false,
        }
    }

    fn has_date(&self, place: Place, date: NaiveDate) -> bool {
        let last = last_of_month(date);
        match *self {
            Item::LastDay(n) => date + TimeDelta::days(i64::from(n)) == last,
            Item::LastWorkday => date == (0..3).map(|n| last - TimeDelta::days(n)).find(|d| workday(*d)).unwrap(),
            Item::Nearest(day) => date.with_day(day).is_some_and(|target| date == nearest_workday(target)),
            Item::Nth(day, n) => weekday(date) == day % 7 && date.day0() / 7 + 1 == n,
            Item::LastOf(day) => weekday(date) == day % 7 && date.day() + 7 > last.day(),
            _ if place.name == "day-of-month" => self.has(place, date.day()),
            _ => self.has(place, weekday(date)) || weekday(date) == 0 && self.has(place, 7),
        }
    }

    fn star(&self) -> bool {
        matches!(self, Item::Star | Item::Question | Item::StarStep(_) | Item::HashStep(_))
    }
}

fn weekday(date: NaiveDate) -> u32 {
    date.weekday().num_days_from_sunday()
}

fn workday(date: NaiveDate) -> bool {
    !matches!(date.weekday(), Weekday::Sat | Weekday::Sun)
}

fn last_of_month(date: NaiveDate) -> NaiveDate {
    (28..=31).rev().find_map(|day| date.with_day(day)).unwrap()
}

/// The nearest Monday to Friday of the same month: never more than two days away.
fn nearest_workday(target: NaiveDate) -> NaiveDate {
    [0, -1, 1, -2, 2]
        .map(|days| target + TimeDelta::days(days))
        .into_iter()
        .find(|d| d.month() == target.month() && workday(*d))
        .unwrap()
}

/// A random schedule: the items of its fields, seconds first.
#[derive(Debug, Clone)]
pub struct Fields {
    pub six: bool,
    pub items: [Vec<Item>; 6],
}

impl Fields {
    pub fn text(&self) -> String {
        let field = |n: usize| self.items[n].iter().map(|i| i.text(PLACES[n])).collect::<Vec<_>>().join(",");
        (usize::from(!self.six)..6).map(field).collect::<Vec<_>>().join(" ")
    }

    pub fn on(&self, date: NaiveDate) -> bool {
        let dom = self.items[3].iter().any(|i| i.has_date(PLACES[3], date));
        let dow = self.items[5].iter().any(|i| i.has_date(PLACES[5], date));
        let month = self.items[4].iter().any(|i| i.has(PLACES[4], date.month()));
        month && if self.items[3][0].star() || self.items[5][0].star() { dom && dow } else { dom || dow }
    }

    fn matches(&self, wall: NaiveDateTime) -> bool {
        let has = |n: usize, value| self.items[n].iter().any(|i| i.has(PLACES[n], value));
        let second = if self.six { has(0, wall.second()) } else { wall.second() == 0 };
        second && has(1, wall.minute()) && has(2, wall.hour()) && self.on(wall.date())
    }

    /// The due times in `[from, to)` in seconds since the epoch, found by a walk.
    pub fn due(&self, tz: Tz, gap: Gap, overlap: Overlap, from: i64, to: i64) -> Vec<i64> {
        let step = if self.six { 1 } else { 60 };
        let real_time = self.items[1][0].star() || self.items[2][0].star();
        let wall =
            |utc: i64| tz.from_utc_datetime(&DateTime::from_timestamp(utc, 0).unwrap().naive_utc()).naive_local();
        // The walk begins three hours earlier, because no overlap is longer: so the times shown before are known.
        let mut utc = (from - 3 * 3_600).div_euclid(step) * step;
        let mut shown = wall(utc);
        let mut due = Vec::new();
        while utc < to {
            let now = wall(utc);
            let fires = if real_time || now == shown {
                self.matches(now)
            } else if now < shown {
                overlap == Overlap::Both && self.matches(now)
            } else {
                let mut skipped = shown;
                let mut any = false;
                while skipped < now {
                    any |= self.matches(skipped);
                    skipped += TimeDelta::seconds(step);
                }
                self.matches(now) || any && gap == Gap::After
            };
            if fires && utc >= from {
                due.push(utc);
            }
            shown = shown.max(now + TimeDelta::seconds(step));
            utc += step;
        }
        due
    }
}
