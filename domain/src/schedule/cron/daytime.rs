//! The matching times of one day: hours x minutes x seconds.

/// Bit masks of hours, minutes and seconds. In an accepted schedule none of them is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schedule) struct Daytime {
    pub seconds: u64,
    pub minutes: u64,
    pub hours: u64,
}

impl Daytime {
    /// The number of times in a day.
    pub fn per_day(&self) -> u64 {
        u64::from(self.hours.count_ones()) * self.per_hour()
    }

    /// The earliest time of the day, in seconds since midnight.
    pub fn first(&self) -> u32 {
        at(self.hours.trailing_zeros(), self.minutes.trailing_zeros(), self.seconds.trailing_zeros())
    }

    /// The latest time of the day, in seconds since midnight.
    pub fn last(&self) -> u32 {
        at(self.hours.ilog2(), self.minutes.ilog2(), self.seconds.ilog2())
    }

    /// The earliest time at or after `second` of the day.
    pub fn first_from(&self, second: u32) -> Option<u32> {
        let (h, m, s) = parts(second);
        if bit(self.hours, h) {
            if bit(self.minutes, m)
                && let Some(s) = lowest(self.seconds & (u64::MAX << s))
            {
                return Some(at(h, m, s));
            }
            if let Some(m) = lowest(self.minutes & (u64::MAX << (m + 1))) {
                return Some(at(h, m, self.seconds.trailing_zeros()));
            }
        }
        let h = lowest(self.hours & (u64::MAX << (h + 1)))?;
        Some(at(h, self.minutes.trailing_zeros(), self.seconds.trailing_zeros()))
    }

    /// The latest time at or before `second` of the day.
    pub fn last_until(&self, second: u32) -> Option<u32> {
        let (h, m, s) = parts(second);
        if bit(self.hours, h) {
            if bit(self.minutes, m)
                && let Some(s) = highest(self.seconds & below(s + 1))
            {
                return Some(at(h, m, s));
            }
            if let Some(m) = highest(self.minutes & below(m)) {
                return Some(at(h, m, self.seconds.ilog2()));
            }
        }
        let h = highest(self.hours & below(h))?;
        Some(at(h, self.minutes.ilog2(), self.seconds.ilog2()))
    }

    /// The number of times before `second` of the day.
    pub fn count_before(&self, second: u32) -> u64 {
        let (h, m, s) = parts(second);
        let mut count = ones(self.hours & below(h)) * self.per_hour();
        if bit(self.hours, h) {
            count += ones(self.minutes & below(m)) * ones(self.seconds);
            if bit(self.minutes, m) {
                count += ones(self.seconds & below(s));
            }
        }
        count
    }

    fn per_hour(&self) -> u64 {
        ones(self.minutes) * ones(self.seconds)
    }
}

fn at(hour: u32, minute: u32, second: u32) -> u32 {
    hour * 3_600 + minute * 60 + second
}

fn parts(second: u32) -> (u32, u32, u32) {
    (second / 3_600, second / 60 % 60, second % 60)
}

fn bit(mask: u64, n: u32) -> bool {
    mask >> n & 1 != 0
}

/// The bits 0 to n - 1, for n up to 60.
fn below(n: u32) -> u64 {
    (1 << n) - 1
}

fn ones(mask: u64) -> u64 {
    u64::from(mask.count_ones())
}

fn lowest(mask: u64) -> Option<u32> {
    (mask != 0).then(|| mask.trailing_zeros())
}

fn highest(mask: u64) -> Option<u32> {
    mask.checked_ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_agrees_with_a_scan_of_the_day() {
        let cases =
            [(1, 1, 1), (1 << 59, 1 << 59, 1 << 23), (0b1010, 0x8000_0001, 0x80_1001), (1, below(60), below(24))];
        for (seconds, minutes, hours) in cases {
            let times = Daytime { seconds, minutes, hours };
            let matches = |t: u32| bit(hours, t / 3_600) && bit(minutes, t / 60 % 60) && bit(seconds, t % 60);
            let all: Vec<u32> = (0..86_400).filter(|&t| matches(t)).collect();
            assert_eq!((times.first(), times.last()), (all[0], all[all.len() - 1]));
            assert_eq!(times.per_day(), all.len() as u64);
            for t in (0..86_400).step_by(7).chain([86_399]) {
                let split = all.partition_point(|&x| x < t);
                assert_eq!(times.first_from(t), all.get(split).copied());
                assert_eq!(times.count_before(t), split as u64);
                let upto = all.partition_point(|&x| x <= t);
                assert_eq!(times.last_until(t), upto.checked_sub(1).map(|i| all[i]));
            }
        }
    }
}
