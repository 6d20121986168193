//! A plan as it stands in `jobs.json`.

use serde_json::{Value, json};

use super::{Act, Deed, Job, Overlap, Plan, Schedule};

const OVERLAPS: [(&str, Overlap); 4] =
    [("skip", Overlap::Skip), ("delay", Overlap::Delay), ("replace", Overlap::Replace), ("allow", Overlap::Allow)];
const DEEDS: [(&str, Deed); 6] = [
    ("pause", Deed::Pause),
    ("resume", Deed::Resume),
    ("update", Deed::Update),
    ("trigger", Deed::Trigger),
    ("cancel", Deed::Cancel),
    ("delete", Deed::Delete),
];

impl Plan {
    /// From `{"jobs": [...], "acts": [...]}`, as [`Plan::to_json`] writes it.
    ///
    /// # Errors
    /// The fault and its place.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        let list = |name: &str| value[name].as_array().ok_or(format!("there is no list {name:?}"));
        let jobs = list("jobs")?.iter().map(|job| read_job(job).ok_or(format!("this is no job: {job}")));
        let acts = list("acts")?.iter().map(|act| read_act(act).ok_or(format!("this is no act: {act}")));
        Ok(Self { jobs: jobs.collect::<Result<_, _>>()?, acts: acts.collect::<Result<_, _>>()? })
    }

    /// As [`Plan::from_json`] reads it.
    pub fn to_json(&self) -> Value {
        let jobs: Vec<Value> = self.jobs.iter().map(write_job).collect();
        let acts: Vec<Value> = self.acts.iter().map(write_act).collect();
        json!({"jobs": jobs, "acts": acts})
    }
}

fn times(value: &Value) -> Option<Vec<i64>> {
    value.as_array()?.iter().map(Value::as_i64).collect()
}

fn named<T: Copy>(all: &[(&str, T)], value: &Value) -> Option<T> {
    all.iter().find(|(name, _)| value == name).map(|(_, one)| *one)
}

fn name_of<'a, T: PartialEq>(all: &[(&'a str, T)], value: &T) -> &'a str {
    all.iter().find(|(_, one)| one == value).map_or("", |(name, _)| name)
}

fn read_job(value: &Value) -> Option<Job> {
    let schedule = match times(&value["at_us"]) {
        Some(at) => Schedule::At(at),
        None => Schedule::Every {
            anchor_us: value["anchor_us"].as_i64()?,
            period_us: value["period_us"].as_i64().filter(|period| *period > 0)?,
            phases_us: times(&value["phases_us"])?,
        },
    };
    Some(Job {
        name: value["name"].as_str()?.to_owned(),
        schedule,
        from_us: value["from_us"].as_i64()?,
        until_us: value["until_us"].as_i64()?,
        overlap: named(&OVERLAPS, &value["overlap"])?,
        max_attempts: value["max_attempts"].as_u64()?,
        rerun: value["rerun"].as_bool()?,
    })
}

fn write_job(job: &Job) -> Value {
    let mut value = match &job.schedule {
        Schedule::At(at) => json!({"at_us": at}),
        Schedule::Every { anchor_us, period_us, phases_us } => {
            json!({"anchor_us": anchor_us, "period_us": period_us, "phases_us": phases_us})
        }
    };
    value["name"] = json!(job.name);
    value["from_us"] = json!(job.from_us);
    value["until_us"] = json!(job.until_us);
    value["overlap"] = json!(name_of(&OVERLAPS, &job.overlap));
    value["max_attempts"] = json!(job.max_attempts);
    value["rerun"] = json!(job.rerun);
    value
}

fn read_act(value: &Value) -> Option<Act> {
    Some(Act {
        job: value["job"].as_str()?.to_owned(),
        deed: named(&DEEDS, &value["deed"])?,
        run: value["run"].as_str().map(str::to_owned),
        asked_us: value["asked_us"].as_i64()?,
        answered_us: value["answered_us"].as_i64(),
        status: value["status"].as_u64()?,
    })
}

fn write_act(act: &Act) -> Value {
    json!({"job": act.job, "deed": name_of(&DEEDS, &act.deed), "run": act.run, "asked_us": act.asked_us,
           "answered_us": act.answered_us, "status": act.status})
}
