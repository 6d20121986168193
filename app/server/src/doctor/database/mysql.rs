//! A database of a cluster: reachable, with the rights, the version, the settings and the schema that nodes need.

use carillon_domain::duration;
use carillon_store::TimingReport;
use carillon_store::mysql::{Denial, InspectError, Inspection, Options, SchemaState, inspect};

use super::super::finding::{Finding, Level};
use super::{clock, grants};
use carillon_node::config::{Config, MySqlUrl};

/// The oldest versions on which everything is tested: MariaDB's and MySQL's.
const OLDEST: [(u32, u32); 2] = [(10, 11), (8, 4)];

/// Asks the database, and judges its answers.
pub(super) async fn look(url: &MySqlUrl, config: &Config) -> Vec<Finding> {
    let options = Options {
        timing: config.session,
        statement_timeout: config.store.statement_timeout,
        topology: config.store.topology,
        ..Options::default()
    };
    match inspect(url.whole(), &options).await {
        Ok(inspection) => {
            let mut findings = judge(&config.store.url.to_string(), &inspection);
            findings.extend(clock::of_database(inspection.clock, config.session.unwrap_or_default().heartbeat_timeout));
            findings
        }
        Err(error) => vec![unreachable(&error)],
    }
}

fn unreachable(InspectError { error, denial }: &InspectError) -> Finding {
    let sentence = error.to_string();
    let error = |remedy: &str| Finding::error("database", sentence.clone(), remedy);
    match denial {
        Some(Denial::Login) => {
            error("Correct the user or the password in store.url, or set it: ALTER USER ... IDENTIFIED BY ...")
        }
        Some(Denial::Rights) => {
            error("Give the user of store.url its rights as root: GRANT ALL ON <database>.* TO <user>.")
        }
        Some(Denial::NoDatabase) => error("Make the database of store.url as root: CREATE DATABASE <database>."),
        Some(Denial::Plaintext) => error("Write ?ssl-mode=required at the end of store.url."),
        None => {
            let otherwise = "Start the database, and look at host and port in store.url and at firewalls on the way.";
            Finding::of_sentence("database", Level::Error, &sentence, otherwise)
        }
    }
}

fn judge(place: &str, found: &Inspection) -> Vec<Finding> {
    let mut findings = vec![Finding::ok("database", format!("{place} can be reached")), version(&found.version)];
    findings.push(match &found.unfit {
        Some(sentence) => {
            Finding::of_sentence("settings", Level::Error, sentence, "Change that setting of the server.")
        }
        None => Finding::ok("settings", "the server keeps locks and order as nodes need them"),
    });
    findings.extend(durability(&found.weaknesses));
    findings.extend(timing(&found.timing));
    findings.push(isolation(&found.isolation));
    findings.push(rights(&found.grants, &found.database));
    findings.extend(schema(&found.schema));
    findings
}

fn version(text: &str) -> Finding {
    let is_mariadb = text.contains("MariaDB");
    let (brand, oldest) = if is_mariadb { ("MariaDB", OLDEST[0]) } else { ("MySQL", OLDEST[1]) };
    // MariaDB may call itself 5.5.5-10.11.6-MariaDB.
    let plain = text.strip_prefix("5.5.5-").unwrap_or(text);
    let plain = plain.split("-MariaDB").next().unwrap_or(plain);
    let mut numbers = plain.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if number < oldest {
        let says = format!("{brand} {plain} is older than {}.{}, the oldest that is tested", oldest.0, oldest.1);
        return Finding::warning("version", says, format!("Upgrade {brand} to {}.{} or newer.", oldest.0, oldest.1));
    }
    Finding::ok("version", format!("{brand} {plain}"))
}

fn durability(weaknesses: &[String]) -> Vec<Finding> {
    const PART: &str = "durability";
    if weaknesses.is_empty() {
        return vec![Finding::ok(PART, "an acknowledged commit outlives a crash of the server")];
    }
    let finding = |sentence: &String| {
        let setting = sentence.split(' ').next().unwrap_or_default();
        Finding::warning(
            PART,
            sentence.clone(),
            format!("SET GLOBAL {setting} = 1, and {setting} = 1 in the server's my.cnf."),
        )
    };
    weaknesses.iter().map(finding).collect()
}

/// The session timing beside that of the nodes that live and beside the limits of the servers.
fn timing(timing: &Result<TimingReport, String>) -> Vec<Finding> {
    const PART: &str = "session timing";
    match timing {
        Err(sentence) => {
            vec![Finding::of_sentence(PART, Level::Error, sentence, "Give the same [session] to each node.")]
        }
        Ok(report) if report.misfits.is_empty() => {
            let (lease, expire) = (report.chosen.timing.self_kill_after, report.chosen.timing.expire_after);
            let (lease, expire) = (duration::format(lease), duration::format(expire));
            let source = report.chosen.source;
            vec![Finding::ok(PART, format!("the lease is {lease}, others take over after {expire}: {source}"))]
        }
        Ok(report) => {
            let warning = |sentence: &String| {
                Finding::of_sentence(PART, Level::Warning, sentence, "Change that setting of the servers.")
            };
            report.misfits.iter().map(warning).collect()
        }
    }
}

fn isolation(level: &str) -> Finding {
    if level.replace('-', " ").eq_ignore_ascii_case("read committed") {
        return Finding::ok("isolation", "sessions get READ COMMITTED");
    }
    let says = format!("a session that asks for READ COMMITTED gets {level}");
    Finding::error(
        "isolation",
        says,
        "Look for a proxy before the database that drops SET SESSION, and connect without it.",
    )
}

fn rights(lines: &[String], database: &str) -> Finding {
    const PART: &str = "grants";
    let grants::Missing { rights, has_role } = grants::missing(lines, database);
    if rights.is_empty() {
        return Finding::ok(PART, format!("the user has all rights that are needed in {database}"));
    }
    let list = rights.join(", ");
    let remedy = format!("As root: GRANT ALL ON {database}.* TO the user of store.url.");
    match has_role {
        true => Finding::warning(PART, format!("{list} in {database} are granted by a role at the most"), remedy),
        false => Finding::error(PART, format!("the user lacks {list} in {database}"), remedy),
    }
}

fn schema(state: &SchemaState) -> Vec<Finding> {
    const PART: &str = "schema";
    let SchemaState { found, known, oldest_friend, other_engines, missing_locks } = state;
    let mut findings = Vec::new();
    findings.push(match found {
        0 => Finding::ok(PART, "there is none yet: `carillon serve` makes it"),
        found if found < known => {
            Finding::ok(PART, format!("version {found}: `carillon serve` brings it to {known}, and older nodes go on"))
        }
        found if found == known => Finding::ok(PART, format!("version {found}, the newest")),
        found => match oldest_friend {
            Some(oldest) if known >= oldest => Finding::warning(
                PART,
                format!("version {found} is of a newer Carillon; this one knows {known} and works beside it"),
                "Upgrade this node.",
            ),
            _ => Finding::error(
                PART,
                format!("version {found} is of a newer Carillon; this one knows up to {known}"),
                "Use the newer Carillon, or a backup from before the upgrade.",
            ),
        },
    });
    if !other_engines.is_empty() {
        let says = format!("table {} and has no row locks", other_engines.join(", "));
        findings.push(Finding::error(PART, says, "ALTER TABLE <table> ENGINE = InnoDB, for each of them."));
    }
    if !missing_locks.is_empty() {
        let says =
            format!("rows {missing_locks:?} of table lock_row are missing: no node can be kept out of what they guard");
        findings.push(Finding::error(
            PART,
            says,
            "Restore table lock_row from a backup, or insert these rows as the other ones are.",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use carillon_domain::lease::ChosenTiming;
    use carillon_store::mysql::OpenError;

    use super::*;

    #[test]
    fn versions_are_read_from_the_servers_words() {
        for (text, level, shown) in [
            ("10.11.6-MariaDB-0+deb12u1", Level::Ok, "MariaDB 10.11.6"),
            ("11.4.2-MariaDB", Level::Ok, "MariaDB 11.4.2"),
            ("5.5.5-10.11.6-MariaDB", Level::Ok, "MariaDB 10.11.6"),
            ("10.6.12-MariaDB", Level::Warning, "10.11"),
            ("8.4.0", Level::Ok, "MySQL 8.4.0"),
            ("9.7.1-commercial", Level::Ok, "MySQL 9.7.1"),
            ("8.0.36", Level::Warning, "8.4"),
            ("", Level::Warning, "8.4"),
        ] {
            let finding = version(text);
            assert!(finding.level == level && finding.says.contains(shown), "{finding:?}");
        }
    }

    #[test]
    fn settings_name_their_remedy() {
        let found = durability(&["sync_binlog is not 1: a crash may".to_owned()]);
        assert_eq!(found[0].level, Level::Warning);
        assert!(found[0].remedy.as_ref().unwrap().starts_with("SET GLOBAL sync_binlog = 1"), "{found:?}");
        assert_eq!(durability(&[])[0].level, Level::Ok);
        for (level, expected) in
            [("READ-COMMITTED", Level::Ok), ("READ COMMITTED", Level::Ok), ("REPEATABLE-READ", Level::Error)]
        {
            assert_eq!(isolation(level).level, expected);
        }
    }

    #[test]
    fn the_timing_is_judged_beside_other_nodes_and_the_limits_of_servers() {
        let chosen = ChosenTiming::alone(None);
        let report = |misfits: &[&str]| {
            Ok(TimingReport { chosen, misfits: misfits.iter().map(|text| (*text).to_owned()).collect() })
        };
        for (found, level, words) in [
            (report(&[]), Level::Ok, "the lease is 12s, others take over after 20s: the default for one server"),
            (report(&["a group may take 22 s: set x = 0"]), Level::Warning, "22 s"),
            (Err("this node and node n2: give the same".to_owned()), Level::Error, "node n2"),
        ] {
            let findings = timing(&found);
            assert!(findings.len() == 1 && findings[0].level == level, "{findings:?}");
            assert!(findings[0].says.contains(words), "{findings:?}");
        }
    }

    #[test]
    fn a_schema_is_judged_by_its_version_and_its_locks() {
        let state = |found, oldest_friend| SchemaState { found, known: 24, oldest_friend, ..SchemaState::default() };
        let with = |state: SchemaState, engines: &[&str], locks: &[u32]| SchemaState {
            other_engines: engines.iter().map(|text| (*text).to_owned()).collect(),
            missing_locks: locks.to_vec(),
            ..state
        };
        for (state, expected) in [
            (state(0, None), vec![Level::Ok]),
            (state(20, Some(1)), vec![Level::Ok]),
            (state(24, Some(1)), vec![Level::Ok]),
            (state(25, Some(24)), vec![Level::Warning]),
            (state(25, Some(25)), vec![Level::Error]),
            (state(25, None), vec![Level::Error]),
            (with(state(24, Some(1)), &["job is MyISAM"], &[3]), vec![Level::Ok, Level::Error, Level::Error]),
        ] {
            let levels: Vec<Level> = schema(&state).iter().map(|finding| finding.level).collect();
            assert_eq!(levels, expected, "{state:?}");
        }
    }

    #[test]
    fn each_denial_has_its_remedy() {
        for (denial, word) in [
            (Some(Denial::Login), "password"),
            (Some(Denial::Rights), "GRANT ALL"),
            (Some(Denial::NoDatabase), "CREATE DATABASE"),
            (Some(Denial::Plaintext), "ssl-mode=required"),
            (None, "Start the database"),
        ] {
            let error = OpenError::Unreachable { place: "h:1/c".into(), reason: "no".into() };
            let finding = unreachable(&InspectError { error, denial });
            assert!(finding.level == Level::Error && finding.remedy.as_ref().unwrap().contains(word), "{finding:?}");
        }
    }
}
