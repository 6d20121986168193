//! The command line.

use std::path::PathBuf;

use carillon_tests::databases::Brand;

use crate::scenarios::SCENARIOS;
use crate::size::Size;

const HOW: &str = "[database=mariadb|mysql] [quick] [only=NAME,NAME] [into=DIRECTORY]";

/// What is to be measured.
pub struct Words {
    /// On which database.
    pub brand: Brand,
    quick: bool,
    only: Vec<String>,
    /// Where figures, plots and the page go, where that is not the repository.
    pub into: Option<PathBuf>,
}

impl Words {
    /// Reads the words; what is wrong with them as a sentence.
    pub fn of(words: &[String]) -> Result<Self, String> {
        let mut this = Self { brand: Brand::MariaDb, quick: false, only: Vec::new(), into: None };
        for word in words {
            match word.split_once('=') {
                None if word == "quick" => this.quick = true,
                Some(("database", "mariadb")) => this.brand = Brand::MariaDb,
                Some(("database", "mysql")) => this.brand = Brand::MySql,
                Some(("only", names)) => this.only = names.split(',').map(scenario).collect::<Result<_, _>>()?,
                Some(("into", directory)) => this.into = Some(directory.into()),
                _ => return Err(format!("{word:?} is not known: {HOW}")),
            }
        }
        Ok(this)
    }

    /// How much of everything.
    pub fn size(&self) -> Size {
        if self.quick { Size::QUICK } else { Size::FULL }
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
