//! A job's definition as arguments, written over a definition as JSON.
//!
//! Fields without an argument stay as they are. So the same function makes a new job from nothing and changes one that was read. The
//! server judges the result; only faults that need no server are found here.

use carillon_domain::time::Timestamp;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::args::{duration_text, pair, time};
use crate::failure::CommandFailure;

/// The fields of a job.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Definition")]
pub struct DefinitionArgs {
    /// When: five fields, six with seconds first, or a descriptor such as @daily
    #[arg(long, short, value_name = "SCHEDULE")]
    pub schedule: Option<String>,
    /// The time zone of the schedule, such as Europe/Berlin (`none` for UTC)
    #[arg(long, value_name = "TZ")]
    pub timezone: Option<String>,
    /// What: a line for the shell
    #[arg(long, short, value_name = "LINE", conflicts_with = "argv")]
    pub command: Option<String>,
    /// What: a program and its arguments, run without a shell
    #[arg(last = true, value_name = "ARGV")]
    pub argv: Vec<String>,
    /// The executor [default: shell]
    #[arg(long, value_name = "NAME")]
    pub executor: Option<String>,
    /// The executor's parameters as a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub params: Option<Map<String, Value>>,
    /// An environment variable; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = pair)]
    pub env: Vec<(String, String)>,
    /// The directory to start in
    #[arg(long, value_name = "DIR")]
    pub dir: Option<String>,
    /// The text that the command reads from standard input
    #[arg(long, value_name = "TEXT")]
    pub stdin: Option<String>,
    /// The user to run as
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// The shell [default: bash]
    #[arg(long, value_name = "SHELL")]
    pub shell: Option<String>,
    /// When it comes due while it runs
    #[arg(long, value_parser = ["skip", "delay", "replace", "allow"])]
    pub overlap: Option<String>,
    /// The policy for due times that nobody could start
    #[arg(long, value_parser = ["skip", "fire_once", "catch_up"])]
    pub misfire: Option<String>,
    /// How late a start is still in time
    #[arg(long, value_name = "DURATION", value_parser = duration_text)]
    pub grace: Option<String>,
    /// How long a run may take (`none`: as long as it likes)
    #[arg(long, value_name = "DURATION", value_parser = duration_or_none)]
    pub timeout: Option<String>,
    /// How long after SIGTERM a run is killed
    #[arg(long, value_name = "DURATION", value_parser = duration_text)]
    pub kill_grace: Option<String>,
    /// How many attempts a firing has in all
    #[arg(long, value_name = "N", conflicts_with = "retries")]
    pub max_attempts: Option<u32>,
    /// How many attempts it has after the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..100))]
    pub retries: Option<u32>,
    /// The wait before the second attempt; it doubles each time
    #[arg(long, value_name = "DURATION", value_parser = duration_text)]
    pub backoff: Option<String>,
    /// The longest wait between two attempts
    #[arg(long, value_name = "DURATION", value_parser = duration_text)]
    pub max_backoff: Option<String>,
    /// The policy for a run whose node died
    #[arg(long, value_parser = ["skip", "rerun"])]
    pub on_lost: Option<String>,
    /// Spread the due times over this
    #[arg(long, value_name = "DURATION", value_parser = duration_text)]
    pub jitter: Option<String>,
    /// The rule for times that a change of the clock swallows
    #[arg(long, value_parser = ["after", "skip"])]
    pub dst_gap: Option<String>,
    /// At which of two equal times of day to be due
    #[arg(long, value_parser = ["first", "both"])]
    pub dst_overlap: Option<String>,
    /// Not due before (RFC 3339, or `none`)
    #[arg(long, value_name = "TIME", value_parser = time_or_none)]
    pub start_at: Option<String>,
    /// Not due after (RFC 3339, or `none`)
    #[arg(long, value_name = "TIME", value_parser = time_or_none)]
    pub end_at: Option<String>,
    /// A label; may be repeated
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = pair)]
    pub label: Vec<(String, String)>,
    /// Keep it from coming up
    #[arg(long)]
    pub paused: bool,
    /// A definition as JSON, YAML or TOML, `-` for standard input; the other options are written over it
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<String>,
}

impl DefinitionArgs {
    /// Writes what is given over a definition.
    pub fn apply(&self, job: &mut Map<String, Value>) -> Result<(), CommandFailure> {
        let plain = [
            ("schedule", &self.schedule),
            ("timezone", &self.timezone),
            ("timeout", &self.timeout),
            ("kill_grace", &self.kill_grace),
            ("overlap", &self.overlap),
            ("on_lost", &self.on_lost),
            ("jitter", &self.jitter),
            ("start_at", &self.start_at),
            ("end_at", &self.end_at),
        ];
        for (key, text) in plain {
            set(job, key, text.as_deref().map(|text| if text == "none" { Value::Null } else { json!(text) }));
        }
        set(job, "paused", self.paused.then_some(json!(true)));
        let inner = [
            ("misfire", "policy", json!(self.misfire)),
            ("misfire", "grace", json!(self.grace)),
            ("retry", "max_attempts", json!(self.max_attempts.or(self.retries.map(|retries| retries + 1)))),
            ("retry", "backoff", json!(self.backoff)),
            ("retry", "max_backoff", json!(self.max_backoff)),
            ("dst", "gap", json!(self.dst_gap)),
            ("dst", "overlap", json!(self.dst_overlap)),
        ];
        for (outer, key, value) in inner.into_iter().filter(|(_, _, value)| !value.is_null()) {
            inside(job, outer)?.insert(key.into(), value);
        }
        for (key, value) in &self.label {
            inside(job, "labels")?.insert(key.clone(), json!(value));
        }
        self.apply_params(job)
    }

    fn apply_params(&self, job: &mut Map<String, Value>) -> Result<(), CommandFailure> {
        if let Some(executor) = &self.executor {
            let was = job.insert("executor".into(), json!(executor));
            // The parameters of another executor mean nothing to this one.
            if was.unwrap_or_else(|| json!("shell")) != json!(executor) && self.file.is_none() {
                job.remove("params");
            }
        }
        if let Some(params) = &self.params {
            job.insert("params".into(), Value::Object(params.clone()));
        }
        let argv = (!self.argv.is_empty()).then(|| json!(self.argv));
        for (key, value, instead_of) in
            [("command", self.command.as_ref().map(|line| json!(line)), "argv"), ("argv", argv, "command")]
        {
            if let Some(value) = value {
                let params = inside(job, "params")?;
                params.remove(instead_of);
                params.insert(key.into(), value);
            }
        }
        let plain = [("dir", &self.dir), ("stdin", &self.stdin), ("user", &self.user), ("shell", &self.shell)];
        for (key, text) in plain {
            if let Some(text) = text {
                inside(job, "params")?.insert(key.into(), json!(text));
            }
        }
        for (key, value) in &self.env {
            let params = inside(job, "params")?;
            inside(params, "env")?.insert(key.clone(), json!(value));
        }
        Ok(())
    }
}

fn set(object: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value);
    }
}

/// The object below a key, made where there is none.
pub(super) fn inside<'a>(
    object: &'a mut Map<String, Value>,
    key: &str,
) -> Result<&'a mut Map<String, Value>, CommandFailure> {
    let value = object.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut().ok_or_else(|| CommandFailure::usage(format!("{key} is not an object in the definition")))
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not a JSON object: {error}"))
}

fn duration_or_none(text: &str) -> Result<String, String> {
    if text == "none" { Ok(text.into()) } else { duration_text(text) }
}

fn time_or_none(text: &str) -> Result<String, String> {
    if text == "none" { Ok(text.into()) } else { time(text).map(|time: Timestamp| time.to_string()) }
}
