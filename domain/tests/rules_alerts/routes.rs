//! Which routes can be stored, and whom they are told of.

use std::collections::BTreeMap;

use carillon_domain::alert::{
    Class, DeliveryState, NoticeId, Ping, PingKind, Route, Selection, State, Target, When, watch,
};

use super::{at, route, secs};

#[test]
fn every_value_is_read_back_from_its_name() {
    for when in When::ALL {
        assert_eq!(When::from_name(when.as_str()), Some(when));
    }
    for class in Class::ALL {
        assert_eq!(Class::from_name(class.as_str()), Some(class));
    }
    assert_eq!((When::from_name("nothing"), Class::from_name("")), (None, None));
    assert_eq!(State::ALL.map(State::as_str), ["open", "recovered", "test"]);
    assert_eq!(DeliveryState::NAMES, ["waiting", "sending", "sent", "dead"]);
    let cluster: Vec<&str> = When::ALL.into_iter().filter(|when| when.of_cluster()).map(When::as_str).collect();
    assert_eq!(
        cluster,
        [
            "node_lost",
            "commits_lost",
            "clock_drift",
            "database_away",
            "disk_full",
            "plugin_refused",
            "certificate_expires"
        ]
    );
    let id = NoticeId::derived(&["a", "b"]);
    assert_eq!((id.to_string().len(), id.to_string().parse()), (32, Ok(id)));
    assert_ne!(id, NoticeId::derived(&["ab", ""]));
    assert_eq!(id.to_string(), "873d3fa3bd10e0cc6979e20f27de292a", "receivers drop repeats by it");
    for text in ["0x00", "ab", &"G".repeat(32), &"A".repeat(32)] {
        assert!(text.parse::<NoticeId>().is_err(), "{text}");
    }
}

#[test]
fn a_selection_narrows_by_each_of_its_parts() {
    let labels = BTreeMap::from([("team".to_owned(), "data".to_owned()), ("tier".to_owned(), "1".to_owned())]);
    let covers = |only: Selection| only.covers("billing", "nightly-invoice", &labels);
    let namespaces =
        |some: &[&str]| Selection { namespaces: some.iter().map(|&n| n.into()).collect(), ..Selection::default() };
    let jobs = |some: &[&str]| Selection { jobs: some.iter().map(|&n| n.into()).collect(), ..Selection::default() };
    let labelled = |key: &str, value: &str| Selection {
        labels: BTreeMap::from([(key.into(), value.into())]),
        ..Selection::default()
    };
    assert!(covers(Selection::default()) && Selection::default().is_empty());
    assert!(covers(namespaces(&["other", "billing"])) && !covers(namespaces(&["other"])));
    assert!(covers(labelled("team", "data")) && !covers(labelled("team", "web")) && !covers(labelled("no", "")));
    for pattern in ["nightly-invoice", "*", "nightly-*", "*-invoice", "n*-*e", "*invoice*", "**", "n*i*v*e"] {
        assert!(covers(jobs(&[pattern])), "{pattern}");
    }
    for pattern in
        ["nightly", "invoice", "*-", "nightly-invoice-*", "*x*", "nightly-invoice*nightly-invoice", "n*nightly*e"]
    {
        assert!(!covers(jobs(&[pattern])), "{pattern}");
    }
    assert!(covers(jobs(&["none", "*invoice"])));
    let both = Selection { namespaces: vec!["billing".into()], ..jobs(&["other"]) };
    assert!(!covers(both));
}

#[test]
fn a_fault_of_a_route_names_its_field() {
    assert_eq!(route("ops").check(), Ok(()));
    let hook = |url: &str| vec![Target::Slack { url: url.into() }];
    let mail = |to: &[&str]| vec![Target::Mail { to: to.iter().map(|&to| to.into()).collect() }];
    let command = |command: &str, timeout| vec![Target::Command { command: command.into(), timeout: secs(timeout) }];
    let only = |jobs: &[&str]| Selection { jobs: jobs.iter().map(|&job| job.into()).collect(), ..Selection::default() };
    let ok = || route("ops");
    for (route, sentence) in [
        (Route { name: "a/b".into(), ..ok() }, "name: the route name \"a/b\" holds '/'"),
        (Route { when: [].into(), ..ok() }, "when: it is empty: name at least one kind of fact, such as failed"),
        (Route { when: [When::Recovered].into(), ..ok() }, "when: recovered alone is never told"),
        (Route { after: 0, ..ok() }, "after: it must be a whole number from 1 to 1000, not 0"),
        (Route { repeat: Some(secs(59)), ..ok() }, "repeat: it is out of bounds: allowed are 1m to 30d"),
        (Route { repeat: Some(secs(2_592_001)), ..ok() }, "repeat: it is out of bounds: allowed are 1m to 30d"),
        (Route { to: vec![], ..ok() }, "to: it has 0 targets: 1 to 10 are allowed"),
        (Route { to: vec![ok().to[0].clone(); 11], ..ok() }, "to: it has 11 targets"),
        (
            Route { to: hook("ftp://example.org"), ..ok() },
            "to[0].url: it must be a URL that begins with https:// or http://",
        ),
        (Route { to: hook("https://"), ..ok() }, "to[0].url: it must be a URL"),
        (Route { to: hook("https://a b"), ..ok() }, "to[0].url: it must be a URL"),
        (Route { to: hook("  "), ..ok() }, "to[0].url: it is empty: a URL is expected"),
        (Route { to: mail(&[]), ..ok() }, "to[0].to: it is empty: at least one mail address is expected"),
        (Route { to: mail(&["ops@example.org", "a@b@c"]), ..ok() }, "to[0].to: \"a@b@c\" is not a mail address"),
        (Route { to: mail(&["a@b\r\nBcc: c@d"]), ..ok() }, "to[0].to: \"a@b\\r\\nBcc: c@d\" is not a mail address"),
        (Route { to: command("", 1), ..ok() }, "to[0].command: it is empty: a command is expected"),
        (Route { to: command("true", 301), ..ok() }, "to[0].timeout: it must be longer than 0s and at most 5m"),
        (Route { to: mail(&["a b@c"]), ..ok() }, "to[0].to: \"a b@c\" is not a mail address"),
        (Route { to: mail(&["<a@b>"]), ..ok() }, "to[0].to: \"<a@b>\" is not a mail address"),
        (Route { to: mail(&["a\u{7f}@b"]), ..ok() }, "to[0].to: \"a\\u{7f}@b\" is not a mail address"),
        (Route { to: mail(&["ops"; Target::MOST_RECEIVERS + 1]), ..ok() }, "to[0].to: there are 51 addresses"),
        (Route { to: command(&"a".repeat(4_097), 1), ..ok() }, "to[0].command: the command is 4097 bytes long"),
        (Route { only: only(&["a b"]), ..ok() }, "match.jobs: \"a b\" is no name of jobs"),
        (Route { only: only(&[""]), ..ok() }, "match.jobs: \"\" is no name of jobs"),
        (Route { only: only(&[&"a".repeat(129)]), ..ok() }, "match.jobs: \"aaaa"),
        (Route { only: only(&["a"; Route::MOST_SELECTED + 1]), ..ok() }, "match.jobs: there are 101 of them"),
        (
            Route { only: Selection { namespaces: vec!["".into()], ..Selection::default() }, ..ok() },
            "match.namespaces: the namespace is empty",
        ),
        (
            Route { to: vec![Target::Webhook { url: "https://a".into(), secret: Some(String::new()) }], ..ok() },
            "to[0].secret: it is empty: a key is expected",
        ),
    ] {
        let error = route.check().unwrap_err().to_string();
        assert!(error.starts_with(sentence), "{error}");
    }
    for route in [
        // Cron knows local users.
        Route { to: mail(&["root", "ops@example.org"]), ..ok() },
        Route { repeat: Some(secs(60)), ..ok() },
        Route { repeat: Some(secs(2_592_000)), ..ok() },
        Route { to: mail(&["ops"; Target::MOST_RECEIVERS]), ..ok() },
        Route { to: vec![ok().to[0].clone(); Route::MOST_TARGETS], ..ok() },
        Route { to: command(&"a".repeat(Target::MOST_BYTES), 300), ..ok() },
        Route { only: only(&["Night-ly_a.b*1"; Route::MOST_SELECTED]), ..ok() },
        Route { only: only(&[&"a".repeat(128)]), ..ok() },
    ] {
        assert_eq!(route.check(), Ok(()), "{route:?}");
    }
}

#[test]
fn targets_of_one_host_share_its_limit() {
    let hook = |url: &str| Target::Slack { url: url.into() };
    assert_eq!(hook("https://user:pass@Hooks.example.org:8443/a?b#c").host(), "Hooks.example.org:8443");
    assert_eq!(hook("http://a?b").host(), "a");
    let [mail, command] = [
        Target::Mail { to: vec!["a@b".into()] },
        Target::Command { command: "true".into(), timeout: Target::DEFAULT_TIMEOUT },
    ];
    assert_eq!((mail.host(), command.host()), ("mail", "command"));
    let kinds: Vec<&str> = [
        Target::Webhook { url: String::new(), secret: None },
        hook(""),
        Target::Mattermost { url: String::new() },
        Target::Teams { url: String::new() },
        mail,
        command,
    ]
    .iter()
    .map(Target::kind)
    .collect();
    assert_eq!(kinds, Target::KINDS);
}

#[test]
fn a_route_forgets_its_incidents_when_it_is_told_of_something_else() {
    let old = route("ops");
    assert!(!old.forgets(&Route { repeat: Some(secs(60)), to: vec![], ..old.clone() }));
    assert!(old.forgets(&Route { after: 2, ..old.clone() }));
    assert!(old.forgets(&Route { when: [When::Failed].into(), ..old.clone() }));
    assert!(old.forgets(&Route { only: Selection { jobs: vec!["a".into()], ..Selection::default() }, ..old.clone() }));
}

#[test]
fn a_test_says_that_it_is_one() {
    let test = watch::test(&route("ops"), at("02:00"));
    assert_eq!((test.state, test.route.as_str()), (State::Test, "ops"));
    assert_eq!(test.sentence, "This is a test of route ops, made at 02:00 UTC on 24 November 2026. Nothing is wrong.");
    assert_ne!(test.id, watch::test(&route("ops"), at("02:01")).id);
}

#[test]
fn a_monitor_has_one_address_or_three() {
    let url = "https://hc-ping.com/0f0e";
    let all = Ping::of_url(url);
    let of = |kind| all.url(kind).unwrap().to_owned();
    assert_eq!(PingKind::ALL.map(of), [format!("{url}/start"), url.into(), format!("{url}/fail")]);
    assert_eq!((all.as_url(), all.check()), (Some(url), Ok(())));
    let query = Ping::of_url("https://hc-ping.com/key/slug/?create=1");
    assert_eq!(query.start.as_deref(), Some("https://hc-ping.com/key/slug/start?create=1"));
    assert_eq!(query.as_url(), Some("https://hc-ping.com/key/slug?create=1"));
    let one = Ping { success: Some(url.into()), ..Ping::default() };
    assert_eq!((one.as_url(), one.check()), (None, Ok(())));
    assert_eq!(Ping::default().check().unwrap_err().0, "");
    let bad = Ping { failure: Some("hc-ping.com".into()), ..Ping::default() };
    assert_eq!(bad.check().unwrap_err().0, "failure");
}
