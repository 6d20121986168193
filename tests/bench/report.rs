//! The findings of a run, kept as JSON; the page and the plots are made from that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use carillon_tests::report::said;
use serde_json::{Map, Value, json};

use crate::found::Found;
use crate::lab::Lab;
use crate::machine::{memory_mib, processor};
use crate::scenarios::{SCENARIOS, Scenario};
use crate::words::Words;
use crate::{page, plot, tables};

/// The figures of one database.
pub struct Report {
    judged: bool,
    place: Place,
    file: PathBuf,
    figures: Value,
}

/// Where the figures go.
enum Place {
    /// The repository: figures and plots among the reports, the page at its root.
    Repository,
    /// One directory for all.
    Directory(PathBuf),
    /// A directory that goes with this.
    Nowhere(tempfile::TempDir),
}

impl Place {
    fn of(words: &Words) -> Self {
        match &words.into {
            Some(directory) => Self::Directory(directory.clone()),
            None if words.size().judged => Self::Repository,
            None => Self::Nowhere(tempfile::tempdir().expect("a directory")),
        }
    }

    fn reports(&self) -> PathBuf {
        match self {
            Self::Repository => Path::new(env!("CARGO_MANIFEST_DIR")).join("reports"),
            Self::Directory(directory) => directory.clone(),
            Self::Nowhere(directory) => directory.path().to_owned(),
        }
    }

    fn page(&self) -> PathBuf {
        match self {
            Self::Repository => Path::new(env!("CARGO_MANIFEST_DIR")).join("../BENCHMARKS.md"),
            other => other.reports().join("BENCHMARKS.md"),
        }
    }
}

impl Report {
    /// The report of a run; one of some scenarios only begins with what is kept of the others.
    pub fn new(lab: &Lab, words: &Words) -> Self {
        let place = Place::of(words);
        let file = place.reports().join(format!("bench-{}.json", words.brand.name().to_lowercase()));
        let kept = fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let mut scenarios = kept.filter(|_| words.is_partial()).map_or(json!({}), |mut kept| kept["scenarios"].take());
        if let Some(scenarios) = scenarios.as_object_mut() {
            scenarios.retain(|name, _| SCENARIOS.iter().any(|scenario| scenario.name == name));
        }
        let figures = json!({"database": words.brand.name(), "settings": settings(lab), "scenarios": scenarios});
        Self { judged: words.size().judged, place, file, figures }
    }

    /// The findings of a scenario.
    pub fn add(&mut self, scenario: &Scenario, found: &Found) {
        let mut entry = found.json(self.judged);
        entry["about"] = scenario.about.into();
        entry["commit"] = said("git", &["rev-parse", "--short=12", "HEAD"]).into();
        entry["date"] = said("date", &["-u", "+%Y-%m-%d"]).into();
        self.figures["scenarios"][scenario.name] = entry;
    }

    /// For the terminal: what this run and kept ones found.
    pub fn text(&self) -> String {
        tables::plain(&self.figures)
    }

    /// Whether something could not be measured.
    pub fn has_failures(&self) -> bool {
        let scenarios = self.figures["scenarios"].as_object();
        scenarios.is_some_and(|all| all.values().any(|scenario| !scenario["failed"].is_null()))
    }

    /// Keeps it, and makes page and plots anew.
    pub fn keep(&self) -> io::Result<()> {
        let reports = self.place.reports();
        fs::create_dir_all(&reports)?;
        fs::write(&self.file, format!("{:#}\n", self.figures))?;
        let beside = if matches!(self.place, Place::Repository) { "tests/reports/" } else { "" };
        let name = self.figures["database"].as_str().unwrap_or_default().to_lowercase();
        plot::all(&self.figures, &reports, &name)?;
        fs::write(self.place.page(), page::of(&reports, beside)?)
    }
}

/// The settings that the figures depend on.
fn settings(lab: &Lab) -> Value {
    let mut settings = Map::new();
    for (name, value) in lab.variables() {
        settings.insert(name, value.into());
    }
    settings.insert("compiler".into(), said("rustc", &["--version"]).into());
    settings.insert("build".into(), if cfg!(debug_assertions) { "debug" } else { "release" }.into());
    settings.insert("kernel".into(), said("uname", &["-r"]).into());
    settings.insert("processor".into(), processor().into());
    settings.insert("cores".into(), std::thread::available_parallelism().map_or(0, usize::from).into());
    settings.insert("memory MiB".into(), memory_mib().into());
    settings.insert("encryption between nodes and database".into(), "none, as on one machine".into());
    Value::Object(settings)
}
