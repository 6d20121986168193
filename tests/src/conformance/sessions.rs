//! Heartbeats, expiry, sweeps.

use carillon_domain::job::{Job, OnLost, Overlap};
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{FinishAnswer, StartAnswer};
use carillon_domain::run::Status;
use carillon_store::{Me, SessionState};

use super::fixture::{StoreFixture, at, job};

/// A heartbeat reaches only a session that is not ended.
pub async fn heartbeats_are_fenced_after_expiry(bench: &StoreFixture) {
    let other = bench.session(2).await;
    let BeatAnswer::Alive { utc: now, peers, .. } = bench.store.heartbeat(Me::new(other), 1, false).await.unwrap()
    else {
        panic!("fenced");
    };
    assert_eq!((now, peers.len()), (at(0), 2));
    assert!(peers.iter().any(|peer| peer.session == other && peer.seq == 1 && peer.claims));
    let mut claimants = bench.peek().await.claimants;
    claimants.sort_unstable();
    let mut both = vec![bench.me, other];
    both.sort_unstable();
    assert_eq!(claimants, both);
    assert!(bench.store.expire(None, other, 1).await.unwrap());
    assert_eq!(bench.peek().await.claimants, [bench.me], "a look tells at once who is left");
    assert_eq!(bench.store.heartbeat(Me::new(other), 2, false).await.unwrap(), BeatAnswer::Fenced);
    bench.store.sweep(other, 10).await.unwrap();
    assert_eq!(bench.store.heartbeat(Me::new(other), 3, false).await.unwrap(), BeatAnswer::Fenced);
    assert_eq!(bench.store.sessions().await.unwrap().len(), 1);
}

/// A heartbeat that came between saves the session; a stray older one changes nothing.
pub async fn expiry_only_of_the_sequence_seen(bench: &StoreFixture) {
    let other = bench.session(2).await;
    bench.store.heartbeat(Me::new(other), 7, true).await.unwrap();
    bench.store.heartbeat(Me::new(other), 6, false).await.unwrap();
    assert!(!bench.store.expire(None, other, 6).await.unwrap());
    let sessions = bench.store.sessions().await.unwrap();
    let beat = sessions.iter().find(|session| session.beat.id == other).unwrap().beat;
    assert_eq!((beat.seq, beat.state), (7, SessionState::Draining));
    assert!(bench.store.expire(None, other, 7).await.unwrap());
    assert!(bench.store.expire(None, other, 3).await.unwrap(), "it is ended already");
}

/// Never started: claimed again for the same due time, and the dead start nothing.
pub async fn a_swept_preparation_keeps_its_due_time(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let other = bench.session(2).await;
    let claimed = bench.store.claim(&bench.claim_request(other, at(30), 5)).await.unwrap();
    assert!(bench.store.expire(None, other, 0).await.unwrap());
    bench.go_to(10);
    let start = bench.store.start(Me::new(other), &[claimed[0].at]).await.unwrap();
    assert_eq!(start, [StartAnswer::Gone]);
    assert_eq!(bench.store.sweep(other, 10).await.unwrap(), 1);
    assert_eq!(bench.store.sweep(other, 10).await.unwrap(), 0);
    let again = bench.claim_one().await;
    assert_eq!(again.held.firing, claimed[0].held.firing);
    bench.started(&again).await;
}

async fn lost(bench: &StoreFixture, job: Job) {
    let (me, name) = (bench.me, job.name.clone());
    bench.create(job).await;
    let running = bench.run_next().await;
    assert!(bench.store.expire(None, me, 0).await.unwrap());
    bench.session(2).await;
    assert_eq!(bench.store.sweep(me, 10).await.unwrap(), 1);
    assert_eq!(bench.finish(running, Status::Succeeded).await, FinishAnswer::AlreadyGone);
    let records = bench.records(&name).await;
    assert_eq!((records.len(), records[0].status, records[0].id), (1, Status::Lost, running.run));
}

/// `on_lost = skip`.
pub async fn a_swept_run_is_lost(bench: &StoreFixture) {
    lost(bench, job("a")).await;
    let request = bench.claim_request(carillon_domain::id::SessionId::from_random(2), at(40), 5);
    assert_eq!(bench.store.claim(&request).await.unwrap()[0].held.firing.due_at, at(20));
}

/// `on_lost = rerun`.
pub async fn a_lost_run_is_run_again_if_asked(bench: &StoreFixture) {
    lost(bench, Job { on_lost: OnLost::Rerun, ..job("a") }).await;
    let request = bench.claim_request(carillon_domain::id::SessionId::from_random(2), at(40), 5);
    let firing = bench.store.claim(&request).await.unwrap()[0].held.firing;
    assert_eq!((firing.due_at, firing.attempt), (at(10), 2));
}

/// Runs beside are swept like the others.
pub async fn a_swept_run_beside_is_lost(bench: &StoreFixture) {
    lost(bench, Job { overlap: Overlap::Allow, ..job("a") }).await;
    assert!(bench.store.sessions().await.unwrap().iter().all(|session| session.beat.id != bench.me));
}

/// A sweep is only for the dead.
pub async fn a_live_session_is_not_swept(bench: &StoreFixture) {
    bench.create(job("a")).await;
    bench.claim_one().await;
    assert_eq!(bench.store.sweep(bench.me, 10).await.unwrap(), 0);
    assert_eq!(bench.store.list_held(bench.me).await.unwrap().len(), 1);
}

/// Closing leaves no row without its holder: what a session still holds keeps its tombstone until the row is swept.
pub async fn a_session_that_closes_while_it_holds_is_swept(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.store.close_session(bench.me).await.unwrap();
    assert_eq!(bench.store.heartbeat(Me::new(bench.me), 1, false).await.unwrap(), BeatAnswer::Fenced);
    assert!(bench.claim().await.is_empty(), "it claims nothing any more");
    bench.go_to(10);
    assert_eq!(bench.start(&claimed).await, StartAnswer::Gone, "and starts nothing");
    let other = bench.session(2).await;
    let BeatAnswer::Alive { peers, .. } = bench.store.heartbeat(Me::new(other), 1, false).await.unwrap() else {
        panic!("fenced")
    };
    let tombstone = peers.iter().find(|peer| peer.session == bench.me).unwrap();
    assert!(tombstone.ended, "the others see what is to be swept");
    assert_eq!(bench.store.sweep(bench.me, 10).await.unwrap(), 1);
    assert_eq!(bench.store.sessions().await.unwrap().len(), 1);
    let again = bench.store.claim(&bench.claim_request(other, at(10), 5)).await.unwrap();
    assert_eq!(again[0].held.firing, claimed.held.firing);
}

/// The last of several sweeps removes the tombstone, and not before everything is swept.
pub async fn a_tombstone_stays_until_the_last_row_is_swept(bench: &StoreFixture) {
    for name in ["a", "b", "c"] {
        bench.create(job(name)).await;
    }
    bench.create(Job { overlap: Overlap::Allow, ..job("d") }).await;
    bench.go_to(10);
    for claimed in bench.claim().await {
        bench.started(&claimed).await;
    }
    bench.store.close_session(bench.me).await.unwrap();
    for left in [4, 3, 2, 1, 0] {
        let sessions = bench.store.sessions().await.unwrap();
        assert_eq!(sessions.iter().map(|session| session.executing).collect::<Vec<_>>(), [left]);
        bench.store.sweep(bench.me, 1).await.unwrap();
    }
    assert!(bench.store.sessions().await.unwrap().is_empty());
}

/// A session that holds nothing goes at once, and comes back by nothing that is still under way.
pub async fn a_session_that_holds_nothing_is_removed_when_it_closes(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.store.release(bench.me, &[claimed.at]).await.unwrap();
    bench.store.close_session(bench.me).await.unwrap();
    bench.store.close_session(bench.me).await.unwrap();
    assert!(bench.store.sessions().await.unwrap().is_empty());
    assert!(bench.claim().await.is_empty());
    assert_eq!(bench.store.heartbeat(Me::new(bench.me), 1, false).await.unwrap(), BeatAnswer::Fenced);
}
