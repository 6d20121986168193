//! The steps of the schemas, written into the binary.
//!
//! `refinery` has a macro for it that finds the files by itself. The macro compiles refinery, with all that it needs, a second time: about
//! six seconds of CPU in a first build. So the files are named here, and a test compares the names with the folders.

use refinery_core::{Migration, Runner};

/// The names and texts of the files in a folder.
macro_rules! steps {
    ($folder:literal, $($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!($folder, "/", $name, ".sql")))),+]
    };
}

const MYSQL: [(&str, &str); 30] = steps!(
    "mysql",
    "V1__meta",
    "V2__lock_rows",
    "V3__jobs",
    "V4__job_states",
    "V5__runs_in_flight",
    "V6__history",
    "V7__outputs",
    "V8__sessions",
    "V9__loss_windows",
    "V10__live_outputs",
    "V11__spent_sessions",
    "V12__audit",
    "V13__run_params",
    "V14__sign_in_links",
    "V15__last_ends",
    "V16__activity",
    "V17__job_days",
    "V18__counts",
    "V19__alert_routes",
    "V20__alert_facts",
    "V21__alert_incidents",
    "V22__alert_deliveries",
    "V23__alert_cursor",
    "V24__alert_watches",
    "V25__usage_of_runs",
    "V26__session_servers",
    "V27__session_terms",
    "V28__sessions_write_back",
    "V29__cancelled_rows",
    "V30__cancelled_concurrent_runs",
);

const SQLITE: [(&str, &str); 9] = steps!(
    "sqlite",
    "V1__jobs_runs_and_sessions",
    "V2__audit",
    "V3__run_params",
    "V4__sign_in_links",
    "V5__reports",
    "V6__numbers_of_history",
    "V7__alerts",
    "V8__usage_of_runs",
    "V9__sessions_write_back",
);

/// The steps of the schema on MySQL and MariaDB, in their order.
pub(crate) fn mysql() -> Runner {
    runner(&MYSQL)
}

/// The steps of the schema on SQLite, in their order.
pub(crate) fn sqlite() -> Runner {
    runner(&SQLITE)
}

/// The version that all steps lead to.
pub(crate) fn newest(steps: &Runner) -> i64 {
    steps.get_migrations().iter().map(|step| i64::from(step.version())).max().unwrap_or(0)
}

fn runner(files: &[(&str, &str)]) -> Runner {
    let step = |(name, text): &(&str, &str)| Migration::unapplied(name, text).expect("a name such as V1__meta");
    Runner::new(&files.iter().map(step).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn named(files: &[(&str, &str)]) -> BTreeSet<String> {
        files.iter().map(|(name, _)| format!("{name}.sql")).collect()
    }

    fn in_folder(folder: &str) -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/migrations").join(folder);
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn every_file_is_a_step() {
        assert_eq!(named(&MYSQL), in_folder("mysql"));
        assert_eq!(named(&SQLITE), in_folder("sqlite"));
    }

    #[test]
    fn steps_are_numbered_without_a_gap() {
        for steps in [mysql(), sqlite()] {
            let versions: Vec<i64> = steps.get_migrations().iter().map(|step| i64::from(step.version())).collect();
            assert_eq!(versions, (1..=newest(&steps)).collect::<Vec<_>>());
        }
    }
}
