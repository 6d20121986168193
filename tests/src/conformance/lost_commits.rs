//! A database that goes back in time: noticed, recorded, accepted; nothing of it starts twice.

use std::time::Duration;

use carillon_domain::firing::Phase;
use carillon_domain::id::SessionId;
use carillon_domain::job::{Job, OnLost, Overlap};
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::StartAnswer;
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::{Me, RecordedLoss};

use super::fixture::{StoreFixture, at, job, key};

const LOST: &str = "the database went back in time: nobody knows whether it started";

fn acked(session: SessionId, acked: u64) -> Me {
    Me { session, acked }
}

/// One more heartbeat, which must be acknowledged; answers the window that it tells of.
async fn beat(bench: &StoreFixture, me: Me) -> Option<LossWindow> {
    match bench.store.heartbeat(me, me.acked + 1, false).await.unwrap() {
        BeatAnswer::Alive { window, .. } => window,
        other => panic!("{other:?}"),
    }
}

/// The store is kept in second 5 and goes back to it in second `secs`, after a heartbeat was acknowledged.
async fn go_back(bench: &StoreFixture, secs: u64) -> Me {
    let me = acked(bench.me, 1);
    assert_eq!(beat(bench, me).await, None);
    bench.go_to(secs);
    bench.restore().await;
    me
}

async fn windows(bench: &StoreFixture) -> Vec<RecordedLoss> {
    bench.store.recorded_losses().await.unwrap()
}

/// Begins: a first heartbeat in second 5, and a backup.
async fn keep(bench: &StoreFixture) {
    bench.go_to(5);
    assert_eq!(beat(bench, Me::new(bench.me)).await, None);
    bench.back_up().await;
}

/// The session goes on: its sequence is written forward, and the window is there until somebody accepts it.
pub async fn a_sequence_behind_what_was_acknowledged_is_noticed(bench: &StoreFixture) {
    keep(bench).await;
    bench.go_to(8);
    let me = go_back(bench, 12).await;
    let noticed = LossWindow { from_at: at(5), until_at: at(12), noticed_at: at(12) };
    assert_eq!(beat(bench, acked(me.session, 2)).await, Some(noticed));
    bench.go_to(15);
    assert_eq!(beat(bench, acked(me.session, 3)).await, Some(noticed), "noticed once");
    let node = Some("node-1".to_owned());
    assert_eq!(windows(bench).await, [RecordedLoss { window: noticed, session: me.session, node, accepted_at: None }]);
}

/// A claim that finds what was acknowledged gone records that, and claims nothing.
pub async fn a_claim_notices_and_does_nothing_else(bench: &StoreFixture) {
    bench.create(job("a")).await;
    keep(bench).await;
    let me = acked(go_back(bench, 12).await.session, 2);
    let request = bench.claim_request(bench.me, at(40), 5);
    let claimed = bench.store.claim(&carillon_store::ClaimRequest { me, ..request }).await.unwrap();
    assert!(claimed.is_empty());
    assert_eq!(bench.view("a").await.state.phase, Phase::Idle);
    assert_eq!(windows(bench).await[0].window, LossWindow { from_at: at(5), until_at: at(12), noticed_at: at(12) });
    assert!(bench.records("a").await.is_empty());
}

/// So does a start.
pub async fn a_start_notices_and_does_nothing_else(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    keep(bench).await;
    let me = acked(go_back(bench, 12).await.session, 2);
    assert_eq!(bench.store.start(me, &[claimed.at]).await.unwrap(), [StartAnswer::Suspended]);
    assert_eq!(bench.store.list_held(bench.me).await.unwrap(), [claimed.at], "prepared as before");
    assert_eq!(windows(bench).await.len(), 1);
}

/// A session that the database has forgotten is over; one to which nothing was acknowledged knows nothing.
pub async fn a_session_that_was_forgotten_is_over(bench: &StoreFixture) {
    keep(bench).await;
    bench.go_to(8);
    let other = bench.session(2).await;
    assert_eq!(beat(bench, Me::new(other)).await, None);
    bench.go_to(12);
    bench.restore().await;
    assert_eq!(bench.store.heartbeat(Me::new(other), 1, false).await.unwrap(), BeatAnswer::Fenced);
    assert!(windows(bench).await.is_empty());
    assert_eq!(bench.store.heartbeat(acked(other, 1), 2, false).await.unwrap(), BeatAnswer::WentBack);
    let window = LossWindow { from_at: at(5), until_at: at(12), noticed_at: at(12) };
    assert_eq!(windows(bench).await, [RecordedLoss { window, session: other, node: None, accepted_at: None }]);
}

/// A backup that was made while no node lived: what was committed after the last of them had left may be lost.
pub async fn the_last_that_is_known_may_be_the_end_of_a_session(bench: &StoreFixture) {
    let other = bench.session(2).await;
    for (secs, session) in [(4, other), (5, bench.me)] {
        bench.go_to(secs);
        bench.store.close_session(session).await.unwrap();
    }
    bench.back_up().await;
    bench.go_to(8);
    let me = Me::new(bench.session(3).await);
    assert_eq!(beat(bench, me).await, None);
    bench.go_to(12);
    bench.restore().await;
    assert_eq!(bench.store.heartbeat(acked(me.session, 1), 2, false).await.unwrap(), BeatAnswer::WentBack);
    assert_eq!(windows(bench).await[0].window, LossWindow { from_at: at(5), until_at: at(12), noticed_at: at(12) });
}

/// A node that notices later extends the one window.
pub async fn those_who_notice_later_extend_the_window(bench: &StoreFixture) {
    let other = bench.session(2).await;
    assert_eq!(beat(bench, Me::new(other)).await, None);
    keep(bench).await;
    assert_eq!(beat(bench, acked(other, 1)).await, None);
    let me = acked(go_back(bench, 12).await.session, 2);
    beat(bench, me).await;
    bench.go_to(14);
    let both = LossWindow { from_at: at(0), until_at: at(14), noticed_at: at(12) };
    assert_eq!(beat(bench, acked(other, 2)).await, Some(both));
    let [one] = &windows(bench).await[..] else { panic!("one window") };
    assert_eq!((one.window, one.session), (both, bench.me));
}

/// An open window withholds claims and starts of every session; accepted, everything goes on.
pub async fn nobody_claims_or_starts_until_it_is_accepted(bench: &StoreFixture) {
    for name in ["a", "b"] {
        bench.create(Job { schedule: "@every 20s".into(), ..job(name) }).await;
    }
    let other = bench.session(2).await;
    let mut prepared = bench.store.claim(&bench.claim_request(other, at(20), 1)).await.unwrap();
    let prepared = prepared.remove(0);
    keep(bench).await;
    beat(bench, acked(go_back(bench, 12).await.session, 2)).await;
    assert!(beat(bench, Me::new(other)).await.is_some(), "the others are told");
    bench.go_to(20);
    assert!(bench.store.claim(&bench.claim_request(other, at(40), 5)).await.unwrap().is_empty());
    assert_eq!(bench.store.start(Me::new(other), &[prepared.at]).await.unwrap(), [StartAnswer::Suspended]);
    let accepted = bench.store.accept_losses(Duration::ZERO, &author()).await.unwrap();
    assert_eq!(accepted[0].accepted_at, Some(at(20)));
    assert_eq!(windows(bench).await, accepted);
    assert!(bench.store.accept_losses(Duration::ZERO, &author()).await.unwrap().is_empty(), "once");
    assert_eq!(beat(bench, acked(other, 1)).await, None);
    let started = bench.store.start(Me::new(other), &[prepared.at]).await.unwrap();
    assert!(matches!(started[0], StartAnswer::Started { .. }), "it was not due by then: {started:?}");
    assert_eq!(bench.store.claim(&bench.claim_request(other, at(20), 5)).await.unwrap().len(), 1);
    bench.go_to(20 + 24 * 3600 + 1);
    assert!(windows(bench).await.is_empty(), "an old story");
}

/// A firing that started in the lost commits does not start again, unless its job asks for it.
pub async fn what_may_have_started_is_lost_or_started_again_as_asked(bench: &StoreFixture) {
    bench.create(job("skip")).await;
    bench.create(Job { on_lost: OnLost::Rerun, ..job("rerun") }).await;
    bench.create(Job { overlap: Overlap::Allow, schedule: "@yearly".into(), ..job("beside") }).await;
    bench.create(Job { schedule: "@yearly".into(), ..job("manual") }).await;
    let manual = bench.draw();
    bench.store.trigger(&key("manual"), manual, &author()).await.unwrap();
    bench.store.trigger(&key("beside"), bench.draw(), &author()).await.unwrap();
    keep(bench).await;
    bench.go_to(10);
    let claimed = bench.claim().await;
    assert_eq!(claimed.len(), 4);
    for one in &claimed {
        let running = bench.started(one).await;
        bench.finish(running, Status::Succeeded).await;
    }
    beat(bench, acked(go_back(bench, 25).await.session, 2)).await;
    bench.store.accept_losses(Duration::ZERO, &author()).await.unwrap();
    bench.go_to(31);
    let mut due: Vec<_> =
        bench.claim().await.iter().map(|one| (one.job.name.clone(), one.held.firing.due_at)).collect();
    due.sort();
    assert_eq!(due, [("rerun".to_owned(), at(30)), ("skip".to_owned(), at(30))]);
    assert_eq!(bench.story("skip").await, [(10, 20, "lost", LOST.into())]);
    assert_eq!(bench.records("skip").await[0].count, 2);
    assert_eq!(bench.story("rerun").await, [(10, 20, "skipped", "misfire".into())]);
    assert_eq!(bench.story("manual").await, [(0, 0, "lost", LOST.into())]);
    assert_eq!(bench.records("manual").await[0].id, manual);
    assert_eq!(bench.story("beside").await, [(0, 0, "lost", LOST.into())]);
    assert!(bench.claim().await.is_empty());
}

/// A firing that was claimed before the loss was noticed is released, and the next claim records it.
pub async fn what_was_prepared_before_is_not_started_either(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    keep(bench).await;
    let me = acked(go_back(bench, 12).await.session, 3);
    beat(bench, acked(bench.me, 2)).await;
    bench.store.accept_losses(Duration::ZERO, &author()).await.unwrap();
    assert_eq!(bench.store.start(me, &[claimed.at]).await.unwrap(), [StartAnswer::Suspended]);
    bench.store.release(bench.me, &[claimed.at]).await.unwrap();
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(20));
    assert_eq!(bench.story("a").await, [(10, 10, "lost", LOST.into())]);
}

/// Definitions that only the lost commits knew are not remembered, though their number and generation come again.
pub async fn a_definition_of_lost_commits_is_forgotten(bench: &StoreFixture) {
    bench.create(job("a")).await;
    keep(bench).await;
    bench.put(Job { params: r#"{"lost":true}"#.into(), ..job("a") }).await;
    bench.create(job("lost")).await;
    assert_eq!(bench.claim().await.len(), 2);
    beat(bench, acked(go_back(bench, 12).await.session, 2)).await;
    bench.store.accept_losses(Duration::ZERO, &author()).await.unwrap();
    bench.put(Job { params: r#"{"again":true}"#.into(), ..job("a") }).await;
    bench.create(Job { schedule: "@every 11s".into(), ..job("new") }).await;
    let mut claimed: Vec<_> =
        bench.claim().await.iter().map(|one| (one.job.name.clone(), one.job.params.clone())).collect();
    claimed.sort();
    assert_eq!(claimed, [("a".to_owned(), r#"{"again":true}"#.to_owned()), ("new".to_owned(), "{}".to_owned())]);
}

/// A sequence of a silent session may be one that came back: nobody is ended by it until the loss is accepted, unless it is
/// known otherwise that the session is dead.
pub async fn nobody_is_ended_by_a_silence_before_it_is_accepted(bench: &StoreFixture) {
    let (silent, dead) = (bench.session(2).await, bench.session(3).await);
    keep(bench).await;
    let me = acked(go_back(bench, 12).await.session, 2);
    assert!(!bench.store.expire(Some(me), silent, 0).await.unwrap());
    assert_eq!(windows(bench).await.len(), 1, "it notices what was lost");
    let kept = Some(acked(bench.me, 1));
    assert!(!bench.store.expire(kept, silent, 0).await.unwrap(), "nor does anybody to whom nothing was lost");
    assert!(bench.store.expire(None, dead, 0).await.unwrap());
    bench.store.accept_losses(Duration::ZERO, &author()).await.unwrap();
    assert!(bench.store.expire(kept, silent, 0).await.unwrap());
}

/// A session that was swept or has closed is over, and nothing else; a day later nobody remembers it.
pub async fn a_session_that_is_over_is_remembered_for_a_day(bench: &StoreFixture) {
    let (swept, closed) = (bench.session(2).await, bench.session(3).await);
    for session in [swept, closed] {
        assert_eq!(beat(bench, Me::new(session)).await, None);
    }
    assert!(bench.store.expire(None, swept, 1).await.unwrap());
    bench.store.sweep(swept, 10).await.unwrap();
    bench.store.close_session(closed).await.unwrap();
    assert_eq!(bench.store.sessions().await.unwrap().len(), 1);
    let purge = async || bench.store.purge(at(0), 1_000, 1_000).await.unwrap();
    for secs in [1, 24 * 3600] {
        bench.go_to(secs);
        purge().await;
        for session in [swept, closed] {
            assert_eq!(bench.store.heartbeat(acked(session, 1), 2, false).await.unwrap(), BeatAnswer::Fenced);
        }
        let request = bench.claim_request(swept, at(secs) + Duration::from_secs(30), 5);
        let me = acked(swept, 1);
        assert!(bench.store.claim(&carillon_store::ClaimRequest { me, ..request }).await.unwrap().is_empty());
        assert!(windows(bench).await.is_empty());
    }
    let behind = bench.store.heartbeat(acked(closed, 2), 3, false).await.unwrap();
    assert_eq!(behind, BeatAnswer::WentBack, "its last sequence is remembered too");
    bench.go_to(24 * 3600 + 1);
    purge().await;
    assert_eq!(bench.store.heartbeat(acked(swept, 1), 2, false).await.unwrap(), BeatAnswer::WentBack);
}
