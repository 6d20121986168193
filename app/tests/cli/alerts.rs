//! `carillon alert` through the built binary, against a stand-in for the API.

use super::fake::Fake;
use serde_json::{Value, json};

const ROUTE: &str = r#"{"name": "ops", "when": ["failed"], "to": [{"type": "mail", "to": ["ops@example.org"]}]}"#;

fn put(fake: &Fake, arguments: &[&str], input: &str) -> (i32, String) {
    let output = fake.run(&[&["alert", "put", "-"], arguments].concat(), input);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), said)
}

#[test]
fn a_route_is_put_shown_changed_and_deleted() {
    let fake = Fake::start();
    assert!(fake.out(&["alert", "list"], 0).contains("nobody is told of anything"));
    let (code, said) = put(&fake, &[], ROUTE);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("ops is stored as version 1; try it: carillon alert test ops"), "{said}");
    let list = fake.out(&["alert", "list"], 0);
    assert!(list.contains("ops   failed  everything  mail ops@example.org"), "{list}");
    let shown = fake.out(&["alert", "show", "ops", "--json"], 0);
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["version"], 1);
    assert_eq!(put(&fake, &[], &shown).0, 0);
    let (code, said) = put(&fake, &[], &shown);
    assert_eq!((code, said.as_str()), (4, "error: somebody else was faster\n"), "the file is older than the route");
    assert_eq!(fake.out(&["alert", "show", "opps"], 3), "error: there is no route opps; did you mean ops?\n");
    assert_eq!(fake.out(&["alert", "delete", "ops"], 0), "ops is deleted\n");
    fake.out(&["alert", "show", "ops"], 3);
}

#[test]
fn a_file_that_is_no_route_is_told() {
    let fake = Fake::start();
    for (arguments, input, said) in [
        (&[][..], "{", "is not a route as JSON"),
        (&[], "{}", "the route has no name"),
        (&[], r#"{"name": "a/b"}"#, "a/b"),
        (&["--name", "a b"], "{}", "a b"),
    ] {
        let (code, told) = put(&fake, arguments, input);
        assert!(code == 2 && told.contains(said), "{input}: {told}");
    }
    assert_eq!(fake.take_requests(), Vec::<String>::new());
    assert_eq!(put(&fake, &["--name", "other"], "{}").0, 0);
    assert_eq!(fake.take_requests(), ["PUT /v1/alerts/other"]);
}

#[test]
fn a_test_waits_for_the_answers() {
    let fake = Fake::start();
    put(&fake, &[], ROUTE);
    let told = fake.out(&["alert", "test", "ops"], 0);
    assert!(told.contains("200 OK") && told.contains("sent"), "{told}");
    fake.take_requests();
    fake.out(&["alert", "test", "ops", "--wait", "0"], 0);
    assert_eq!(fake.take_requests(), ["POST /v1/alerts/ops/test"]);
    fake.out(&["alert", "test", "none"], 3);
}

#[test]
fn messages_and_troubles_are_listed() {
    let fake = Fake::start();
    let told = fake.out(&["alert", "deliveries", "--route", "ops", "--state", "sent"], 0);
    assert!(told.contains("7   2026-01-01T00:00:00Z  ops    mail mail  a test  sent   1      200 OK"), "{told}");
    assert_eq!(fake.take_requests(), ["GET /v1/deliveries?route=ops&state=sent&limit=50"]);
    assert!(fake.out(&["alert", "deliveries", "--state", "lost"], 2).contains("waiting"));
    assert!(fake.out(&["alert", "resend", "7"], 0).starts_with("7 is sent again"));
    let open = fake.out(&["alert", "incidents"], 0);
    assert!(open.contains("default/a  not yet  Job a failed."), "{open}");
    let lines = fake.out(&["alert", "incidents", "--json"], 0);
    assert_eq!(serde_json::from_str::<Value>(&lines).unwrap()["job"], json!("a"));
}
