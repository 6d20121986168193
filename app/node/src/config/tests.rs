//! Every key, every source, and what is said about faults.

use std::ffi::OsString;

use super::*;

struct Case {
    file: Option<&'static str>,
    environment: Vec<(&'static str, &'static str)>,
    overrides: Overrides,
}

fn load(case: Case) -> Result<Config, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("carillon.toml");
    std::fs::write(&path, case.file.unwrap_or("")).unwrap();
    let environment = case.environment.into_iter().map(|(key, value)| (OsString::from(key), OsString::from(value)));
    Config::load(Some(&path), environment, &case.overrides)
        .map_err(|error| error.to_string().replace(&path.display().to_string(), "carillon.toml"))
}

fn file(text: &'static str) -> Result<Config, String> {
    load(Case { file: Some(text), environment: vec![], overrides: Overrides::default() })
}

fn environment(variables: &[(&'static str, &'static str)]) -> Result<Config, String> {
    load(Case { file: None, environment: variables.to_vec(), overrides: Overrides::default() })
}

#[test]
fn nothing_configured_is_the_specs_table() {
    let config = file("").unwrap();
    assert_eq!(config.store.url, StoreUrl::Sqlite("carillon.db".into()));
    assert_eq!((config.store.statement_timeout, config.store.topology), (secs(5), Topology::Auto));
    assert_eq!(config.node.data_dir, PathBuf::from("."));
    assert!(!config.node.name.is_empty() && config.node.labels.is_empty());
    assert_eq!(config.http.bind.to_string(), "127.0.0.1:7650");
    assert!(config.http.tokens.is_empty() && !config.http.plaintext && config.http.hosts.is_empty());
    assert!(config.http.tls.is_none() && config.http.base_path.is_empty());
    let scheduler = SchedulerConfig {
        horizon: secs(30),
        max_in_flight: 10_000,
        max_executing: 1_000,
        partitions: 16,
        steal_after: secs(5),
    };
    assert_eq!(config.scheduler, scheduler);
    assert_eq!(config.session, None, "it follows the database's servers");
    assert!(config.shell.allow_users.is_empty());
    assert_eq!(
        config.plugins,
        PluginsConfig { dir: "plugins".into(), isolation: Isolation::Process, in_process: Vec::new() }
    );
    assert_eq!(config.history, HistoryConfig { keep: 30 * DAY, max_runs_per_job: 10_000 });
    assert_eq!(config.audit, AuditConfig { keep: 400 * DAY });
    assert_eq!(config.shutdown.timeout, secs(60));
    assert_eq!(config.mail, None);
    assert_eq!(config.alerts, AlertsConfig::default());
}

#[test]
fn every_key_can_be_set_in_the_file() {
    let config = file(
        r#"
        [store]
        url = "sqlite:///var/lib/c.db"
        statement_timeout = "2s"
        topology = "galera-multi-writer"
        [node]
        name = "n1"
        data_dir = "/var/lib"
        labels = { zone = "a" }
        [http]
        bind = "0.0.0.0:80"
        plaintext = true
        hosts = ["carillon.example.org"]
        [[http.tokens]]
        name = "ci"
        sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
        role = "operator"
        namespaces = ["prod"]
        [scheduler]
        horizon = "10s"
        max_in_flight = 5
        max_executing = 4
        partitions = 1
        steal_after = "1s"
        [session]
        heartbeat = "500ms"
        heartbeat_timeout = "400ms"
        self_kill_after = "2s"
        fence_grace = "500ms"
        pause = "1s"
        expire_after = "4s"
        [shell]
        allow_users = ["nobody"]
        [plugins]
        dir = "/p"
        isolation = "in_process"
        in_process = ["a", "b"]
        [history]
        keep = "1d"
        max_runs_per_job = 7
        [audit]
        keep = "2d"
        [mail]
        smtp = "smtps://ops:hush@mail.example.org"
        from = "carillon@example.org"
        plaintext = true
        [alerts]
        private_addresses = false
        plain_http = true
        ca_file = "/ca.pem"
        connect_timeout = "1s"
        timeout = "2s"
        at_once = 3
        [shutdown]
        timeout = "5s"
        "#,
    )
    .unwrap();
    assert_eq!(config.store.url.to_string(), "sqlite:///var/lib/c.db");
    assert_eq!(config.node.labels["zone"], "a");
    let token = &config.http.tokens[0];
    assert_eq!(
        (token.name.as_str(), token.role, token.namespaces.clone()),
        ("ci", Role::Operator, Some(vec!["prod".into()]))
    );
    assert!(!format!("{config:?}").contains("159"), "no digest in Debug");
    assert_eq!(config.session.map(|timing| timing.expire_after), Some(secs(4)));
    let mail = config.mail.clone().unwrap();
    let login = mail.login.clone().unwrap();
    assert_eq!((mail.server.port, mail.plaintext, mail.hello.as_str()), (465, true, "n1"));
    assert_eq!((login.user.as_str(), login.password.as_str()), ("ops", "hush"));
    assert!(!format!("{config:?}").contains("hush"), "no password in Debug");
    let alerts = &config.alerts;
    assert_eq!((alerts.private_addresses, alerts.plain_http, alerts.limits.in_all), (false, true, 3));
    assert_eq!(
        (alerts.connect_timeout, alerts.timeout, alerts.ca_file.clone()),
        (secs(1), secs(2), Some("/ca.pem".into()))
    );
    assert_eq!(config.plugins.isolation, Isolation::InProcess);
    assert_eq!(config.plugins.in_process, ["a", "b"]);
    let mixed = PluginsConfig { isolation: Isolation::Process, ..config.plugins.clone() };
    assert_eq!((mixed.isolation_of("a"), mixed.isolation_of("c")), (Isolation::InProcess, Isolation::Process));
    assert_eq!((config.scheduler.partitions, config.history.max_runs_per_job), (1, 7));
    assert_eq!(config.audit.keep, 2 * DAY);
    assert_eq!(config.shell.allow_users, ["nobody"]);
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let case = |environment: Vec<_>, flag: Option<&str>| {
        let overrides = Overrides { node_name: flag.map(str::to_owned), ..Overrides::default() };
        let file = Some("[node]\nname = \"file\"\nlabels = {a = \"1\"}");
        let config = load(Case { file, environment, overrides }).unwrap();
        assert_eq!(config.node.labels["a"], "1", "other keys of the section stay");
        config.node.name
    };
    assert_eq!(case(vec![], None), "file");
    assert_eq!(case(vec![("CARILLON__NODE__NAME", "env")], None), "env");
    assert_eq!(case(vec![("CARILLON__NODE__NAME", "env")], Some("flag")), "flag");
}

#[test]
fn the_environment_gives_all_types() {
    let config = environment(&[
        ("CARILLON__SCHEDULER__MAX_EXECUTING", "12"),
        ("CARILLON__STORE__TOPOLOGY", "galera-multi-writer"),
        ("CARILLON__NODE__LABELS__ZONE", "b"),
        ("CARILLON__SHELL__ALLOW_USERS", "alice, bob"),
        ("CARILLON__HTTP__HOSTS", "[\"a.example\", \"b.example\"]"),
        (
            "CARILLON__HTTP__TOKENS",
            "[{name = \"x\", role = \"viewer\", sha256 = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"}]",
        ),
        ("CARILLON_TOKEN", "for the client, no concern of ours"),
        ("CARILLON_SERVER", "http://127.0.0.1"),
    ])
    .unwrap();
    assert_eq!(config.scheduler.max_executing, 12);
    assert_eq!(config.store.topology, Topology::GaleraMultiWriter);
    assert_eq!(config.node.labels["zone"], "b");
    assert_eq!(config.shell.allow_users, ["alice", "bob"]);
    assert_eq!(config.http.hosts, ["a.example", "b.example"]);
    assert_eq!(config.http.tokens[0].role, Role::Viewer);
}

#[test]
fn faults_name_the_key_the_value_the_source_and_what_is_allowed() {
    for (text, said) in [
        (
            "[scheduler]\nhorizon = 30",
            vec![
                "scheduler.horizon = 30 (from carillon.toml)",
                "allowed is a duration from 1s to 1h, in quotes and with its unit, such as \"30s\"",
            ],
        ),
        ("[scheduler]\nhorizon = \"0s\"", vec!["scheduler.horizon = \"0s\"", "a duration from 1s to 1h"]),
        ("[scheduler]\nsteal_after = \"0s\"", vec!["scheduler.steal_after = \"0s\"", "a duration from 100ms to 1h"]),
        ("[scheduler]\nhorizon = \"abc\"", vec!["scheduler.horizon = \"abc\"", "is not a duration"]),
        ("[scheduler]\npartitions = \"16\"", vec!["scheduler.partitions = \"16\"", "a whole number from 1 to 1024"]),
        ("[scheduler]\npartitions = 0", vec!["a whole number from 1 to 1024"]),
        ("[scheduler]\nmax_executing = 20000", vec!["more than max_in_flight = 10000"]),
        (
            "[scheduler]\nhorizons = 1",
            vec!["scheduler.horizons (from carillon.toml) is not known", "[scheduler] has: horizon"],
        ),
        ("[sheduler]\nhorizon = 1", vec!["\"sheduler\" (from carillon.toml) is not a section", "scheduler, session"]),
        ("scheduler = 1", vec!["scheduler (from carillon.toml) is a section"]),
        ("[store]\ntopology = 1", vec!["store.topology = 1", "a string"]),
        (
            "[store]\ntopology = \"galera_multi_writer\"",
            vec!["store.topology = \"galera_multi_writer\"", "one of \"auto\"", "\"galera-multi-writer\""],
        ),
        ("[store]\nsingle_writer = true", vec!["single_writer", "topology"]),
        ("[store]\nurl = 5", vec!["store.url (from carillon.toml): it must be a string"]),
        ("[store]\nurl = \"mysql://u:hush@h:3306\"", vec!["names no database"]),
        ("[store]\nurl = \"mysql://u:hush@h:port/c\"", vec!["not one of MySQL's"]),
        ("[store]\nurl = \"postgres://u:hush@h/c\"", vec!["scheme is not known"]),
        ("[store]\nurl = \"memory://\"", vec!["scheme is not known"]),
        ("[store]\nurl = \"sqlite://:memory:\"", vec!["forget every job"]),
        ("[store]\nurl = \"sqlite://\"", vec!["names no file"]),
        ("[plugins]\nisolation = \"none\"", vec!["plugins.isolation = \"none\"", "\"process\" or \"in_process\""]),
        ("[http]\nbind = \"nonsense\"", vec!["http.bind = \"nonsense\"", "such as 127.0.0.1:7650"]),
        ("[http]\nbind = \"0.0.0.0:7650\"", vec!["http.tokens is empty", "http.plaintext = true"]),
        ("[http]\nbind = \"[::]:7650\"\nplaintext = true", vec!["http.tokens is empty"]),
        ("[http]\nhosts = [\"https://c.example\"]", vec!["http.hosts: \"https://c.example\" is not a host name"]),
        ("[http]\nhosts = \"c.example\"", vec!["http.hosts = \"c.example\"", "an array of strings"]),
        ("[http]\nbind = \"[::]:7650\"", vec!["give http.tls a certificate", "http.plaintext = true"]),
        ("[http]\nbind = \"[::]:7650\"\ntls = {cert = \"c\", key = \"k\"}", vec!["http.tokens is empty"]),
        ("[http]\ntls = {cert = \"x\"}", vec!["http.tls: it needs cert and key"]),
        ("[http]\ntls = {}", vec!["http.tls: it needs cert and key"]),
        ("[http]\ntls = \"x\"", vec!["http.tls = \"x\"", "a table of paths: cert, key, client_ca"]),
        ("[http]\ntls = {cert = \"c\", key = 1}", vec!["http.tls = 1", "a table of paths"]),
        ("[http]\ntls = {cert = \"c\", key = \"\"}", vec!["http.tls: key is empty"]),
        ("[http]\ntls = {cert = \"c\", key = \"k\", ca = \"x\"}", vec!["http.tls: \"ca\" is not known"]),
        ("[http]\nplaintext = true\ntls = {cert = \"c\", key = \"k\"}", vec!["http.plaintext: http.tls is given too"]),
        ("[http]\npublic_url = \"cron.example.org\"", vec!["http.public_url = \"cron.example.org\"", "https://"]),
        ("[http]\npublic_url = \"https://a/cron\"", vec!["http.public_url = \"https://a/cron\"", "no path"]),
        ("[http]\nbase_path = \"cron\"", vec!["http.base_path = \"cron\"", "begins with a slash"]),
        ("[http]\nbase_path = \"/cron/\"", vec!["ends without one"]),
        ("[http]\nbase_path = \"/\"", vec!["http.base_path = \"/\""]),
        ("[http]\nbase_path = \"/a/../b\"", vec!["http.base_path = \"/a/../b\""]),
        ("[http]\nbase_path = \"/a b\"", vec!["http.base_path = \"/a b\""]),
        (
            "[http]\ntokens = [{name = \"a\", role = \"viewer\", certificate = \"hush\"}]",
            vec!["entry 1: certificate must be the SHA-256 of a certificate"],
        ),
        ("[http]\ntokens = [{name = \"a\"}]", vec!["entry 1: sha256 is missing"]),
        ("[http]\ntokens = [{name = \"a\", sha256 = \"hush\", role = \"admin\"}]", vec!["64 hexadecimal digits"]),
        ("[http]\ntokens = [1]", vec!["entry 1: it must be a table"]),
        ("[http]\ntokens = \"hush\"", vec!["http.tokens = ...", "an array of tables"]),
        ("[session]\nexpire_after = \"5s\"", vec!["session.expire_after is too short", "5000 ms"]),
        ("[node]\nname = \"\"", vec!["node.name = \"\"", "not empty"]),
        ("[node]\nlabels = {a = 1}", vec!["node.labels = 1", "a table of strings"]),
        ("[a\nb", vec!["carillon.toml is not TOML", "line 1"]),
        ("[store]\nurl = \"mysql://u:hush@h/c", vec!["carillon.toml is not TOML", "line 2"]),
    ] {
        let error = file(text).unwrap_err();
        for part in said {
            assert!(error.contains(part), "{text:?} -> {error:?} lacks {part:?}");
        }
        assert!(!error.contains("hush"), "{error}");
    }
}

const BY_CERTIFICATE: &str = "{name = \"a\", role = \"viewer\", certificate = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"}";

fn with_tokens(http: &str, tokens: &[&str]) -> Result<Config, String> {
    file(Box::leak(format!("[http]\n{http}\ntokens = [{}]", tokens.join(", ")).into_boxed_str()))
}

#[test]
fn a_certificate_as_a_token_needs_an_authority_of_clients() {
    let tls = "tls = {cert = \"c\", key = \"k\", client_ca = \"a\"}";
    let http = with_tokens(tls, &[BY_CERTIFICATE]).unwrap().http;
    let client_ca = Some("a".into());
    assert_eq!(http.tls, Some(TlsConfig { cert: "c".into(), key: "k".into(), client_ca }));
    assert!(http.tokens[0].sha256.is_none() && http.tokens[0].certificate.is_some());
    for without in ["", "tls = {cert = \"c\", key = \"k\"}"] {
        let error = with_tokens(without, &[BY_CERTIFICATE]).unwrap_err();
        assert!(
            error.contains("a has a certificate, and clients are asked for one with http.tls.client_ca"),
            "{error}"
        );
    }
    let other = BY_CERTIFICATE.replace("\"a\"", "\"b\"");
    let error = with_tokens(tls, &[BY_CERTIFICATE, &other]).unwrap_err();
    assert!(error.contains("entry 2: its certificate stands twice"), "{error}");
}

#[test]
fn with_tls_the_server_may_listen_everywhere() {
    let http = with_tokens(
        "bind = \"0.0.0.0:1\"\ntls = {cert = \"c\", key = \"k\"}",
        &[&BY_CERTIFICATE.replace("certificate", "sha256")],
    );
    assert!(!http.unwrap().http.plaintext);
    let config = environment(&[
        ("CARILLON__HTTP__TLS__CERT", "/c.pem"),
        ("CARILLON__HTTP__TLS__KEY", "/k.pem"),
        ("CARILLON__HTTP__BASE_PATH", "/cron/v2"),
        ("CARILLON__HTTP__PUBLIC_URL", "https://cron.example.org"),
    ]);
    let http = config.unwrap().http;
    assert!(http.public_url.is_some_and(|url| url.is_https() && url.name() == "cron.example.org"));
    assert_eq!(http.tls, Some(TlsConfig { cert: "/c.pem".into(), key: "/k.pem".into(), client_ca: None }));
    assert_eq!(http.base_path, "/cron/v2");
}

#[test]
fn faults_in_the_environment_name_the_variable() {
    for (variable, value, said) in [
        ("CARILLON__SCHEDULER__HORIZON", "x", "(from the environment variable CARILLON__SCHEDULER__HORIZON)"),
        (
            "CARILLON__SCHEDULER__HORISON",
            "x",
            "scheduler.horison (from the environment variable CARILLON__SCHEDULER__HORISON)",
        ),
        (
            "CARILLON__NOWHERE__X",
            "1",
            "\"nowhere\" (from the environment variable CARILLON__NOWHERE__X) is not a section",
        ),
        ("CARILLON__STORE", "x", "is a section, not a value"),
        ("CARILLON__", "x", "is not of the form"),
        ("CARILLON__A B__C", "x", "is not of the form"),
        ("CARILLON__HTTP__TOKENS", "[", "an array of tables"),
        ("CARILLON__HTTP__TOKENS", "a,b", "entry 2: it must be a table"),
    ] {
        let error = environment(&[(variable, value)]).unwrap_err();
        assert!(error.contains(said), "{variable} -> {error:?} lacks {said:?}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let error = file("[store]\nx = 1\n[history]\nkeep = 1\n[shutdown]\ntimeout = \"-1s\"").unwrap_err();
    assert_eq!(error.lines().count(), 4, "{error}");
}

#[test]
fn only_the_file_that_was_asked_for_must_exist() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.toml");
    let error = Config::load(Some(&missing), [], &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("missing.toml cannot be read"), "{error}");
    assert!(source::merged(&missing, false, [], &Overrides::default()).is_ok());
    assert!(source::merged(dir.path(), false, [], &Overrides::default()).is_err(), "a directory is no file");
}

#[test]
fn flags_do_not_show_passwords() {
    let overrides = Overrides { store_url: Some("mysql://u:hush@h".into()), ..Overrides::default() };
    assert!(!format!("{overrides:?}").contains("hush"));
    let error = load(Case { file: None, environment: vec![], overrides }).unwrap_err();
    assert!(error.contains("(from the flag --store)") && !error.contains("hush"), "{error}");
}

#[test]
fn a_cluster_database_is_shown_without_user_and_password() {
    let overrides = Overrides { store_url: Some("mysql://u:hush@db:3307/c".into()), ..Overrides::default() };
    let config = load(Case { file: None, environment: vec![], overrides }).unwrap();
    assert_eq!(config.store.url.to_string(), "mysql://db:3307/c");
    assert!(!format!("{config:?}").contains("hush"));
    let StoreUrl::MySql(url) = config.store.url else { panic!("a cluster database") };
    assert_eq!(url.whole(), "mysql://u:hush@db:3307/c");
}

#[test]
fn mail_is_configured_as_a_whole_and_its_password_is_never_told() {
    for (text, said) in [
        ("[mail]\nsmtp = \"smtp://h\"", "mail.from: it is needed beside smtp"),
        ("[mail]\nfrom = \"a@b.org\"", "mail.smtp: it is needed beside from"),
        ("[mail]\nsmtp = \"ftp://u:hush@h\"\nfrom = \"a@b.org\"", "smtp://host:587"),
        ("[mail]\nsmtp = \"smtp://h\"\nfrom = \"nobody\"", "mail.from"),
        (
            "[mail]\nsmtp = \"smtp://u:hush@h\"\nfrom = \"a@b.org\"\nuser = \"v\"",
            "mail.user: smtp names a user already",
        ),
        ("[mail]\nsmtp = \"smtp://h\"\nfrom = \"a@b.org\"\nuser = \"v\"", "user and password_file belong together"),
        (
            "[mail]\nsmtp = \"smtp://h\"\nfrom = \"a@b.org\"\nuser = \"v\"\npassword_file = \"/no/such\"",
            "/no/such cannot be read",
        ),
        ("[mail]\nserver = \"h\"", "[mail] has: smtp, from, user, password_file, plaintext"),
        ("[alerts]\nprivate = true", "alerts.private"),
    ] {
        let told = file(text).unwrap_err();
        assert!(told.contains(said) && !told.contains("hush"), "{text}: {told}");
    }
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("password");
    std::fs::write(&secret, "hush\n").unwrap();
    let text = format!("[mail]\nsmtp = \"smtp://h\"\nfrom = \"a@b.org\"\nuser = \"v\"\npassword_file = {secret:?}");
    let config = file(text.leak()).unwrap();
    assert_eq!(config.mail.unwrap().login.unwrap().password, "hush");
}
