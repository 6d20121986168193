//! Deliveries: rows as the domain knows them, claims, answers, and what people see of them.

use std::collections::BTreeMap;

use carillon_domain::alert::{
    Answer, Candidate, Delivery, DeliveryState, Notice, PingCall, RefusedReceiver, Route, Target, choose, watch,
};
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::store::{Action, AuditDocument, AuditedDelivery};
use carillon_domain::time::Timestamp;

use super::document::{UNREADABLE_LATER, message_from, message_text, problem_of};
use super::port::{AlertRows, AlertWrite, DeliveryAsk, DeliveryRow};
use super::routes::{self, Routes};
use super::types::{AlertError, Claimed, DeliveryClaim, DeliveryQuery, DeliveryView, Message};
use crate::feed::{JournalAsk, Numbered};
use crate::tables::Tables;
use crate::{Author, Page, StoreError, StoreResult};

/// The kind of a call of a monitor.
const PING: &str = "ping";

/// How many candidates a claim looks at for each that it may take: a host that is full does not hide the others.
const CANDIDATES: usize = 8;

/// New rows for a notice: one for each target of its route.
pub(super) fn of_notice(notice: Notice, route: &Route, now: Timestamp) -> Vec<DeliveryRow> {
    let (name, message) = (notice.route.clone(), notice.id.to_string());
    let document = message_text(&Message::Notice(Box::new(notice)));
    let row = |(place, target): (usize, &Target)| DeliveryRow {
        route: Some(name.clone()),
        place: u32::try_from(place).unwrap_or(u32::MAX),
        kind: target.kind().to_owned(),
        host: target.host().to_owned(),
        ..new(message.clone(), document.clone(), now)
    };
    route.to.iter().enumerate().map(row).collect()
}

/// A new row for a call of a monitor.
pub(super) fn of_ping(ping: PingCall, now: Timestamp) -> DeliveryRow {
    let host = Target::Slack { url: ping.url.clone() }.host().to_owned();
    let (job, message) = (Some(ping.job), ping.id.to_string());
    let document = message_text(&Message::Ping(ping));
    DeliveryRow { job, kind: PING.to_owned(), host, ..new(message, document, now) }
}

fn new(message: String, document: String, now: Timestamp) -> DeliveryRow {
    let empty = DeliveryRow {
        id: 0,
        version: 1,
        message,
        route: None,
        job: None,
        place: 0,
        kind: String::new(),
        host: String::new(),
        made_at: now,
        state: String::new(),
        claim_at: None,
        session: None,
        tries: 0,
        refusals: 0,
        first_try_at: None,
        settled_at: None,
        answer: None,
        document,
    };
    with(empty, Delivery::new(now))
}

/// The row with another standing.
fn with(row: DeliveryRow, delivery: Delivery) -> DeliveryRow {
    let (session, settled_at) = match delivery.state {
        DeliveryState::Waiting { .. } => (None, None),
        DeliveryState::Sending { session, .. } => (Some(session), None),
        DeliveryState::Sent { at } | DeliveryState::Dead { at } => (None, Some(at)),
    };
    DeliveryRow {
        state: delivery.state.as_str().to_owned(),
        claim_at: delivery.claim_at(),
        session,
        settled_at,
        tries: delivery.tries,
        refusals: delivery.refusals,
        first_try_at: delivery.first_try_at,
        answer: delivery.answer,
        ..row
    }
}

/// How the delivery of a row stands.
pub(super) fn standing(row: &DeliveryRow) -> StoreResult<Delivery> {
    let state = match (row.state.as_str(), row.claim_at, row.session, row.settled_at) {
        ("waiting", Some(next_at), ..) => DeliveryState::Waiting { next_at },
        ("sending", Some(until), Some(session), _) => DeliveryState::Sending { until, session },
        ("sent", .., Some(at)) => DeliveryState::Sent { at },
        ("dead", .., Some(at)) => DeliveryState::Dead { at },
        (state, ..) => {
            return Err(StoreError::Permanent(format!("delivery {} is in a state that is none: {state}", row.id)));
        }
    };
    let DeliveryRow { tries, refusals, first_try_at, .. } = *row;
    Ok(Delivery { state, tries, refusals, first_try_at, answer: row.answer.clone() })
}

fn view(row: DeliveryRow) -> StoreResult<DeliveryView> {
    let (message, delivery) = (message_from(&row.document)?, standing(&row)?);
    let DeliveryRow { id, place, kind, host, made_at, .. } = row;
    Ok(DeliveryView { id, message, place, kind, host, made_at, delivery })
}

/// See [`super::AlertStore::claim_deliveries`]. Two who claim the same delivery match its version, so one of them gets it.
pub(crate) async fn claim<T: Tables>(tables: &mut T, request: &DeliveryClaim) -> StoreResult<Vec<Claimed>> {
    let (now, mut claimed) = (tables.now(), Vec::new());
    let ask = DeliveryAsk::Due(now, request.limit.saturating_mul(CANDIDATES));
    let found = tables.alerts().delivery_rows(&ask).await?;
    if found.is_empty() || request.limit == 0 {
        return Ok(claimed);
    }
    let Routes { stored, unreadable } = routes::read_all(tables).await?;
    let known = stored.into_iter().map(|stored| (stored.route.name.clone(), stored.route));
    let known: BTreeMap<String, Route> = known.collect();
    let mut rows = BTreeMap::new();
    let mut candidates = Vec::new();
    for row in found {
        let Ok(waiting) = standing(&row) else {
            give_up(tables, row, now, "not sent: its stored row cannot be read".to_owned()).await?;
            continue;
        };
        if row.route.as_ref().is_some_and(|route| unreadable.contains(route)) {
            // The route may be mended, or read by a newer node.
            let state = DeliveryState::Waiting { next_at: now + UNREADABLE_LATER };
            change(tables, with(row, Delivery { state, ..waiting })).await?;
            continue;
        }
        match target(&known, &row) {
            Ok(target) => {
                let host = target.as_ref().map_or(row.host.as_str(), Target::host).to_owned();
                candidates.push(Candidate { key: row.id, host: host.clone() });
                rows.insert(row.id, (row, target, host));
            }
            Err(words) => give_up(tables, row, now, words).await?,
        }
    }
    let mut chosen = choose(candidates, &request.in_flight, request.per_host, request.limit);
    // Ascending, as every claim locks them.
    chosen.sort_unstable();
    for id in chosen {
        let Some((row, target, host)) = rows.remove(&id) else { continue };
        let Ok(delivery) = standing(&row)?.claim(request.session, now) else { continue };
        let message = match message_from(&row.document) {
            Ok(message) => message,
            Err(error) => {
                give_up(tables, row, now, format!("not sent: {}", problem_of(error))).await?;
                continue;
            }
        };
        if change(tables, with(row, delivery.clone())).await? {
            claimed.push(Claimed { id, message, target, host, delivery });
        }
    }
    Ok(claimed)
}

/// Ends a delivery that can never be sent.
async fn give_up<T: Tables>(tables: &mut T, row: DeliveryRow, now: Timestamp, words: String) -> StoreResult<()> {
    let (state, answer) = (DeliveryState::Dead { at: now }, Some(words));
    let DeliveryRow { tries, refusals, first_try_at, .. } = row;
    change(tables, with(row, Delivery { state, tries, refusals, first_try_at, answer })).await.map(drop)
}

/// The target of a delivery as its route names it now, or why there is none.
fn target(known: &BTreeMap<String, Route>, row: &DeliveryRow) -> Result<Option<Target>, String> {
    let Some(name) = &row.route else { return Ok(None) };
    let route = known.get(name).ok_or_else(|| format!("not sent: route {name} was deleted"))?;
    let place = usize::try_from(row.place).unwrap_or(usize::MAX);
    match (route.to.get(place), row.receiver()) {
        (Some(Target::Mail { to }), Some(alone)) if to.iter().any(|to| to == alone) => {
            Ok(Some(Target::Mail { to: vec![alone.to_owned()] }))
        }
        (_, Some(alone)) => Err(format!("not sent: route {name} mails to {alone} no more")),
        (Some(target), None) => Ok(Some(target.clone())),
        (None, None) => Err(format!("not sent: route {name} has no target number {} any more", row.place + 1)),
    }
}

async fn change<T: Tables>(tables: &mut T, row: DeliveryRow) -> StoreResult<bool> {
    Ok(tables.alerts_to_write().write_alert(&AlertWrite::Delivery(row)).await? > 0)
}

/// See [`super::AlertStore::settle_delivery`].
pub(crate) async fn settle<T: Tables>(
    tables: &mut T,
    session: SessionId,
    id: u64,
    answer: &Answer,
    jitter: u32,
) -> StoreResult<bool> {
    let now = tables.now();
    let Some(row) = tables.alerts().delivery_rows(&DeliveryAsk::Id(id)).await?.pop() else { return Ok(false) };
    let Ok(delivery) = standing(&row)?.answered(session, answer.clone(), now, jitter) else { return Ok(false) };
    if !change(tables, with(row.clone(), delivery)).await? {
        return Ok(false);
    }
    if let Answer::Partly { refused, .. } = answer {
        let alone = |refused: &RefusedReceiver| {
            let new = DeliveryRow { id: 0, version: 1, host: refused.to.clone(), made_at: now, ..row.clone() };
            with(new, Delivery::of_refused(refused, now, jitter))
        };
        let rows = AlertWrite::Deliveries(refused.iter().map(alone).collect());
        tables.alerts_to_write().write_alert(&rows).await?;
    }
    Ok(true)
}

/// See [`super::AlertStore::resend_delivery`].
pub(crate) async fn resend<T: Tables>(tables: &mut T, id: u64, author: &Author) -> Result<DeliveryView, AlertError> {
    let now = tables.now();
    let before = tables.alerts().delivery_rows(&DeliveryAsk::Id(id)).await?.pop().ok_or(AlertError::NoDelivery(id))?;
    let row = with(before.clone(), standing(&before)?.resend(now)?);
    if !change(tables, row.clone()).await? {
        return Err(StoreError::Retryable("the delivery has moved on since it was read".to_owned()).into());
    }
    let (before, after) = (audited(std::slice::from_ref(&before)), audited(std::slice::from_ref(&row)));
    routes::note(tables, Action::DeliveryResent, author, Some(before), Some(after)).await?;
    Ok(view(row)?)
}

/// See [`super::AlertStore::test_route`].
pub(crate) async fn test<T: Tables>(
    tables: &mut T,
    name: &str,
    author: &Author,
) -> Result<Vec<DeliveryView>, AlertError> {
    let (now, route) = (tables.now(), routes::find(tables, name).await?.route);
    let notice = watch::test(&route, now);
    let message = notice.id.to_string();
    let rows = AlertWrite::Deliveries(of_notice(notice, &route, now));
    tables.alerts_to_write().write_alert(&rows).await?;
    let rows = tables.alerts().delivery_rows(&DeliveryAsk::Message(message)).await?;
    routes::note(tables, Action::AlertTested, author, None, Some(audited(&rows))).await?;
    Ok(rows.into_iter().map(view).collect::<StoreResult<_>>()?)
}

fn audited(rows: &[DeliveryRow]) -> AuditDocument {
    let delivery = |row: &DeliveryRow| AuditedDelivery {
        id: row.id,
        route: row.route.clone(),
        kind: row.kind.clone(),
        state: row.state.clone(),
    };
    AuditDocument::Deliveries(rows.iter().map(delivery).collect())
}

/// See [`super::AlertStore::deliveries`].
pub(crate) async fn page<T: Tables>(tables: &mut T, query: &DeliveryQuery) -> StoreResult<Page<DeliveryView, u64>> {
    let limit = query.limit.max(1);
    let ask = DeliveryAsk::Page(DeliveryQuery { limit: limit + 1, ..query.clone() });
    let mut rows = tables.alerts().delivery_rows(&ask).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|row| row.id);
    // One that cannot be read is told beside them: see `unreadable`.
    Ok(Page { items: rows.into_iter().filter_map(|row| view(row).ok()).collect(), next })
}

/// See [`super::AlertStore::last_ping`].
pub(crate) async fn last_ping<T: Tables>(tables: &mut T, job: JobId) -> StoreResult<Option<DeliveryView>> {
    Ok(tables.alerts().delivery_rows(&DeliveryAsk::LastPing(job)).await?.pop().and_then(|row| view(row).ok()))
}

/// See [`super::AlertStore::notices_numbered`].
pub(crate) async fn notices<T: Tables>(tables: &mut T, ask: &JournalAsk) -> StoreResult<Numbered<Notice>> {
    let Numbered { newest, rows } = tables.alerts().notices_numbered(ask).await?;
    let mut notices = Vec::with_capacity(rows.len());
    for (number, row) in rows {
        if let Ok(Message::Notice(notice)) = message_from(&row.document) {
            notices.push((number, *notice));
        }
    }
    Ok(Numbered { newest, rows: notices })
}

/// See [`super::AlertStore::purge_alerts`].
pub(crate) async fn purge<T: Tables>(tables: &mut T, before: Timestamp, limit: usize) -> StoreResult<usize> {
    let cursor = super::document::Cursor::read(tables.alerts().cursor(false).await?.as_deref())?;
    let judged = cursor.map_or(u64::MAX, |cursor| cursor.facts.low());
    let rows = tables.alerts_to_write();
    let deliveries = rows.write_alert(&AlertWrite::PurgeDeliveries(before, limit)).await?;
    let left = limit.saturating_sub(usize::try_from(deliveries).unwrap_or(limit));
    let facts = rows.write_alert(&AlertWrite::PurgeFacts(before, judged, left)).await?;
    Ok(usize::try_from(deliveries + facts).unwrap_or(limit))
}
