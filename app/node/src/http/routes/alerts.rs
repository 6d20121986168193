//! `/v1/alerts`, `/v1/deliveries` and `/v1/incidents`: who is told, what is on its way, and what is open.
//!
//! Routes belong to the cluster. A token of some namespaces reaches those that select jobs of these namespaces only.

use carillon_domain::alert::{DeliveryState, Route};
use carillon_domain::name::check_route_name;
use carillon_store::alerts::{AlertError, DeliveryQuery, IncidentQuery, StoredRoute};
use serde_json::{Value, json};
use warp::http::StatusCode;
use warp::http::header::{ETAG, LOCATION};
use warp::reply::Response;

use crate::http::problem::{HttpResult, Problem, json_response, set_header};
use crate::http::request::access::Caller;
use crate::http::request::body::ORDINARY;
use crate::http::request::caller::Call;
use crate::http::request::etag::{Condition, etag};
use crate::http::request::query::{Namespaces, Query, decode};
use carillon_json::{delivery_cursor, delivery_json, incident_json, read_delivery_cursor, route_of, stored_route_json};

/// How many incidents are listed at the most.
const INCIDENTS: usize = 1_000;

/// `PUT /v1/alerts/{name}`
pub(in crate::http) async fn put(mut call: Call) -> HttpResult {
    let name = route_name(&call.segment)?;
    call.no_query()?;
    let condition = Condition::of(&call.headers)?;
    let body = call.json(ORDINARY).await?;
    let (stored, current) = found(&call.caller, call.api.store.route(&name).await)?;
    // Secrets may come from the stored route, so it must still be that one when the new one is written.
    let fits = match condition {
        Condition::None => true,
        Condition::Absent => current == 0,
        Condition::Present => current > 0,
        Condition::Generation(expected) => current == expected,
    };
    if !fits {
        let detail = format!("the route {name} is at version {current} (0: there is none): read it again");
        return Err(Problem::new(StatusCode::PRECONDITION_FAILED, detail));
    }
    let wanted = route_of(body, &name, stored.as_ref().map(|stored| &stored.route)).map_err(Problem::fields)?;
    allowed(&call.caller, &wanted)?;
    let saved = call.api.store.put_route(&wanted, Some(current), &call.author).await?;
    call.api.alerts.wake();
    let created = current == 0;
    let mut response = shown(if created { StatusCode::CREATED } else { StatusCode::OK }, &saved);
    if created {
        set_header(&mut response, LOCATION, &format!("/v1/alerts/{name}"));
    }
    Ok(response)
}

/// `GET /v1/alerts/{name}`
pub(in crate::http) async fn read(call: Call) -> HttpResult {
    call.no_query()?;
    let stored = call.api.store.route(&route_name(&call.segment)?).await?;
    visible(&call.caller, &stored.route)?;
    Ok(shown(StatusCode::OK, &stored))
}

/// `DELETE /v1/alerts/{name}`
pub(in crate::http) async fn delete(call: Call) -> HttpResult {
    call.no_query()?;
    let name = route_name(&call.segment)?;
    let if_version = match Condition::of(&call.headers)? {
        Condition::None | Condition::Present => None,
        Condition::Generation(version) => Some(version),
        Condition::Absent => return Err(Problem::bad("a route that is not there cannot be deleted")),
    };
    if found(&call.caller, call.api.store.route(&name).await)?.1 == 0 {
        return Err(AlertError::NoRoute(name).into());
    }
    call.api.store.delete_route(&name, if_version, &call.author).await?;
    let mut response = Response::new("".into());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// `GET /v1/alerts`
pub(in crate::http) async fn list(call: Call) -> HttpResult {
    call.no_query()?;
    let stored = call.api.store.routes().await?;
    let items: Vec<Value> =
        stored.iter().filter(|stored| reaches(&call.caller, &stored.route)).map(stored_route_json).collect();
    Ok(json_response(StatusCode::OK, &json!({"items": items})))
}

/// `POST /v1/alerts/{name}/test`
pub(in crate::http) async fn test(mut call: Call) -> HttpResult {
    call.no_query()?;
    let name = route_name(&call.segment)?;
    call.nothing_more().await?;
    visible(&call.caller, &call.api.store.route(&name).await?.route)?;
    let made = call.api.store.test_route(&name, &call.author).await?;
    let items: Vec<Value> = made.iter().map(delivery_json).collect();
    call.api.alerts.wake();
    Ok(json_response(StatusCode::ACCEPTED, &json!({"items": items})))
}

/// `GET /v1/deliveries`
pub(in crate::http) async fn deliveries(call: Call) -> HttpResult {
    let asked = delivery_query(&call)?;
    if call.caller.namespaces().is_some() {
        let Some(name) = &asked.route else {
            let detail = "this token is for some namespaces: name a route of them, as ?route=NAME";
            return Err(Problem::new(StatusCode::FORBIDDEN, detail));
        };
        visible(&call.caller, &call.api.store.route(name).await?.route)?;
    }
    let page = call.api.store.deliveries(&asked).await?;
    let items: Vec<Value> = page.items.iter().map(delivery_json).collect();
    Ok(json_response(StatusCode::OK, &json!({"items": items, "next_cursor": page.next.map(delivery_cursor)})))
}

/// `POST /v1/deliveries/{id}/resend`
pub(in crate::http) async fn resend(mut call: Call) -> HttpResult {
    call.no_query()?;
    let id = call.segment.parse().ok().filter(|id: &u64| id.to_string() == call.segment);
    let id = id.ok_or_else(|| Problem::field("delivery", "it is not the id of a delivery: a number is expected"))?;
    call.nothing_more().await?;
    // A delivery names its route only once it is read, so this is for tokens of all namespaces.
    call.caller.enters_all()?;
    let view = call.api.store.resend_delivery(id, &call.author).await?;
    call.api.alerts.wake();
    Ok(json_response(StatusCode::OK, &delivery_json(&view)))
}

/// `GET /v1/incidents`
pub(in crate::http) async fn incidents(call: Call) -> HttpResult {
    let asked = incident_query(&call)?;
    let items: Vec<Value> = call.api.store.incidents(&asked).await?.iter().map(incident_json).collect();
    Ok(json_response(StatusCode::OK, &json!({"items": items})))
}

fn delivery_query(call: &Call) -> Result<DeliveryQuery, Problem> {
    let mut query = call.query()?;
    let asked = DeliveryQuery {
        route: of_route(&mut query),
        state: query.choice("state", &DeliveryState::NAMES, |name| name),
        after: query.cursor(read_delivery_cursor),
        limit: query.limit(),
    };
    query.finish()?;
    Ok(asked)
}

fn incident_query(call: &Call) -> Result<IncidentQuery, Problem> {
    let mut query = call.query()?;
    let (route, namespaces) = (of_route(&mut query), query.namespaces_or(Namespaces::All));
    query.finish()?;
    let namespaces = match namespaces {
        Namespaces::All => call.caller.namespaces().map(<[String]>::to_vec),
        Namespaces::One(namespace) => {
            call.caller.enters(&namespace)?;
            Some(vec![namespace])
        }
    };
    Ok(IncidentQuery { route, namespaces, limit: INCIDENTS })
}

fn of_route(query: &mut Query) -> Option<String> {
    let route = query.text("route")?;
    if let Err(error) = check_route_name(&route) {
        query.fault("route", error.to_string());
    }
    Some(route)
}

/// The name of a route as a segment of a path.
fn route_name(segment: &str) -> Result<String, Problem> {
    let name = decode(segment).ok_or_else(|| Problem::bad("the path is not percent-encoded UTF-8"))?;
    check_route_name(&name).map_err(|error| Problem::field("name", error.to_string()))?;
    Ok(name)
}

/// The route that a caller would change, and its version; 0 if there is none. One that cannot be read is changed by those who reach all.
fn found(caller: &Caller, result: Result<StoredRoute, AlertError>) -> Result<(Option<StoredRoute>, u64), Problem> {
    match result {
        Ok(stored) => {
            visible(caller, &stored.route)?;
            let version = stored.version;
            Ok((Some(stored), version))
        }
        Err(AlertError::NoRoute(_)) => Ok((None, 0)),
        Err(AlertError::Unreadable { version, .. }) => {
            caller.enters_all()?;
            Ok((None, version))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a caller may read and change a route.
pub(crate) fn reaches(caller: &Caller, route: &Route) -> bool {
    let namespaces = &route.only.namespaces;
    caller.namespaces().is_none() || (!namespaces.is_empty() && namespaces.iter().all(|name| caller.sees(name)))
}

/// A route that the caller does not reach is as good as none.
pub(crate) fn visible(caller: &Caller, route: &Route) -> Result<(), Problem> {
    if reaches(caller, route) { Ok(()) } else { Err(AlertError::NoRoute(route.name.clone()).into()) }
}

/// Whether the caller may store such a route.
pub(crate) fn allowed(caller: &Caller, route: &Route) -> Result<(), Problem> {
    if reaches(caller, route) {
        return Ok(());
    }
    let detail = "this token is for some namespaces: name only those under match.namespaces";
    Err(Problem::new(StatusCode::FORBIDDEN, detail))
}

fn shown(status: StatusCode, stored: &StoredRoute) -> Response {
    let mut response = json_response(status, &stored_route_json(stored));
    set_header(&mut response, ETAG, &etag(stored.version));
    response
}
