// Written from the OpenAPI document by `UPDATE=1 cargo test -p carillon-tests --test clients`; not by hand.

//! Routes of alerts, messages and troubles.

use crate::call::Call;
use crate::models::*;
use crate::{Client, Error};

/// Parameters of [`Client::put_alert`].
#[derive(Debug, Clone, Default)]
pub struct PutAlert {
    /// The ETag of the definition as it was read; 412 if it has changed since.
    pub if_match: Option<String>,
    /// Only if there is no such job; 412 if there is one.
    pub if_none_match: Option<String>,
}

/// Parameters of [`Client::list_deliveries`].
#[derive(Debug, Clone, Default)]
pub struct ListDeliveries {
    /// Only of this route.
    pub route: Option<String>,
    /// How the deliveries stand. One of `waiting`, `sending`, `sent`, `dead`.
    pub state: Option<String>,
    /// How many items a page has at the most.
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Parameters of [`Client::list_incidents`].
#[derive(Debug, Clone, Default)]
pub struct ListIncidents {
    /// Only of this route.
    pub route: Option<String>,
    /// One namespace, or `*` for all; `default` if it is not given.
    pub namespace: Option<String>,
}

impl Client {
    /// List the routes of alerts.
    ///
    /// `GET /v1/alerts`. Needs a token with the role viewer.
    pub fn list_alerts(&self) -> Result<Alerts, Error> {
        let call = Call::new("GET", "/v1/alerts");
        self.json(&call)
    }

    /// Delete a route; what it has not sent is dropped.
    ///
    /// `DELETE /v1/alerts/{alert}`. Needs a token with the role admin.
    pub fn delete_alert(&self, alert: &str, if_match: Option<&str>) -> Result<(), Error> {
        let call = Call::new("DELETE", "/v1/alerts/{alert}")
            .at("alert", alert)
            .header("If-Match", if_match);
        self.nothing(&call)
    }

    /// Read a route without its secrets.
    ///
    /// `GET /v1/alerts/{alert}`. Needs a token with the role viewer.
    pub fn read_alert(&self, alert: &str) -> Result<Alert, Error> {
        let call = Call::new("GET", "/v1/alerts/{alert}")
            .at("alert", alert);
        self.json(&call)
    }

    /// Create or replace a route: who is told of what.
    ///
    /// `PUT /v1/alerts/{alert}`. Needs a token with the role admin.
    pub fn put_alert(&self, alert: &str, query: &PutAlert, body: &AlertDefinition) -> Result<Alert, Error> {
        let call = Call::new("PUT", "/v1/alerts/{alert}")
            .at("alert", alert)
            .header("If-Match", query.if_match.as_ref())
            .header("If-None-Match", query.if_none_match.as_ref())
            .body(Some(body))?;
        self.json(&call)
    }

    /// Send a message to every target of a route.
    ///
    /// `POST /v1/alerts/{alert}/test`. Needs a token with the role operator.
    pub fn test_alert(&self, alert: &str) -> Result<Deliveries, Error> {
        let call = Call::new("POST", "/v1/alerts/{alert}/test")
            .at("alert", alert);
        self.json(&call)
    }

    /// List messages with the answers to them, newest first.
    ///
    /// `GET /v1/deliveries`. Needs a token with the role viewer.
    pub fn list_deliveries(&self, query: &ListDeliveries) -> Result<DeliveryPage, Error> {
        let call = Call::new("GET", "/v1/deliveries")
            .with("route", query.route.as_ref())
            .with("state", query.state.as_ref())
            .with("limit", query.limit.as_ref())
            .with("cursor", query.cursor.as_ref());
        self.json(&call)
    }

    /// Send a message again that was sent or given up.
    ///
    /// `POST /v1/deliveries/{delivery}/resend`. Needs a token with the role operator.
    pub fn resend_delivery(&self, delivery: i64) -> Result<Delivery, Error> {
        let call = Call::new("POST", "/v1/deliveries/{delivery}/resend")
            .at("delivery", delivery);
        self.json(&call)
    }

    /// List open troubles that a route is told of, oldest first.
    ///
    /// `GET /v1/incidents`. Needs a token with the role viewer.
    pub fn list_incidents(&self, query: &ListIncidents) -> Result<Incidents, Error> {
        let call = Call::new("GET", "/v1/incidents")
            .with("route", query.route.as_ref())
            .with("namespace", query.namespace.as_ref());
        self.json(&call)
    }
}
