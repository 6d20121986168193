//! Deliveries: any node sends them, at least once.

use std::collections::BTreeMap;
use std::time::Duration;

use carillon_domain::alert::{Answer, Delivery, DeliveryState, Refused, RefusedReceiver, Route, Target, When};
use carillon_domain::id::SessionId;
use carillon_doubles::author;
use carillon_store::alerts::{
    AlertError, Claimed, DeliveryClaim, DeliveryCounts, DeliveryQuery, DeliveryView, IncidentQuery,
};
use carillon_store::{AuditDocument, AuditQuery, AuditState, AuditedDelivery};

use super::alerts::{notices, put, route};
use super::fixture::{StoreFixture, at};

pub(super) async fn claim(bench: &StoreFixture, session: SessionId, limit: usize) -> Vec<Claimed> {
    let request = DeliveryClaim { session, limit, in_flight: BTreeMap::new(), per_host: 100 };
    bench.store.claim_deliveries(&request).await.unwrap()
}

fn delivered() -> Answer {
    Answer::Delivered { words: "200 OK".into() }
}

fn refused() -> Answer {
    Answer::Refused { words: "404 Not Found".into(), permanent: true }
}

async fn settle(bench: &StoreFixture, session: SessionId, id: u64, answer: Answer) -> bool {
    bench.store.settle_delivery(session, id, &answer, 0).await.unwrap()
}

async fn all(bench: &StoreFixture) -> Vec<DeliveryView> {
    bench.store.deliveries(&DeliveryQuery { limit: 100, ..DeliveryQuery::default() }).await.unwrap().items
}

/// A route and one delivery on it.
async fn one_delivery(bench: &StoreFixture) -> u64 {
    put(bench, &route("ops", &[When::Failed])).await;
    bench.store.test_route("ops", &author()).await.unwrap().remove(0).id
}

/// A delivery is claimed by one node, and its answer is kept.
pub async fn a_delivery_is_sent_by_one_node(bench: &StoreFixture) {
    let id = one_delivery(bench).await;
    let other = bench.session(2).await;
    let (mine, others) = tokio::join!(claim(bench, bench.me, 5), claim(bench, other, 5));
    assert_eq!(mine.len() + others.len(), 1);
    let holder = if others.is_empty() { bench.me } else { other };
    let claimed = mine.into_iter().chain(others).next().unwrap();
    assert_eq!((claimed.id, claimed.delivery.tries, claimed.host.as_str()), (id, 1, "example.org"));
    assert!(matches!(&claimed.target, Some(Target::Webhook { secret: Some(secret), .. }) if secret == "hush"));
    let stranger = if holder == other { bench.me } else { other };
    assert!(!settle(bench, stranger, id, delivered()).await);
    bench.go_to(1);
    assert!(settle(bench, holder, id, delivered()).await);
    assert!(!settle(bench, holder, id, delivered()).await, "it was settled");
    let view = all(bench).await.remove(0);
    assert_eq!(
        (view.delivery.state, view.delivery.answer.as_deref()),
        (DeliveryState::Sent { at: at(1) }, Some("200 OK"))
    );
    assert_eq!(claim(bench, bench.me, 5).await, []);
}

/// A node that dies while it sends is followed by another one after the lease, and its late answer says nothing.
pub async fn a_lease_that_ran_out_is_followed_by_another_node(bench: &StoreFixture) {
    let id = one_delivery(bench).await;
    let other = bench.session(2).await;
    assert_eq!(claim(bench, bench.me, 5).await.len(), 1);
    bench.clock.advance(Delivery::LEASE - Duration::from_millis(1));
    assert_eq!(claim(bench, other, 5).await, []);
    bench.clock.advance(Duration::from_millis(1));
    let again = claim(bench, other, 5).await.remove(0);
    assert_eq!((again.id, again.delivery.tries), (id, 2));
    assert!(!settle(bench, bench.me, id, delivered()).await);
    assert!(settle(bench, other, id, delivered()).await);
}

/// A delivery that is refused is tried again later, and given up in the end; a person sends it again.
pub async fn a_refused_delivery_is_given_up_and_sent_again(bench: &StoreFixture) {
    let id = one_delivery(bench).await;
    let mut tries = 0;
    loop {
        let claimed = claim(bench, bench.me, 5).await;
        assert_eq!(claimed.len(), 1);
        assert_eq!(
            bench.store.resend_delivery(id, &author()).await.unwrap_err(),
            AlertError::Refused(Refused::OnItsWay),
            "it is on its way"
        );
        assert!(settle(bench, bench.me, id, refused()).await);
        tries += 1;
        match all(bench).await[0].delivery.state {
            DeliveryState::Waiting { next_at } => {
                assert_eq!(claim(bench, bench.me, 5).await, [], "not yet");
                bench.clock.set(next_at);
            }
            DeliveryState::Dead { .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tries, Delivery::MOST_REFUSALS);
    assert_eq!(bench.store.delivery_counts().await.unwrap(), DeliveryCounts { dead: 1, ..DeliveryCounts::default() });
    let view = bench.store.resend_delivery(id, &author()).await.unwrap();
    assert_eq!((view.id, view.delivery.tries), (id, 0));
    assert_eq!(claim(bench, bench.me, 5).await[0].delivery.tries, 1);
    assert_eq!(bench.store.resend_delivery(id + 1, &author()).await.unwrap_err(), AlertError::NoDelivery(id + 1));
}

/// The target is that which the route names now. Where it names none any more, the delivery is given up.
pub async fn a_delivery_follows_its_route(bench: &StoreFixture) {
    let mut ops = route("ops", &[When::Failed]);
    ops.to.push(Target::Slack { url: "https://hooks.slack.com/old".into() });
    put(bench, &ops).await;
    bench.store.test_route("ops", &author()).await.unwrap();
    put(bench, &Route { to: vec![Target::Slack { url: "https://hooks.slack.com/new".into() }], ..ops }).await;
    let claimed = claim(bench, bench.me, 5).await;
    let targets: Vec<_> = claimed.iter().map(|claimed| claimed.target.as_ref().unwrap().url().unwrap()).collect();
    assert_eq!(targets, ["https://hooks.slack.com/new"]);
    let dead = DeliveryQuery { state: Some("dead"), limit: 9, ..DeliveryQuery::default() };
    let dead = bench.store.deliveries(&dead).await.unwrap().items;
    assert_eq!(dead.len(), 1);
    assert!(dead[0].delivery.answer.as_ref().unwrap().contains("no target number 2"), "{dead:?}");
}

/// A receiver of a mail who was refused among others is tried again alone; the others do not get it twice.
pub async fn a_receiver_who_was_refused_gets_a_delivery_alone(bench: &StoreFixture) {
    let to = |addresses: &[&str]| vec![Target::Mail { to: addresses.iter().map(ToString::to_string).collect() }];
    let ops = Route { to: to(&["a@x.org", "b@x.org", "c@x.org"]), ..route("ops", &[When::Failed]) };
    put(bench, &ops).await;
    let first = bench.store.test_route("ops", &author()).await.unwrap().remove(0).id;
    let claimed = claim(bench, bench.me, 5).await.remove(0);
    let refused = |to: &str, permanent| RefusedReceiver { to: to.into(), words: format!("550 {to}"), permanent };
    let words = "taken for a@x.org".to_owned();
    let answer = Answer::Partly { words, refused: vec![refused("b@x.org", true), refused("c@x.org", false)] };
    let other = bench.session(2).await;
    assert!(!settle(bench, other, first, answer.clone()).await && all(bench).await.len() == 1);
    assert!(settle(bench, bench.me, claimed.id, answer).await);
    assert_eq!(notices(bench).await.len(), 1, "it is one message");
    let states: Vec<_> = all(bench)
        .await
        .into_iter()
        .map(|view| (view.host, view.delivery.state.as_str(), view.delivery.tries))
        .collect();
    let row = |host: &str, state, tries| (host.to_owned(), state, tries);
    assert_eq!(states, [row("c@x.org", "waiting", 1), row("b@x.org", "waiting", 1), row("mail", "sent", 1)]);

    assert_eq!(claim(bench, bench.me, 5).await, []);
    bench.clock.advance(Delivery::FIRST_WAIT);
    put(bench, &Route { to: to(&["a@x.org", "b@x.org"]), ..ops }).await;
    let again = claim(bench, bench.me, 5).await;
    let targets: Vec<_> = again.iter().map(|claimed| (claimed.target.clone(), claimed.host.as_str())).collect();
    assert_eq!(targets, [(to(&["b@x.org"]).pop(), "mail")], "only those whom the route still mails to");
    assert_eq!(again[0].message, claimed.message);
    let dead = all(bench).await.remove(0).delivery;
    assert!(dead.answer.as_deref().is_some_and(|words| words.contains("mails to c@x.org no more")), "{dead:?}");
    assert!(settle(bench, bench.me, again[0].id, delivered()).await);
    let counts = DeliveryCounts { sent: 2, dead: 1, ..DeliveryCounts::default() };
    assert_eq!(bench.store.delivery_counts().await.unwrap(), counts);
}

/// A host that is full does not hold up the others.
pub async fn a_claim_keeps_to_the_limit_of_each_host(bench: &StoreFixture) {
    put(bench, &route("a", &[When::Failed])).await;
    let slack = vec![Target::Slack { url: "https://hooks.slack.com/x".into() }];
    put(bench, &Route { to: slack, ..route("b", &[When::Failed]) }).await;
    for name in ["a", "a", "a", "b"] {
        bench.store.test_route(name, &author()).await.unwrap();
    }
    let in_flight = BTreeMap::from([("example.org".to_owned(), 1)]);
    let request = DeliveryClaim { session: bench.me, limit: 10, in_flight, per_host: 2 };
    let claimed = bench.store.claim_deliveries(&request).await.unwrap();
    let hosts: Vec<&str> = claimed.iter().map(|claimed| claimed.host.as_str()).collect();
    assert_eq!(hosts, ["example.org", "hooks.slack.com"]);
}

/// Pages go down by id, of a route and in a state.
pub async fn deliveries_page_by_page(bench: &StoreFixture) {
    put(bench, &route("a", &[When::Failed])).await;
    put(bench, &route("b", &[When::Failed])).await;
    for name in ["a", "b", "a", "b", "a"] {
        bench.store.test_route(name, &author()).await.unwrap();
    }
    let claimed = claim(bench, bench.me, 1).await.remove(0);
    settle(bench, bench.me, claimed.id, delivered()).await;
    let mut query = DeliveryQuery { route: Some("a".into()), limit: 2, ..DeliveryQuery::default() };
    let first = bench.store.deliveries(&query).await.unwrap();
    query.after = first.next;
    let second = bench.store.deliveries(&query).await.unwrap();
    let ids: Vec<u64> = first.items.iter().chain(&second.items).map(|view| view.id).collect();
    assert!(ids.len() == 3 && ids.is_sorted_by(|one, other| one > other), "{ids:?}");
    assert_eq!(second.next, None);
    let waiting = DeliveryQuery { state: Some("waiting"), limit: 9, ..DeliveryQuery::default() };
    assert_eq!(bench.store.deliveries(&waiting).await.unwrap().items.len(), 4);
    let counts = DeliveryCounts { waiting: 4, sent: 1, ..DeliveryCounts::default() };
    assert_eq!(bench.store.delivery_counts().await.unwrap(), counts);
}

/// Old deliveries go, but for those on their way and the newest.
pub async fn old_deliveries_are_purged(bench: &StoreFixture) {
    put(bench, &route("ops", &[When::Failed])).await;
    for _ in 0..4 {
        bench.store.test_route("ops", &author()).await.unwrap();
    }
    for claimed in claim(bench, bench.me, 3).await {
        settle(bench, bench.me, claimed.id, delivered()).await;
    }
    assert_eq!(bench.store.purge_alerts(at(0), 10).await.unwrap(), 0);
    let deliveries = |before: usize, after: usize| before - after;
    let before = all(bench).await.len();
    bench.store.purge_alerts(at(1), 2).await.unwrap();
    assert_eq!(deliveries(before, all(bench).await.len()), 2);
    bench.store.purge_alerts(at(1), 10).await.unwrap();
    assert_eq!(all(bench).await.len(), 1, "one still waits");
    let claimed = claim(bench, bench.me, 3).await.remove(0);
    settle(bench, bench.me, claimed.id, delivered()).await;
    bench.store.purge_alerts(at(1), 10).await.unwrap();
    assert_eq!(all(bench).await.len(), 1, "its number is not to be used again");
}

/// Each state is counted as far as a page needs it.
pub async fn counts_are_bounded(bench: &StoreFixture) {
    let hook = |n: usize| Target::Slack { url: format!("https://hooks.slack.com/{n}") };
    let to = (0..Route::MOST_TARGETS).map(hook).collect();
    put(bench, &Route { to, ..route("ops", &[When::Failed]) }).await;
    let most = usize::try_from(DeliveryCounts::MOST).unwrap();
    for n in 1..=most / Route::MOST_TARGETS + 1 {
        bench.store.test_route("ops", &author()).await.unwrap();
        let waiting = (n * Route::MOST_TARGETS).min(most) as u64;
        if n % 50 < 2 {
            let counts = DeliveryCounts { waiting, ..DeliveryCounts::default() };
            assert_eq!(bench.store.delivery_counts().await.unwrap(), counts);
        }
    }
}

/// A notice that tries a route goes to each of its targets, and opens nothing.
pub async fn a_route_is_tried(bench: &StoreFixture) {
    put(bench, &route("ops", &[When::Failed])).await;
    let made = bench.store.test_route("ops", &author()).await.unwrap();
    assert_eq!(made, all(bench).await);
    assert_eq!(bench.store.incidents(&IncidentQuery { limit: 9, ..IncidentQuery::default() }).await.unwrap(), []);
    let none = bench.store.test_route("ghost", &author()).await.unwrap_err();
    assert_eq!(none, AlertError::NoRoute("ghost".into()));
    bench.store.delete_route("ops", None, &author()).await.unwrap();
}

/// Trying a route and sending again are in the audit log, each with its deliveries; what was refused is not.
pub async fn tests_and_repeats_have_entries_in_the_audit_log(bench: &StoreFixture) {
    let id = one_delivery(bench).await;
    let on_its_way = bench.store.resend_delivery(id, &author()).await.unwrap_err();
    assert_eq!(on_its_way, AlertError::Refused(Refused::OnItsWay));
    claim(bench, bench.me, 5).await;
    settle(bench, bench.me, id, delivered()).await;
    bench.store.resend_delivery(id, &author()).await.unwrap();
    let in_state = |state: &str| {
        let (route, kind, state) = (Some("ops".to_owned()), "webhook".to_owned(), state.to_owned());
        Some(AuditState::Known(AuditDocument::Deliveries(vec![AuditedDelivery { id, route, kind, state }])))
    };
    let log = bench.store.audit(&AuditQuery { limit: 9, ..AuditQuery::default() }).await.unwrap().items;
    let told: Vec<_> =
        log.into_iter().take(2).map(|entry| (entry.action, entry.who, entry.before, entry.after)).collect();
    let who = author().name.to_string();
    let expected = [
        ("delivery.resent".to_owned(), who.clone(), in_state("sent"), in_state("waiting")),
        ("alert.tested".to_owned(), who, None, in_state("waiting")),
    ];
    assert_eq!(told, expected);
}
