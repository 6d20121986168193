//! The words of the jobs themselves: a line when they start, lines while they live, a line when they end.
//!
//! A line is `RUN JOB DUE_AT ATTEMPT TOKEN WHAT TIME`: the words of the run's environment, then `start`, `alive` or `end:N`
//! (the exit code that it is about to have), and its own clock in microseconds since 1970.

use std::collections::BTreeMap;

use crate::time;

/// One process of a run as its own lines tell it: a run id with a fencing token. Times are microseconds since 1970 by the clock of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// The run's id.
    pub run: String,
    /// The job's name.
    pub job: String,
    /// The due time, as the environment gave it.
    pub due_us: i64,
    /// Which attempt, as the environment gave it.
    pub attempt: u64,
    /// The fencing token, as the environment gave it.
    pub token: u64,
    /// How many lines said that it started; more than one is two processes with one token.
    pub starts: u32,
    /// Its first line.
    pub first_us: i64,
    /// Its last line, whichever it was.
    pub last_us: i64,
    /// The exit code that it announced, if it came to its end.
    pub end: Option<i64>,
}

/// Every process that has written a line, by run id and token; then the lines that cannot be read.
pub fn lives(text: &str) -> (Vec<Life>, Vec<String>) {
    let mut lives: BTreeMap<(&str, u64), Life> = BTreeMap::new();
    let mut torn = Vec::new();
    for line in text.split_inclusive('\n') {
        let Some((life, what)) = read(line) else {
            torn.push(line.to_owned());
            continue;
        };
        let run = line.split(' ').next().unwrap_or_default();
        let known = lives.entry((run, life.token)).or_insert_with(|| life.clone());
        known.starts += u32::from(what == "start");
        known.first_us = known.first_us.min(life.first_us);
        known.last_us = known.last_us.max(life.last_us);
        known.end = known.end.or(life.end);
        if (&known.job, known.due_us, known.attempt) != (&life.job, life.due_us, life.attempt) {
            torn.push(format!("another firing under the same run id: {line}"));
        }
    }
    (lives.into_values().collect(), torn)
}

fn read(line: &str) -> Option<(Life, &str)> {
    let words: Vec<&str> = line.strip_suffix('\n')?.split(' ').collect();
    let [run, job, due_at, attempt, token, what, at] = words[..] else { return None };
    let at: i64 = at.parse().ok()?;
    let end = match what {
        "start" | "alive" => None,
        _ => Some(what.strip_prefix("end:")?.parse().ok()?),
    };
    let life = Life {
        run: run.to_owned(),
        job: job.to_owned(),
        due_us: time::parse(due_at)?,
        attempt: attempt.parse().ok()?,
        token: token.parse().ok()?,
        starts: 0,
        first_us: at,
        last_us: at,
        end,
    };
    Some((life, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_lives_and_what_is_torn_is_told() {
        let text = "r j 1970-01-01T00:00:01Z 1 7 start 1000100\nr j 1970-01-01T00:00:01Z 1 7 alive 1000200\n\
                    r j 1970-01-01T00:00:01Z 1 7 end:3 1000300\nr j 1970-01-01T00:0\n\
                    s j 1970-01-01T00:00:02Z 2 8 start 2000100\nr j 1970-01-01T00:00:02Z 1 7 alive 2000200\n\
                    s j 1970-01-01T00:00:02Z 2 8 al";
        let (lives, torn) = lives(text);
        let of = |run: &str| lives.iter().find(|life| life.run == run).unwrap();
        let r = of("r");
        assert_eq!((r.due_us, r.attempt, r.token, r.starts), (1_000_000, 1, 7, 1));
        assert_eq!((r.first_us, r.end), (1_000_100, Some(3)));
        assert_eq!((of("s").starts, of("s").end, of("s").last_us), (1, None, 2_000_100));
        assert_eq!(torn.len(), 3, "{torn:?}");
    }
}
