//! Incidents as rows.

use carillon_domain::alert::{Incident, IncidentKey, NoticeId, Route, SubjectKey};

use super::document::{incident_from, incident_text};
use super::held_calls;
use super::port::{AlertRows, IncidentAsk, IncidentRow};
use super::types::IncidentQuery;
use crate::StoreResult;
use crate::tables::Tables;

/// The id of the row of an incident.
pub(super) fn id_of(key: &IncidentKey) -> String {
    let class = key.class.as_str();
    match &key.subject {
        SubjectKey::Job(job) => NoticeId::derived(&["incident of job", &key.route, &job.to_string(), class]),
        SubjectKey::Cluster(part) => {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            NoticeId::derived(&["incident of part", &key.route, &text(&part.node), &text(&part.thing), class])
        }
    }
    .to_string()
}

/// The row of an incident of that route.
pub(super) fn row_of(incident: &Incident, route: &Route) -> IncidentRow {
    let job = match incident.key.subject {
        SubjectKey::Job(job) => Some(job),
        SubjectKey::Cluster(_) => None,
    };
    IncidentRow {
        id: id_of(&incident.key),
        route: incident.key.route.clone(),
        job,
        namespace: incident.namespace.clone(),
        since: incident.since,
        next_look: incident.next_look(route),
        document: incident_text(incident),
    }
}

/// See [`super::AlertStore::incidents`].
pub(crate) async fn page<T: Tables>(tables: &mut T, query: &IncidentQuery) -> StoreResult<Vec<Incident>> {
    let rows = tables.alerts().incident_rows(&IncidentAsk::Page(query.clone())).await?;
    let incidents =
        rows.iter().filter(|row| !held_calls::is_one(row)).filter_map(|row| incident_from(&row.document).ok());
    // One that only holds a failure back is none yet.
    Ok(incidents.filter(|incident| incident.count > 0).collect())
}
