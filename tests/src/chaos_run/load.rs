//! The jobs of a chaos run: of each kind some, all over the policies, and what the checker is told about them.

use std::path::Path;

use carillon_checker::plan::{Job, Overlap, Schedule};
use carillon_checker::time;
use serde_json::{Value, json};

use crate::chaos::Dice;
use crate::cluster::Witness;
use crate::plugins::{compile, set_mode};

/// A kind of job.
struct Kind {
    /// How many of 48 jobs are of this kind.
    share: usize,
    /// Its schedule as Carillon reads it.
    schedule: &'static str,
    /// The same as the checker computes it: each so many seconds, at these seconds of it.
    every_s: i64,
    phases_s: &'static [i64],
    /// A run lives for so many steps of so many milliseconds, and ends with this code, in bash's words.
    lives: (u32, u32, &'static str),
    /// The other fields, as JSON.
    more: &'static str,
}

const GOOD: &str = "0";
const NOW_AND_THEN_BAD: &str = "$((RANDOM % 3 ? 0 : 3))";

const fn kind(
    share: usize,
    schedule: &'static str,
    every_s: i64,
    lives: (u32, u32, &'static str),
    more: &'static str,
) -> Kind {
    Kind { share, schedule, every_s, phases_s: &[0], lives, more }
}

const KINDS: [Kind; 17] = [
    kind(12, "@every 1s", 1, (1, 30, GOOD), r#"{"misfire": {"policy": "fire_once", "grace": "5s"}}"#),
    kind(4, "* * * * * *", 1, (1, 20, GOOD), r#"{"misfire": {"policy": "skip", "grace": "5s"}}"#),
    kind(4, "*/2 * * * * *", 2, (2, 20, GOOD), r#"{"misfire": {"policy": "fire_once", "grace": "2s"}}"#),
    kind(2, "@every 2s", 2, (1, 20, GOOD), r#"{"misfire": {"policy": "catch_up", "grace": "2s"}}"#),
    Kind { phases_s: &[5, 20, 21, 50], ..kind(2, "5,20-21,50 * * * * *", 60, (1, 20, GOOD), "{}") },
    kind(2, "@every 1s", 1, (3, 450, GOOD), r#"{"overlap": "skip"}"#),
    kind(2, "@every 1s", 1, (3, 450, GOOD), r#"{"overlap": "delay"}"#),
    kind(2, "@every 2s", 2, (5, 500, GOOD), r#"{"overlap": "replace", "kill_grace": "1s"}"#),
    kind(2, "@every 1s", 1, (3, 450, GOOD), r#"{"overlap": "allow"}"#),
    kind(
        2,
        "@every 2s",
        2,
        (1, 50, NOW_AND_THEN_BAD),
        r#"{"retry": {"max_attempts": 3, "backoff": "200ms", "max_backoff": "1s"}}"#,
    ),
    kind(
        1,
        "@every 1s",
        1,
        (1, 30, NOW_AND_THEN_BAD),
        r#"{"overlap": "delay", "retry": {"max_attempts": 2, "backoff": "500ms", "max_backoff": "1s"}}"#,
    ),
    kind(3, "@every 1s", 1, (4, 60, GOOD), r#"{"on_lost": "rerun"}"#),
    kind(
        1,
        "@every 2s",
        2,
        (4, 450, GOOD),
        r#"{"on_lost": "rerun", "overlap": "allow", "retry": {"max_attempts": 2, "backoff": "1s", "max_backoff": "1s"}}"#,
    ),
    kind(1, "@every 5s", 5, (10, 300, GOOD), r#"{"timeout": "1s", "kill_grace": "1s"}"#),
    kind(
        4,
        "@every 1s",
        1,
        (1, 30, GOOD),
        r#"{"executor": "witness", "misfire": {"policy": "fire_once", "grace": "5s"}}"#,
    ),
    kind(2, "@every 1s", 1, (3, 450, GOOD), r#"{"executor": "witness", "overlap": "allow", "kill_grace": "2s"}"#),
    kind(
        2,
        "@every 2s",
        2,
        (2, 100, NOW_AND_THEN_BAD),
        r#"{"executor": "witness", "on_lost": "rerun", "retry": {"max_attempts": 2, "backoff": "500ms", "max_backoff": "1s"}}"#,
    ),
];

/// The executor of the jobs that are no commands, from `witness.c`.
const PLUGIN: &str = "witness";

/// Compiles it into a directory for plugins; the setting that leads nodes there.
pub fn plugins(dir: &Path) -> String {
    let (plugins, source) = (dir.join("plugins"), dir.join("witness.c"));
    std::fs::create_dir_all(&plugins).expect("a directory for plugins");
    set_mode(&plugins, 0o755);
    std::fs::write(&source, include_str!("witness.c")).expect("a source can be written");
    compile(&source, &plugins.join("witness.so"));
    format!("\n[plugins]\ndir = \"{}\"\n", plugins.display())
}

/// A job as it is posted, and what the checker is told of it.
pub struct Made {
    /// The body that is posted.
    pub definition: Value,
    /// The answer.
    pub job: Job,
}

/// `count` jobs that are due from `from_us` to `until_us`, in an order that the dice give. The last of each 25 is due once.
pub fn jobs(count: usize, witness: &Witness, (from_us, until_us): (i64, i64), dice: &mut Dice) -> Vec<Made> {
    let kinds: Vec<&Kind> = KINDS.iter().flat_map(|kind| std::iter::repeat_n(kind, kind.share)).collect();
    let made = (0..count).map(|n| {
        let kind = dice.pick(&kinds);
        let once = (n % 25 == 24).then(|| {
            let second = dice.between(5, u64::try_from((until_us - from_us) / time::SECOND_US).unwrap_or(5).max(5));
            from_us + i64::try_from(second).unwrap_or(0) * time::SECOND_US
        });
        make(&format!("job-{n:03}"), kind, once, witness, (from_us, until_us))
    });
    made.collect()
}

fn make(name: &str, kind: &Kind, once: Option<i64>, witness: &Witness, (from_us, until_us): (i64, i64)) -> Made {
    let (steps, pause_ms, code) = kind.lives;
    let more: Value = serde_json::from_str(kind.more).expect("what else is asked for is JSON");
    let text = once.map_or(kind.schedule.to_owned(), |at| format!("@at {}", time::show(at)));
    let params = match more["executor"] == PLUGIN {
        true => {
            let fails = u8::from(code != GOOD);
            json!({"fails": fails, "file": witness.file(), "pause_ms": pause_ms, "steps": steps})
        }
        false => json!({"command": witness.command(steps, pause_ms, code)}),
    };
    let asked = json!({
        "name": name, "schedule": text, "params": params,
        "start_at": time::show(from_us), "end_at": time::show(until_us),
    });
    let definition = crate::jobs::merged(asked, more);
    let phases_us = kind.phases_s.iter().map(|phase| phase * time::SECOND_US).collect();
    let every = Schedule::Every { anchor_us: 0, period_us: kind.every_s * time::SECOND_US, phases_us };
    let job = Job {
        name: name.to_owned(),
        schedule: once.map_or(every, |at| Schedule::At(vec![at])),
        from_us,
        until_us,
        overlap: match definition["overlap"].as_str() {
            Some("delay") => Overlap::Delay,
            Some("replace") => Overlap::Replace,
            Some("allow") => Overlap::Allow,
            _ => Overlap::Skip,
        },
        max_attempts: definition["retry"]["max_attempts"].as_u64().unwrap_or(1),
        rerun: definition["on_lost"] == "rerun",
    };
    Made { definition, job }
}

/// `@every` counts from the creation of its job, which the API tells.
pub fn anchored(made: &mut [Made], listed: &[Value]) {
    for Made { definition, job } in made {
        let counts = definition["schedule"].as_str().is_some_and(|text| text.starts_with("@every"));
        if let (true, Schedule::Every { anchor_us, .. }) = (counts, &mut job.schedule) {
            let of_job = listed.iter().find(|listed| listed["name"] == definition["name"]).expect("a job is listed");
            *anchor_us = of_job["created_at"].as_str().and_then(time::parse).expect("a job has a time of creation");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_checker_is_told_is_what_the_schedule_says() {
        use carillon_domain::schedule::{Options, Schedule as Theirs, Timeline};
        use carillon_domain::time::Timestamp;
        let (from, until) = (1_800_000_003_000_000, 1_800_000_150_000_000);
        for kind in &KINDS {
            let dir = tempfile::tempdir().expect("a directory");
            let made = make("a", kind, None, &Witness::new(dir.path()), (from, until));
            let mut timeline =
                Timeline::new(Theirs::parse(kind.schedule, &Options::default()).expect("a schedule"), Timestamp::EPOCH);
            timeline.start_at = Some(Timestamp::from_ms(from / 1_000));
            timeline.end_at = Some(Timestamp::from_ms(until / 1_000));
            let theirs: Vec<i64> = timeline.after(Timestamp::EPOCH).map(|at| at.as_ms() * 1_000).collect();
            let ours: Vec<i64> = made.job.schedule.due(from, until).into_iter().collect();
            assert_eq!(ours, theirs, "{}", kind.schedule);
        }
    }
}
