//! The command line.

use std::path::PathBuf;

use carillon_domain::mechanism::Mechanism;
use carillon_tests::databases::Brand;

use crate::scenarios::SCENARIOS;
use crate::size::Size;

const HOW: &str = "[ablate [without=NAME,NAME]] [database=mariadb|mysql] [quick] [only=NAME,NAME] [into=DIRECTORY]";

/// The scenarios to measure.
pub struct Words {
    /// On which database.
    pub brand: Brand,
    quick: bool,
    /// Whether the gain of each mechanism is measured, in place of the scenarios.
    pub ablate: bool,
    /// The mechanisms whose gain is measured; all where this is empty.
    pub without: Vec<Mechanism>,
    only: Vec<String>,
    /// Where figures, plots and the page go, where that is not the repository.
    pub into: Option<PathBuf>,
}

impl Words {
    /// Reads the words; what is wrong with them as a sentence.
    pub fn of(words: &[String]) -> Result<Self, String> {
        let mut this = Self {
            brand: Brand::MariaDb,
            quick: false,
            ablate: false,
            without: Vec::new(),
            only: Vec::new(),
            into: None,
        };
        for word in words {
            match word.split_once('=') {
                None if word == "quick" => this.quick = true,
                None if word == "ablate" => this.ablate = true,
                Some(("without", names)) => this.without = names.split(',').map(mechanism).collect::<Result<_, _>>()?,
                Some(("database", "mariadb")) => this.brand = Brand::MariaDb,
                Some(("database", "mysql")) => this.brand = Brand::MySql,
                Some(("only", names)) => this.only = names.split(',').map(scenario).collect::<Result<_, _>>()?,
                Some(("into", directory)) => this.into = Some(directory.into()),
                _ => return Err(format!("{word:?} is not known: {HOW}")),
            }
        }
        Ok(this)
    }

    /// How much of everything. An ablation runs the same loads many times, so each for a shorter time.
    pub fn size(&self) -> Size {
        match (self.quick, self.ablate) {
            (true, _) => Size::QUICK,
            (false, true) => Size::ABLATION,
            (false, false) => Size::FULL,
        }
    }

    /// Whether the figures take the place of those of an earlier run, all of them or those of some scenarios.
    pub fn is_partial(&self) -> bool {
        !self.only.is_empty()
    }

    /// Whether a scenario was asked for.
    pub fn wants(&self, scenario: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == scenario)
    }
}

fn scenario(name: &str) -> Result<String, String> {
    let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    if names.contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(format!("only={name}: there is no such scenario; there are {}", names.join(", ")))
    }
}

fn mechanism(name: &str) -> Result<Mechanism, String> {
    let names = || Mechanism::ALL.map(Mechanism::name).join(", ");
    Mechanism::from_name(name)
        .ok_or_else(|| format!("without={name}: there is no such mechanism; there are {}", names()))
}
