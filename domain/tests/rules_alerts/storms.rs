//! Storms: many notices of a route within a minute become one message.

use carillon_domain::alert::{Fact, Notice, State, Trouble, What, When};
use carillon_domain::run::Status;

use super::{World, at, ended, of_node, record, route, secs};

fn failures(jobs: std::ops::Range<u64>) -> Vec<Fact> {
    jobs.map(|job| ended(record(job, at("02:00"), Status::Failed))).collect()
}

fn counts(notices: &[Notice]) -> Vec<u64> {
    notices.iter().map(|notice| notice.folded).collect()
}

#[test]
fn twenty_in_a_minute_go_by_themselves() {
    let mut world = World::new(vec![route("ops")]);
    for job in 1..=20 {
        assert_eq!(counts(&world.step(at("02:00"), &failures(job..job + 1))), [0]);
    }
    let writes = world.write(at("02:01"), &[]);
    assert!(writes.notices.is_empty() && world.storms.is_empty(), "a minute without a storm ends without a word");
    assert_eq!(counts(&world.step(at("02:01"), &failures(30..50))), [0; 20]);
}

#[test]
fn further_ones_become_one_message_at_the_end_of_the_minute() {
    let mut world = World::new(vec![route("ops")]);
    for job in 1..=50 {
        let told = world.write(at("02:00") + secs(job), &failures(job..job + 1));
        assert_eq!(counts(&told.notices).as_slice(), if job <= 20 { [0].as_slice() } else { &[] });
        assert_eq!(told.next_look, Some(at("02:01:01")), "the end of the minute");
    }
    assert!(world.step(at("02:01"), &[]).is_empty());
    let message = world.step(at("02:01:01"), &[]);
    assert_eq!(counts(&message), [30]);
    assert_eq!((message[0].when, message[0].state, message[0].job.as_ref()), (When::Failed, State::Open, None));
    assert_eq!(
        message[0].sentence,
        "Route ops had 30 further notices within a minute: 30 failed. They are about billing/invoice-21, billing/invoice-22, \
         billing/invoice-23, billing/invoice-24, billing/invoice-25 and more."
    );
}

#[test]
fn a_storm_in_one_moment_is_told_at_once_and_then_once_a_minute() {
    let mut world = World::new(vec![route("ops")]);
    let all = world.step(at("02:00"), &failures(1..501));
    assert_eq!(counts(&all), [500]);
    assert!(
        all[0].sentence.starts_with("Route ops had 500 notices within a minute: 500 failed."),
        "{}",
        all[0].sentence
    );
    assert!(world.step(at("02:00:30"), &failures(501..504)).is_empty());
    let over: Vec<Fact> = (1..3).map(|job| ended(record(job, at("02:00:40"), Status::Succeeded))).collect();
    assert!(world.step(at("02:00:50"), &over).is_empty());
    let more = world.step(at("02:01"), &failures(600..601));
    assert_eq!(counts(&more), [5], "the next minute of a storm folds from its first notice on");
    assert!(more[0].sentence.contains("3 failed, 2 failed that recovered."), "{}", more[0].sentence);
    assert_eq!(counts(&world.step(at("02:02"), &[])), [1]);
    assert!(world.step(at("02:03"), &[]).is_empty());
    assert_eq!(counts(&world.step(at("02:03"), &failures(700..701))), [0], "it is over");
}

#[test]
fn a_storm_lists_parts_of_the_cluster_and_says_whether_there_are_more() {
    let drift = |node: &str| of_node(node, at("02:00"), What::Trouble(Trouble::ClockDrift { drift_ms: 900 }));
    let nodes: Vec<String> = (1..=21).map(|node| format!("n{node}")).collect();
    for (some, names) in [
        (5, "node n1, node n2, node n3, node n4, node n5."),
        (6, "node n1, node n2, node n3, node n4, node n5 and more."),
    ] {
        let mut world = World::new(vec![route("ops")]);
        assert_eq!(world.step(at("02:00"), &failures(1..21)).len(), 20);
        let drifts: Vec<Fact> = nodes.iter().take(some).map(|node| drift(node)).collect();
        assert!(world.step(at("02:00:30"), &drifts).is_empty());
        let message = world.step(at("02:01"), &[]);
        assert!(message[0].sentence.ends_with(&format!("They are about {names}")), "{}", message[0].sentence);
    }
}

#[test]
fn each_route_has_its_own_storm() {
    let quiet = carillon_domain::alert::Route {
        only: carillon_domain::alert::Selection { jobs: vec!["invoice-7".into()], ..Default::default() },
        ..route("quiet")
    };
    let mut world = World::new(vec![route("ops"), quiet]);
    let told = world.step(at("02:00"), &failures(1..101));
    let seen: Vec<_> = told.iter().map(|notice| (notice.route.as_str(), notice.folded)).collect();
    assert_eq!(seen, [("ops", 100), ("quiet", 0)]);
}
