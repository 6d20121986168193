//! The same steady load without routes of alerts, with one and with a hundred, each of which asks for failures of every job: what
//! being told costs while nothing goes wrong. Then a hundredth of the runs fails.

use serde_json::json;

use crate::found::{Found, Row};
use crate::lab::Lab;
use crate::site::{Setting, Site, Work};

use super::interval::measure;

/// Of so many jobs one fails, where some do.
const ONE_OF: usize = 100;

pub fn run(lab: &Lab, found: &mut Found) {
    for routes in [0, 1, 100] {
        load(lab, found, routes, false);
    }
    for routes in [0, 1] {
        load(lab, found, routes, true);
    }
}

fn load(lab: &Lab, found: &mut Found, routes: usize, failing: bool) {
    let pace = lab.size.paces[1];
    let setting = Setting { limits: (pace.max(5_000) * 2, pace.max(1_000)), ..Setting::default() };
    let site = Site::new(lab, &setting);
    for number in 0..routes {
        // Nobody listens at this port: a message costs its attempt, and no receiver shares the machine.
        let to = json!([{"type": "webhook", "url": "http://127.0.0.1:9/"}]);
        let route = json!({"when": ["failed", "recovered"], "to": to});
        let (status, answer) = site.node().call("PUT", &format!("/v1/alerts/route-{number}"), Some(&route));
        assert_eq!(status, 201, "{answer}");
    }
    let work = |number: usize| if failing && number.is_multiple_of(ONE_OF) { Work::Failing } else { Work::Noop };
    site.spread_of(pace, work);
    let cost = measure(lab, &site);
    let how = format!("{}{}", counted(routes), if failing { ", one run of 100 fails" } else { "" });
    found.cost(&format!("{pace} firings/s, {how}"), &cost);
    let row = Row::new(format!("statements per 1,000 firings, {how}"), cost.statements(), "statements");
    found.row(row.note(format!(
        "{pace} a second; CPU per 1,000: nodes {:.0} ms, database {:.0} ms",
        cost.nodes_cpu_ms(),
        cost.database_cpu_ms()
    )));
}

fn counted(routes: usize) -> String {
    match routes {
        0 => "no routes".to_owned(),
        1 => "1 route".to_owned(),
        many => format!("{many} routes"),
    }
}
