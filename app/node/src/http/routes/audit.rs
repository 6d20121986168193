//! `GET /v1/audit`: who changed what, from where, newest first.
//!
//! Every viewer may read the entries of the namespaces that its token is for, as it may read their jobs. Entries about the
//! cluster are for tokens of all namespaces.

use carillon_domain::name::check_job_name;
use carillon_store::{Action, AuditQuery};
use serde_json::json;
use warp::http::StatusCode;

use crate::http::problem::{HttpResult, Problem, json_response};
use crate::http::request::caller::Call;
use crate::http::request::query::Namespaces;
use carillon_json::{audit_cursor, audit_json, read_audit_cursor};

/// `GET /v1/audit`
pub(in crate::http) async fn list(call: Call) -> HttpResult {
    let query = audit_query(&call)?;
    let page = call.api.store.audit(&query).await?;
    let items: Vec<_> = page.items.iter().map(audit_json).collect();
    let next = page.next.map(audit_cursor);
    Ok(json_response(StatusCode::OK, &json!({"items": items, "next_cursor": next})))
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
