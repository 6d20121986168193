//! The node takes rows that their owners ignore, and no others.

use carillon_domain::node::call::ClaimRequest;
use std::time::Duration;

use carillon_domain::id::JobId;
use carillon_domain::node::call::CallFailure;
use carillon_domain::node::port::{Peek, RowKey, Unclaimed};
use carillon_domain::node::{Config, Input};
use carillon_domain::partition::share_of;
use carillon_domain::time::{BootTime, Timestamp};

use super::driver::{Driver, config, me, other, prepared, utc};

const PARTITIONS: u16 = 16;

/// A node beside another one, and two of the other one's partitions.
fn beside() -> (Driver, [u16; 2]) {
    let mut driver = Driver::new(Config { partitions: PARTITIONS, max_executing: 100, ..config() });
    driver.beat_with_other(0);
    driver.peeked(Ok(Peek::default()));
    driver.take();
    let theirs = share_of(other(), &[me(), other()], PARTITIONS);
    assert_eq!((theirs.len(), driver.node.partitions().len()), (8, 8));
    (driver, [theirs[0], theirs[1]])
}

/// Job `n` of the partition, which came up in second `n`.
fn row(partition: u16, n: u64, version: u64) -> Unclaimed {
    let (row, executor) = (RowKey::Job(JobId(n)), "shell".to_owned());
    Unclaimed { partition, claim_at: utc(n as i64 * 1_000), row, version, executor }
}

/// Looks at second `at`, and finds `unclaimed`; answers the claims that this leads to.
fn look(driver: &mut Driver, at: u64, unclaimed: Vec<Unclaimed>) -> Vec<ClaimRequest> {
    driver.beat_with_other(at * 1_000);
    driver.peeked(Ok(Peek { unclaimed, ..Peek::default() }));
    driver.claims()
}

/// The rows that could have been claimed for five seconds at second `at`.
fn overdue(at: i64) -> Timestamp {
    utc((at - 5 + 30) * 1_000)
}

#[test]
pub fn a_row_that_stands_unclaimed_is_taken_after_steal_after_and_not_before() {
    let (mut driver, [theirs, _]) = beside();
    for second in 10..15 {
        assert_eq!(look(&mut driver, second, vec![row(theirs, 1, 7)]), [], "second {second}");
    }
    let claims = look(&mut driver, 15, vec![row(theirs, 1, 7)]);
    let [claim] = &claims[..] else { panic!("{claims:?}") };
    assert_eq!((&claim.partitions[..], claim.until), (&[theirs][..], overdue(15)));
    assert_eq!((&claim.executors[..], claim.runs.len()), (&["shell".to_owned()][..], 50));
    let taken = prepared(claim.runs[0], 1, 16_000);
    driver.claimed(Ok(vec![taken.clone()]));
    for second in 16..21 {
        assert_eq!(look(&mut driver, second, vec![row(theirs, 1, 7)]), [], "observed anew, second {second}");
    }
    assert_eq!(look(&mut driver, 21, vec![row(theirs, 1, 7)]).len(), 1);
    assert_eq!(driver.starts(), [taken.at]);
}

#[test]
pub fn an_owner_that_makes_progress_is_never_robbed() {
    let (mut driver, [slow, steady]) = beside();
    for second in 10..60 {
        // The one takes a row four seconds after it came up. The other is a step behind with the same job for ever.
        let unclaimed = vec![row(slow, second / 4, 1), row(steady, 1, second / 4)];
        assert_eq!(look(&mut driver, second, unclaimed), [], "second {second}");
    }
}

#[test]
pub fn rows_that_an_owner_is_about_to_claim_do_not_hide_the_one_it_leaves_lying() {
    let (mut driver, [theirs, _]) = beside();
    let not_theirs = Unclaimed { executor: "http".into(), ..row(theirs, 2, 7) };
    let mut claims = Vec::new();
    for second in 10..16 {
        claims = look(&mut driver, second, vec![row(theirs, 1, second), not_theirs.clone(), row(theirs, second, 1)]);
    }
    let told: Vec<_> = claims.iter().map(|claim| (&claim.partitions[..], claim.executors.concat())).collect();
    assert_eq!(told, [(&[theirs][..], "http".to_owned())], "the owner has the shell, and no http");
}

#[test]
pub fn all_partitions_of_a_node_that_is_gone_are_taken_in_one_claim() {
    let (mut driver, [first, second]) = beside();
    let left = || vec![row(first, 3, 1), row(first, 4, 1), row(second, 40, 9)];
    let claims: Vec<_> = (10..16).flat_map(|at| look(&mut driver, at, left())).collect();
    let [claim] = &claims[..] else { panic!("{claims:?}") };
    assert_eq!((&claim.partitions[..], claim.until), (&[first, second][..], overdue(15)));
    // A clock that was set back says that it has not come up yet; it was seen, though.
    let seen = |row: Unclaimed| Unclaimed { claim_at: utc(90_000), ..row };
    driver.claimed(Ok(vec![]));
    let claims: Vec<_> = (20..26).flat_map(|at| look(&mut driver, at, vec![seen(row(first, 3, 2))])).collect();
    assert_eq!(claims.iter().map(|claim| claim.until).collect::<Vec<_>>(), [utc(90_000)]);
}

#[test]
pub fn each_executor_is_taken_by_itself_the_one_that_comes_up_first_in_front() {
    let (mut driver, [first, second]) = beside();
    let http = |row: Unclaimed| Unclaimed { executor: "http".into(), ..row };
    let left = || vec![row(first, 4, 1), row(second, 5, 1), http(row(second, 3, 1))];
    let mut claims = Vec::new();
    for at in 10..17 {
        let sent = look(&mut driver, at, left());
        sent.iter().for_each(|_| driver.claimed(Ok(vec![])));
        claims.extend(sent.into_iter().map(|claim| (at, claim.partitions, claim.executors.concat())));
    }
    assert_eq!(claims, [(15, vec![second], "http".to_owned()), (16, vec![first, second], "shell".to_owned())]);
}

#[test]
pub fn a_full_theft_goes_on_and_a_short_one_is_over() {
    let (mut driver, [theirs, _]) = beside();
    let mut claims: Vec<_> = (10..16).flat_map(|at| look(&mut driver, at, vec![row(theirs, 1, 7)])).collect();
    let first = claims.remove(0);
    let taken = |(n, run): (usize, &_)| prepared(*run, n as u64, 90_000);
    driver.claimed(Ok(first.runs.iter().enumerate().map(taken).collect()));
    let [second] = &driver.claims()[..] else { panic!("there is more to take") };
    assert_eq!(
        (&second.partitions, second.until, &second.executors),
        (&first.partitions, first.until, &first.executors)
    );
    assert_eq!(second.runs.len(), 25, "as it is half full, it takes half as much");
    driver.claimed(Ok(vec![]));
    assert_eq!(driver.claims(), []);
}

#[test]
pub fn only_what_was_still_there_when_the_look_was_sent_counts() {
    let (mut driver, [theirs, _]) = beside();
    assert_eq!(look(&mut driver, 10, vec![row(theirs, 1, 7)]), []);
    driver.tick(11_000);
    driver.beat_with_other(16_000);
    let late = Peek { unclaimed: vec![row(theirs, 1, 7)], ..Peek::default() };
    driver.peeked(Ok(late));
    assert_eq!(driver.claims(), [], "seen for one second; then nobody got an answer, the owner neither");
    driver.peeked(Err(CallFailure::Unknown));
    assert_eq!(look(&mut driver, 17, vec![row(theirs, 1, 7)]).len(), 1);
}

#[test]
pub fn my_own_come_first_and_what_has_become_mine_is_no_theft() {
    let (mut driver, [theirs, _]) = beside();
    for second in 10..15 {
        look(&mut driver, second, vec![row(theirs, 1, 7)]);
    }
    driver.beat_with_other(15_000);
    let due = Peek { earliest_claim_at: Some(utc(0)), unclaimed: vec![row(theirs, 1, 7)], ..Peek::default() };
    driver.peeked(Ok(due));
    let [own] = &driver.claims()[..] else { panic!("one claim at a time") };
    assert_eq!(
        (&own.partitions[..], &own.executors[..]),
        (driver.node.partitions(), &["http".to_owned(), "shell".to_owned()][..])
    );
    driver.claimed(Ok(vec![]));
    let [theft] = &driver.claims()[..] else { panic!("then what others left") };
    assert_eq!(theft.partitions, [theirs]);
    driver.claimed(Err(CallFailure::RolledBack));
    driver.tick(15_999);
    assert_eq!(driver.claims(), [], "it is observed anew, and nothing of mine was wished for");

    let (mut driver, [theirs, _]) = beside();
    for second in 10..15 {
        look(&mut driver, second, vec![row(theirs, 1, 7)]);
    }
    driver.beat();
    assert_eq!(driver.node.partitions().len(), 16, "the other one has left");
    for second in 15..20 {
        driver.now = BootTime::from_ms(second * 1_000);
        driver.beat();
        driver.peeked(Ok(Peek { unclaimed: vec![row(theirs, 1, 7)], ..Peek::default() }));
        assert_eq!(driver.claims(), [], "second {second} {:?}", driver.node);
    }
}

#[test]
pub fn a_look_that_shows_that_the_other_one_left_leads_to_its_share_before_the_next_heartbeat() {
    let (mut driver, [theirs, _]) = beside();
    assert!(!driver.node.partitions().contains(&theirs));
    driver.tick(1_000);
    driver.take();
    driver.peeked(Ok(Peek { claimants: vec![me()], ..Peek::default() }));
    assert_eq!(driver.node.partitions().len(), 16);
    let looks = driver.peeks();
    assert_eq!(
        looks.iter().map(|look| look.partitions.len()).collect::<Vec<_>>(),
        [16],
        "what falls to it now is looked at at once"
    );
}

#[test]
pub fn a_node_that_drains_or_is_full_takes_nothing() {
    let (mut driver, [theirs, _]) = beside();
    driver.feed(Input::Drain);
    driver.take();
    for second in 10..20 {
        driver.beat_with_other(second * 1_000);
        driver.peeked(Ok(Peek { unclaimed: vec![row(theirs, 1, 7)], ..Peek::default() }));
    }
    assert_eq!(driver.claims(), []);

    let full = Config { partitions: PARTITIONS, max_in_flight: 0, ..config() };
    let mut driver = Driver::new(full);
    driver.beat_with_other(0);
    let claims: Vec<_> = (10..30).flat_map(|at| look(&mut driver, at, vec![row(theirs, 1, 7)])).collect();
    assert_eq!(claims, []);
}

#[test]
pub fn steal_after_is_what_is_configured() {
    let steal_after = Duration::from_millis(2_500);
    let mut driver = Driver::new(Config { partitions: PARTITIONS, steal_after, ..config() });
    driver.beat_with_other(0);
    driver.peeked(Ok(Peek::default()));
    let theirs = share_of(other(), &[me(), other()], PARTITIONS)[0];
    let first = (10..20).find(|at| !look(&mut driver, *at, vec![row(theirs, 1, 7)]).is_empty());
    assert_eq!(first, Some(13), "the first look after it");
    assert!(driver.node.next_wake() > BootTime::from_ms(13_000));
}
