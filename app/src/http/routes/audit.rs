//! `GET /v1/audit`: who changed what, from where, newest first.
//!
//! Every viewer may read the entries of the namespaces that its token is for, as it may read their jobs. Entries about the
//! cluster are for tokens of all namespaces.

use std::sync::Arc;

use carillon_domain::name::check_job_name;
use carillon_store::{Action, AuditQuery};
use serde_json::json;
use warp::filters::BoxedFilter;
use warp::http::StatusCode;
use warp::reply::Response;
use warp::{Filter, path};

use crate::config::Role;
use crate::http::problem::{HttpResult, Problem, answer, json_response};
use crate::http::request::caller::{Admitted, Call, call, reading};
use crate::http::request::query::Namespaces;
use crate::http::state::ApiState;
use carillon_json::{audit_cursor, audit_json, read_audit_cursor};

/// `GET /v1/audit`
pub(in crate::http) fn route(api: &Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let route = path!("v1" / "audit").and(reading()).and(call(api, Role::Viewer));
    let handler = async |admitted: Admitted| -> HttpResult {
        let call = admitted?;
        let query = audit_query(&call)?;
        let page = call.api.store.audit(&query).await?;
        let items: Vec<_> = page.items.iter().map(audit_json).collect();
        let next = page.next.map(audit_cursor);
        Ok(json_response(StatusCode::OK, &json!({"items": items, "next_cursor": next})))
    };
    route.then(move |call| answer(handler(call))).boxed()
}

fn audit_query(call: &Call) -> Result<AuditQuery, Problem> {
    let mut query = call.query()?;
    let namespaces = query.namespaces_or(Namespaces::All);
    let job = query.text("job");
    if let Some(Err(error)) = job.as_deref().map(check_job_name) {
        query.fault("job", error.to_string());
    }
    let asked = AuditQuery {
        namespaces: None,
        job,
        who: query.text("who"),
        action: query.choice("action", &Action::ALL, Action::as_str).map(|action| action.as_str().to_owned()),
        since: query.time("since"),
        until: query.time("until"),
        after: query.cursor(read_audit_cursor),
        limit: query.limit(),
    };
    query.finish()?;
    let namespaces = match namespaces {
        Namespaces::All => call.caller.namespaces().map(<[String]>::to_vec),
        Namespaces::One(namespace) => {
            call.caller.enters(&namespace)?;
            Some(vec![namespace])
        }
    };
    Ok(AuditQuery { namespaces, ..asked })
}
