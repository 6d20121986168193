//! The way of a notice to one target.

use std::collections::BTreeMap;

use carillon_domain::alert::{Answer, Candidate, Delivery, DeliveryState, Refused, RefusedReceiver, choose};
use carillon_domain::id::SessionId;
use carillon_domain::time::Timestamp;
use proptest::prelude::*;

use super::{at, secs};

fn session(number: u64) -> SessionId {
    SessionId::from_random(number)
}

fn words(words: &str) -> String {
    words.into()
}

fn refused(permanent: bool) -> Answer {
    Answer::Refused { words: words("503 Service Unavailable"), permanent }
}

/// One attempt at the first moment at which it may be sent.
fn attempt(delivery: &Delivery, answer: Answer, jitter: u32) -> Delivery {
    let now = delivery.claim_at().unwrap();
    delivery.claim(session(1), now).unwrap().answered(session(1), answer, now, jitter).unwrap()
}

#[test]
fn a_delivery_is_sent_under_a_lease() {
    let new = Delivery::new(at("02:00"));
    assert_eq!(new.claim(session(1), at("01:59")), Err(Refused::NotNow));
    let sending = new.claim(session(1), at("02:00")).unwrap();
    assert_eq!((sending.tries, sending.first_try_at), (1, Some(at("02:00"))));
    assert_eq!(sending.claim(session(2), at("02:05")), Err(Refused::NotNow), "the lease lives");
    let until = at("02:00") + Delivery::LEASE;
    let taken = sending.claim(session(2), until).unwrap();
    assert_eq!((taken.tries, taken.first_try_at), (2, Some(at("02:00"))));
    let done = Answer::Delivered { words: words("200 OK") };
    assert_eq!(
        taken.answered(session(1), done.clone(), until, 0),
        Err(Refused::NotHeld),
        "an answer that comes too late"
    );
    let sent = taken.answered(session(2), done.clone(), until, 0).unwrap();
    assert_eq!((sent.state, sent.answer.as_deref()), (DeliveryState::Sent { at: until }, Some("200 OK")));
    assert_eq!(sent.claim(session(1), at("23:00")), Err(Refused::NotNow));
    assert_eq!(sent.answered(session(2), done, until, 0), Err(Refused::NotHeld));
}

#[test]
fn a_receiver_who_was_refused_among_others_goes_on_alone() {
    let now = at("02:00");
    let of = |permanent| RefusedReceiver { to: words("b@x.org"), words: words("550 no such\nuser"), permanent };
    let sending = Delivery::new(now).claim(session(1), now).unwrap();
    let answer = Answer::Partly { words: words("a@x.org took it"), refused: vec![of(true)] };
    let others = sending.answered(session(1), answer, now, 0).unwrap();
    assert_eq!(others.state, DeliveryState::Sent { at: now });
    for permanent in [true, false] {
        let mut alone = Delivery::of_refused(&of(permanent), now, 0);
        assert_eq!(
            (alone.claim_at(), alone.tries, alone.answer.as_deref()),
            (Some(now + secs(10)), 1, Some("550 no such\\nuser"))
        );
        let mut attempts = 1;
        while alone.claim_at().is_some() {
            alone = attempt(&alone, refused(permanent), 0);
            attempts += 1;
        }
        assert_eq!(attempts, if permanent { Delivery::MOST_REFUSALS } else { alone.tries }, "it ends as any other");
        assert!(matches!(alone.state, DeliveryState::Dead { .. }) && attempts >= 5);
    }
}

#[test]
fn waits_double_from_ten_seconds_to_an_hour_and_end_after_a_day() {
    let mut delivery = Delivery::new(at("02:00"));
    let mut waits = Vec::new();
    while let Some(now) = delivery.claim_at() {
        delivery = attempt(&delivery, refused(false), 0);
        waits.extend(delivery.claim_at().map(|next| next.since(now).as_secs()));
    }
    assert_eq!(waits[..10], [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]);
    assert!(waits[10..].iter().all(|wait| *wait == 3_600));
    let DeliveryState::Dead { at: died } = delivery.state else { panic!("{delivery:?}") };
    let lived = died.since(at("02:00"));
    assert!(secs(23 * 3_600) < lived && lived <= Delivery::GIVE_UP_AFTER, "{lived:?}");
}

#[test]
fn the_last_attempt_is_a_day_after_the_first() {
    let sending = Delivery::new(at("02:00")).claim(session(1), at("02:00")).unwrap();
    for (more, state) in [(0, "waiting"), (1, "dead")] {
        let now = at("02:00") + Delivery::GIVE_UP_AFTER - secs(10) + secs(more);
        assert_eq!(sending.answered(session(1), refused(false), now, 0).unwrap().state.as_str(), state, "{more}");
    }
}

#[test]
fn jitter_shortens_a_wait_by_up_to_a_quarter() {
    let wait =
        |jitter| attempt(&Delivery::new(at("02:00")), refused(false), jitter).claim_at().unwrap().since(at("02:00"));
    let [none, half, most, beyond] = [0, 500, 1_000, 9_999].map(wait);
    assert_eq!((none.as_millis(), half.as_millis(), most.as_millis()), (10_000, 8_750, 7_500));
    assert_eq!(beyond, most);
}

#[test]
fn a_permanent_refusal_is_tried_five_times() {
    let mut delivery = Delivery::new(at("02:00"));
    for _ in 0..4 {
        delivery = attempt(&delivery, refused(true), 0);
        assert_eq!(delivery.state.as_str(), "waiting");
    }
    delivery = attempt(&delivery, Answer::Unknown { words: words("timed out") }, 0);
    assert_eq!(delivery.state.as_str(), "waiting", "no answer is no refusal");
    delivery = attempt(&delivery, refused(true), 0);
    assert_eq!((delivery.state.as_str(), delivery.tries), ("dead", 6));
}

#[test]
fn a_person_sends_again_what_is_done_or_dead() {
    let new = Delivery::new(at("02:00"));
    assert_eq!(new.resend(at("03:00")), Err(Refused::OnItsWay));
    let sending = new.claim(session(1), at("02:00")).unwrap();
    assert_eq!(sending.resend(at("03:00")), Err(Refused::OnItsWay));
    let sent = attempt(&new, Answer::Delivered { words: words("ok\n and more") }, 0);
    assert_eq!(sent.answer.as_deref(), Some("ok\\n and more"), "an answer is kept on one line");
    let again = sent.resend(at("03:00")).unwrap();
    assert_eq!((again.claim_at(), again.tries, again.first_try_at), (Some(at("03:00")), 0, None));
    assert_eq!(again.answer, sent.answer, "the last answer is kept until there is another");
    let long = attempt(&again, Answer::Refused { words: "\u{fc}".repeat(400), permanent: true }, 0);
    assert_eq!(long.answer.map(|answer| answer.len()), Some(Delivery::MOST_ANSWER));
}

#[test]
fn one_slow_host_does_not_hold_up_the_others() {
    let candidates = |hosts: &[&str]| {
        let numbered = hosts.iter().enumerate();
        numbered.map(|(key, host)| Candidate { key, host: (*host).to_owned() }).collect::<Vec<_>>()
    };
    let busy = BTreeMap::from([("slow".to_owned(), 2)]);
    let hosts = ["slow", "fast", "slow", "fast", "fast", "other"];
    assert_eq!(choose(candidates(&hosts), &busy, 2, 10), [1, 3, 5]);
    assert_eq!(choose(candidates(&hosts), &BTreeMap::new(), 2, 10), [0, 1, 2, 3, 5]);
    assert_eq!(choose(candidates(&hosts), &BTreeMap::new(), 2, 3), [0, 1, 2]);
}

#[derive(Debug, Clone)]
enum Op {
    Claim(u64),
    Answer(u64, u8, u32),
    Resend,
}

fn ops() -> impl Strategy<Value = Vec<(u64, Op)>> {
    let op = prop_oneof![
        4 => (0u64..3).prop_map(Op::Claim),
        4 => (0u64..3, 0u8..4, 0u32..2_000).prop_map(|(session, answer, jitter)| Op::Answer(session, answer, jitter)),
        1 => Just(Op::Resend),
    ];
    let wait = prop_oneof![3 => 0u64..30, 2 => 0u64..4_000, 1 => 80_000u64..100_000];
    prop::collection::vec((wait, op), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    #[test]
    fn only_legal_moves_happen(ops in ops()) {
        let mut now: Timestamp = at("00:00");
        let mut delivery = Delivery::new(now);
        for (wait, op) in ops {
            now = now + secs(wait);
            let before = delivery.clone();
            let next = match &op {
                Op::Claim(by) => before.claim(session(*by), now),
                Op::Answer(by, answer, jitter) => {
                    let answer = match answer {
                        0 => Answer::Delivered { words: words("ok") },
                        1 => Answer::Unknown { words: words("timed out") },
                        kind => refused(*kind == 2),
                    };
                    before.answered(session(*by), answer, now, *jitter)
                }
                Op::Resend => before.resend(now),
            };
            let Ok(next) = next else { continue };
            match (&before.state, &next.state, &op) {
                (DeliveryState::Waiting { next_at }, DeliveryState::Sending { .. }, Op::Claim(_)) => {
                    prop_assert!(*next_at <= now);
                }
                (DeliveryState::Sending { until, .. }, DeliveryState::Sending { .. }, Op::Claim(_)) => {
                    prop_assert!(*until <= now, "two nodes never send under one lease");
                }
                (DeliveryState::Sending { session: holder, .. }, after, Op::Answer(by, answer, _)) => {
                    prop_assert_eq!(*holder, session(*by));
                    let first = next.first_try_at.unwrap();
                    match after {
                        DeliveryState::Sent { at } => prop_assert!(*answer == 0 && *at == now),
                        DeliveryState::Waiting { next_at } => {
                            prop_assert!(*answer != 0 && next.refusals < Delivery::MOST_REFUSALS);
                            prop_assert!(*next_at > now && next_at.since(now) <= Delivery::LONGEST_WAIT);
                            prop_assert!(next_at.since(first) <= Delivery::GIVE_UP_AFTER, "a day at the most");
                        }
                        DeliveryState::Dead { .. } => {
                            let late = (now + Delivery::LONGEST_WAIT).since(first) > Delivery::GIVE_UP_AFTER;
                            prop_assert!(*answer != 0 && (late || next.refusals == Delivery::MOST_REFUSALS));
                        }
                        DeliveryState::Sending { .. } => prop_assert!(false, "an answer ends an attempt"),
                    }
                }
                (DeliveryState::Sent { .. } | DeliveryState::Dead { .. }, DeliveryState::Waiting { .. }, Op::Resend) => {}
                moved => prop_assert!(false, "{moved:?}"),
            }
            delivery = next;
        }
    }
}
