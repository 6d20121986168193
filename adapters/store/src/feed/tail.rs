//! How far a reader of a journal has got, and which numbers below may still become visible.
//!
//! A transaction draws its number before it commits. So a row may become visible after rows with higher numbers, and a transaction that
//! is rolled back leaves a gap for ever. The tail keeps every gap that it has seen. It asks for all of them at each look, because the
//! rows of one job must be told in their order. It gives a gap up when no transaction lives that could fill it.

use std::time::Duration;

use carillon_domain::guard::{Guard, enabled};

use super::{JournalAsk, Span};

/// So many gaps are asked for one by one. Beyond, neighbours are asked for together with the rows between them.
const MOST_SPANS: usize = 4_096;

/// The position in one journal. Times are counted by the caller, on a clock that never goes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    high: u64,
    gaps: Vec<Gap>,
    committed_at: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    span: Span,
    seen_at: Duration,
}

/// The effect of one look on a tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fresh {
    /// Which of the rows found are told now, in their order.
    Rows(Vec<bool>),
    /// The journal ends below what was told: the database has lost commits.
    WentBack,
}

impl Tail {
    /// From the row behind this number on.
    pub const fn after(number: u64) -> Self {
        Self { high: number, gaps: Vec::new(), committed_at: None }
    }

    /// The highest number that was told.
    pub const fn high(&self) -> u64 {
        self.high
    }

    /// Every row up to this number was told, or never becomes visible.
    pub fn low(&self) -> u64 {
        self.gaps.first().map_or(self.high, |gap| gap.span.first - 1)
    }

    /// How many gaps are waited for.
    pub fn gaps(&self) -> usize {
        self.gaps.len()
    }

    /// The question of the next look.
    pub fn ask(&self, limit: usize) -> JournalAsk {
        let together = self.gaps.len().div_ceil(MOST_SPANS).max(1);
        let span = |gaps: &[Gap]| Span { first: gaps[0].span.first, last: gaps[gaps.len() - 1].span.last };
        JournalAsk { after: self.high, limit, gaps: self.gaps.chunks(together).map(span).collect() }
    }

    /// Notes that the database commits, as a look that began at `at` has seen by other means.
    pub fn commits(&mut self, at: Duration) {
        self.committed_at = self.committed_at.max(Some(at));
    }

    /// Takes in the numbers that a look has found, ascending. `at` is when it began; `newest` is the journal's highest number.
    ///
    /// A gap is given up after `commits_within`, and only if an earlier look has seen a commit after that time. A database that stands
    /// still commits late what it has in hand.
    pub fn take(&mut self, at: Duration, found: &[u64], newest: u64, commits_within: Duration) -> Fresh {
        if newest < self.high {
            return Fresh::WentBack;
        }
        let before = self.high;
        let fresh = found.iter().map(|number| self.is_fresh(*number, at, commits_within)).collect();
        let committed_at = self.committed_at;
        let is_over = |gap: &Gap| {
            let over_at = gap.seen_at.saturating_add(commits_within);
            over_at <= at && committed_at.is_some_and(|committed_at| over_at <= committed_at)
        };
        self.gaps.retain(|gap| !is_over(gap));
        if self.high > before {
            self.commits(at);
        }
        Fresh::Rows(fresh)
    }

    /// The tail as a text that [`Self::from_text`] reads: the highest number, when a commit was seen, and gaps as `first-last@time`.
    pub fn to_text(&self) -> String {
        use std::fmt::Write as _;
        let mut text = self.high.to_string();
        if let Some(at) = self.committed_at {
            let _infallible = write!(text, " c{}", at.as_millis());
        }
        for Gap { span: Span { first, last }, seen_at } in &self.gaps {
            let _infallible = write!(text, " {first}-{last}@{}", seen_at.as_millis());
        }
        text
    }

    /// Reads a tail; `None` if the text is none.
    pub fn from_text(text: &str) -> Option<Self> {
        let time = |text: &str| text.parse().ok().map(Duration::from_millis);
        let mut words = text.split(' ').peekable();
        let mut tail = Self::after(words.next()?.parse().ok()?);
        if let Some(at) = words.peek().and_then(|word| word.strip_prefix('c')) {
            tail.committed_at = Some(time(at)?);
            words.next();
        }
        for word in words {
            let (span, seen_at) = word.split_once('@')?;
            let (first, last) = span.split_once('-')?;
            let span = Span { first: first.parse().ok()?, last: last.parse().ok()? };
            tail.gaps.push(Gap { span, seen_at: time(seen_at)? });
        }
        Some(tail)
    }

    fn is_fresh(&mut self, number: u64, at: Duration, commits_within: Duration) -> bool {
        if number > self.high {
            if number > self.high + 1 && !commits_within.is_zero() && enabled(Guard::JournalGaps) {
                self.gaps.push(Gap { span: Span { first: self.high + 1, last: number - 1 }, seen_at: at });
            }
            self.high = number;
            return true;
        }
        let place = self.gaps.partition_point(|gap| gap.span.last < number);
        let Some(gap) = self.gaps.get(place).copied().filter(|gap| gap.span.first <= number) else { return false };
        let Span { first, last } = gap.span;
        let below = (first < number).then(|| Gap { span: Span { first, last: number - 1 }, ..gap });
        let above = (number < last).then(|| Gap { span: Span { first: number + 1, last }, ..gap });
        self.gaps.splice(place..=place, below.into_iter().chain(above));
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(40);

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn take(tail: &mut Tail, at: u64, found: &[u64]) -> Vec<u64> {
        let newest = found.iter().copied().max().unwrap_or(0).max(tail.high());
        match tail.take(secs(at), found, newest, WITHIN) {
            Fresh::Rows(fresh) => {
                found.iter().zip(fresh).filter(|(_, fresh)| *fresh).map(|(number, _)| *number).collect()
            }
            Fresh::WentBack => panic!("it went back"),
        }
    }

    #[test]
    fn a_row_that_commits_late_is_told_once() {
        let mut tail = Tail::after(10);
        assert_eq!(take(&mut tail, 0, &[11, 14]), [11, 14]);
        assert_eq!((tail.low(), tail.high()), (11, 14));
        assert_eq!(tail.ask(9), JournalAsk { after: 14, limit: 9, gaps: vec![Span { first: 12, last: 13 }] });
        assert_eq!(take(&mut tail, 1, &[13]), [13]);
        assert_eq!(take(&mut tail, 2, &[12, 13, 15]), [12, 15]);
        assert_eq!((tail.low(), tail.gaps()), (15, 0));
    }

    #[test]
    fn a_gap_is_given_up_only_when_the_database_has_committed_since() {
        let mut tail = Tail::after(0);
        take(&mut tail, 0, &[2]);
        assert!(take(&mut tail, 39, &[]).is_empty());
        assert!(take(&mut tail, 300, &[]).is_empty(), "nothing was committed: the database may stand still");
        assert_eq!(tail.low(), 0);
        assert_eq!(take(&mut tail, 301, &[3]), [3]);
        assert_eq!(tail.low(), 0, "rows that stood still become visible together, and not in one look");
        assert_eq!(take(&mut tail, 302, &[1]), [1], "it was late, and is told");

        let mut tail = Tail::after(0);
        take(&mut tail, 0, &[2]);
        tail.commits(secs(40));
        take(&mut tail, 39, &[]);
        assert_eq!(tail.low(), 0);
        take(&mut tail, 41, &[]);
        assert_eq!((tail.low(), tail.gaps()), (2, 0));
    }

    #[test]
    fn a_tail_survives_its_text() {
        let mut tail = Tail::after(10);
        assert_eq!(Tail::from_text(&tail.to_text()).as_ref(), Some(&tail));
        take(&mut tail, 0, &[12, 15]);
        assert_eq!(tail.to_text(), "15 c0 11-11@0 13-14@0");
        assert_eq!(Tail::from_text(&tail.to_text()), Some(tail));
        for text in ["", "x", "7 c", "7 8@9", "7 8-@9"] {
            assert_eq!(Tail::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_that_are_visible_in_order_leave_no_gap() {
        let mut tail = Tail::after(0);
        assert_eq!(tail.take(secs(0), &[3, 7], 7, Duration::ZERO), Fresh::Rows(vec![true, true]));
        assert_eq!((tail.low(), tail.gaps()), (7, 0));
    }

    #[test]
    fn a_journal_that_ends_below_what_was_told_went_back() {
        let mut tail = Tail::after(9);
        assert_eq!(tail.take(secs(0), &[], 8, WITHIN), Fresh::WentBack);
        assert_eq!(tail.take(secs(0), &[], 9, WITHIN), Fresh::Rows(vec![]));
    }

    #[test]
    fn too_many_gaps_are_asked_for_together() {
        let mut tail = Tail::after(0);
        let found: Vec<u64> = (1..=10_000).map(|number| number * 2).collect();
        take(&mut tail, 0, &found);
        let asked = tail.ask(1).gaps;
        assert!(asked.len() <= MOST_SPANS && tail.gaps() == 10_000, "{}", asked.len());
        for number in (1..=10_000).map(|number| number * 2 - 1) {
            assert!(asked.iter().any(|span| span.first <= number && number <= span.last), "{number}");
        }
    }

    /// A small generator of numbers, so that a seed replays.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % sides
        }
    }

    /// Transactions draw numbers, commit or roll back within the bound, in any order; each job's one after another.
    struct Database {
        dice: Dice,
        next: u64,
        /// Number, job, and when it ends.
        open: Vec<(u64, u64, u64)>,
        visible: BTreeMap<u64, u64>,
    }

    impl Database {
        fn go_on(&mut self, now: u64, step: u64, jobs: u64) {
            for (number, job, until) in std::mem::take(&mut self.open) {
                if until > now {
                    self.open.push((number, job, until));
                } else if self.dice.roll(4) > 0 {
                    self.visible.insert(number, job);
                }
            }
            for job in (0..jobs).filter(|_| now < 400) {
                if self.dice.roll(3) == 0 && self.open.iter().all(|(_, other, _)| *other != job) {
                    self.next += step;
                    let lives = if self.next.is_multiple_of(7) { 39 } else { self.dice.roll(4) };
                    self.open.push((self.next, job, now + lives));
                }
            }
        }

        fn answer(&self, ask: &JournalAsk) -> Vec<u64> {
            let in_gaps = ask.gaps.iter().flat_map(|span| self.visible.range(span.first..=span.last));
            let above = self.visible.range(ask.after + 1..).take(ask.limit);
            in_gaps.chain(above).map(|(number, _)| *number).collect()
        }
    }

    #[test]
    fn every_committed_row_is_told_once_and_each_job_in_its_order() {
        for seed in 0..100 {
            let mut database = Database { dice: Dice(seed), next: 0, open: Vec::new(), visible: BTreeMap::new() };
            let (step, jobs) = (1 + database.dice.roll(3), 1 + database.dice.roll(5));
            let (mut tail, mut told, mut last) = (Tail::after(0), BTreeSet::new(), BTreeMap::new());
            for now in 0..600 {
                database.go_on(now, step, jobs);
                if database.dice.roll(3) > 0 || now > 590 {
                    let ask = tail.ask(1 + database.dice.roll(20) as usize);
                    let found = database.answer(&ask);
                    let newest = database.visible.last_key_value().map_or(0, |(number, _)| *number);
                    let Fresh::Rows(fresh) = tail.take(secs(now), &found, newest, WITHIN) else { panic!("went back") };
                    for number in found.into_iter().zip(fresh).filter(|(_, fresh)| *fresh).map(|(number, _)| number) {
                        assert!(told.insert(number), "seed {seed}: {number} was told twice");
                        let before = last.insert(database.visible[&number], number);
                        assert!(before < Some(number), "seed {seed}: {number} was told after {before:?} of its job");
                    }
                    tail.commits(secs(now));
                }
                let low = tail.low();
                assert!(
                    database.open.iter().all(|(number, ..)| *number > low),
                    "seed {seed}: {low} covers an open one"
                );
                let untold = database.visible.range(..=low).find(|(number, _)| !told.contains(*number));
                assert_eq!(untold, None, "seed {seed}: it is below the watermark and was not told");
            }
            assert!(told.iter().eq(database.visible.keys()), "seed {seed}");
            assert_eq!((tail.low(), tail.gaps()), (tail.high(), 0), "seed {seed}: gaps are given up in the end");
        }
    }
}
