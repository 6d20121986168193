//! Readers of a feed: bounds, resets, and how they are cut off.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_domain::time::Timestamp;
use carillon_doubles::memory_store;
use carillon_executors::registry::Executors;
use carillon_store::ManualClock;

use super::super::event::Event;
use super::super::ring::Told;
use super::super::{Feed, Filter, Kind, Kinds, NotSubscribed, Reader};
use crate::engine::{EngineHandle, HandleParts};

fn feed() -> (Feed, HandleParts) {
    let store = memory_store(Arc::new(ManualClock::at(Timestamp::from_ms(1))), 4);
    let (engine, parts) = EngineHandle::new(SessionId::from_random(7), "n1".into(), Executors::new(Duration::ZERO));
    (Feed::new(Arc::new(store), engine), parts)
}

fn everything() -> Filter {
    Filter { namespaces: None, job: None, kinds: Kinds::USUAL }
}

async fn subscribed(feed: &Feed, resume: Option<&str>) -> Reader {
    feed.subscribe(everything(), resume, Box::new(|| true)).await.unwrap_or_else(|error| panic!("{error:?}"))
}

async fn text(reader: &mut Reader) -> String {
    let bytes = tokio::time::timeout(Duration::from_secs(60), reader.next()).await.expect("something is told");
    bytes.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).unwrap_or_default()
}

/// Tells events with long texts, as a look would.
fn tell(feed: &Feed, count: usize, bytes: usize) {
    let mut state = feed.inner.state();
    for _ in 0..count {
        let frame = format!("data: {}\n\n", "x".repeat(bytes)).into();
        state.ring.push(Told::Event(Event { kind: Kind::RunStarted, about: None, at: None, frame }));
    }
    drop(state);
    feed.inner.version.send_modify(|version| *version += 1);
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_told_why_and_another_is_not_cut_off() {
    let (feed, _parts) = feed();
    let (mut slow, mut fast) = (subscribed(&feed, None).await, subscribed(&feed, None).await);
    let first = text(&mut slow).await;
    let id = first.lines().find_map(|line| line.strip_prefix("id: ")).expect("a reader knows its place at once");
    text(&mut fast).await;
    for _ in 0..5 {
        tell(&feed, 8, 1 << 19);
        for _ in 0..8 {
            assert!(text(&mut fast).await.len() > 1 << 19);
        }
    }
    let cut = text(&mut slow).await;
    assert!(cut.starts_with("event: cut\ndata: ") && cut.contains("too slowly"), "{cut}");
    assert_eq!(slow.next().await, None);
    assert_eq!(feed.counts().cut, 1);
    let mut again = subscribed(&feed, Some(id)).await;
    let resumed = text(&mut again).await;
    assert!(resumed.starts_with("retry: ") && !resumed.contains("reset"), "{resumed}");
}

#[tokio::test]
async fn small_events_go_together_up_to_a_bound() {
    let (feed, _parts) = feed();
    let mut reader = subscribed(&feed, None).await;
    text(&mut reader).await;
    tell(&feed, 100, 500);
    let (mut bytes, mut pieces) = (0, 0);
    while bytes < 100 * 508 {
        let piece = text(&mut reader).await;
        assert!(piece.len() < 3 * 1024, "{}", piece.len());
        (bytes, pieces) = (bytes + piece.len(), pieces + 1);
    }
    assert_eq!((bytes, pieces, feed.counts().told), (100 * 508, 20, 100));
}

#[tokio::test]
async fn a_mark_that_cannot_be_used_is_answered_with_a_reset() {
    let (feed, _parts) = feed();
    for (resume, why) in [
        ("nonsense", "not one of this server"),
        ("1-5-0", "lost"),
        ("1-0-5", "lost"),
        ("1-5", "not one of this server"),
        ("", "not one of this server"),
    ] {
        let mut reader = subscribed(&feed, Some(resume)).await;
        let first = text(&mut reader).await;
        assert!(first.contains("event: reset\ndata: {") && first.contains(why), "{resume}: {first}");
        assert!(first.contains("\nid: 1-0-0\n"), "it goes on from here: {first}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_position_leads_to_its_place_until_nobody_has_read_for_a_while() {
    let (feed, _parts) = feed();
    assert_eq!(feed.position(), None, "nobody reads, so nobody looks");
    let mut reader = subscribed(&feed, None).await;
    text(&mut reader).await;
    let position = feed.position().expect("a whole look is done");
    tell(&feed, 1, 10);
    let mut behind = subscribed(&feed, Some(&position.to_string())).await;
    assert_eq!(text(&mut behind).await, "retry: 2000\n\n", "it has not got everything, so it is told no place");
    assert!(text(&mut behind).await.contains("xxx"));
    let mut late = subscribed(&feed, Some(&feed.position().unwrap().to_string())).await;
    let first = text(&mut late).await;
    assert!(first.contains("\nid: 1-0-0\n"), "it lacks nothing: {first}");
    drop((reader, behind, late));
    while feed.position().is_some() {
        tokio::time::advance(Duration::from_millis(250)).await;
        tokio::task::yield_now().await;
    }
    let _again = subscribed(&feed, None).await;
    let (before, after) = (position.place.unwrap(), feed.position().unwrap().place.unwrap());
    assert_ne!(before.epoch, after.epoch, "what happened in between was not looked at");
}

#[tokio::test]
async fn the_end_of_the_server_and_of_a_token_are_told() {
    let (feed, _parts) = feed();
    let mut reader = subscribed(&feed, None).await;
    text(&mut reader).await;
    let mut removed = feed.subscribe(everything(), None, Box::new(|| false)).await.unwrap_or_else(|_| panic!());
    text(&mut removed).await;
    removed.ping_now();
    let cut = text(&mut removed).await;
    assert!(cut.contains("event: cut") && cut.contains("token"), "{cut}");
    assert_eq!(removed.next().await, None);
    reader.ping_now();
    let ping = text(&mut reader).await;
    assert!(ping.starts_with(": ping\nid: 1-0-0\n"), "{ping}");
    feed.end();
    let cut = text(&mut reader).await;
    assert!(cut.contains("event: cut") && cut.contains("the server ends"), "{cut}");
    assert_eq!(reader.next().await, None);
    let late = feed.subscribe(everything(), None, Box::new(|| true)).await;
    assert_eq!(late.err(), Some(NotSubscribed::Ending));
}

#[tokio::test]
async fn a_node_serves_so_many_readers_and_no_more() {
    let (feed, _parts) = feed();
    let mut readers = Vec::new();
    for _ in 0..1_024 {
        let feed = feed.clone();
        readers.push(tokio::spawn(async move { feed.subscribe(everything(), None, Box::new(|| true)).await }));
    }
    let mut admitted = Vec::new();
    for reader in readers {
        admitted.push(reader.await.unwrap().unwrap_or_else(|error| panic!("{error:?}")));
    }
    let looks = feed.counts().looks;
    assert!(looks < 40, "{looks} looks for a thousand readers that came together");
    let refused = feed.subscribe(everything(), None, Box::new(|| true)).await;
    assert_eq!(refused.err(), Some(NotSubscribed::Full(1_024)));
    admitted.pop();
    assert!(feed.subscribe(everything(), None, Box::new(|| true)).await.is_ok());
    assert_eq!(feed.counts().readers, 1_023);
}
