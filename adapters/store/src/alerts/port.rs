//! The rows of routes, facts, incidents and deliveries, as one transaction of a database reads and writes them.
//!
//! A row has columns for what is searched or guarded, and a document for the rest. [`super::document`] writes and reads documents, so a
//! database only keeps them.

use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;

use super::types::{DeliveryCounts, DeliveryQuery, IncidentQuery};
use crate::StoreResult;
use crate::feed::{JournalAsk, Numbered};

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteRow {
    /// Its name, the key.
    pub name: String,
    /// Raised by each change.
    pub version: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// The rest of it.
    pub document: String,
}

/// A fact that history does not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactRow {
    /// Facts with the same key are one; 32 hexadecimal digits.
    pub key: Option<String>,
    /// Whether it is kept until its key is freed.
    pub open: bool,
    /// When it became true.
    pub at: Timestamp,
    /// Its content.
    pub document: String,
}

/// An open incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncidentRow {
    /// Derived from its route, subject and class; 32 hexadecimal digits.
    pub id: String,
    /// The name of its route.
    pub route: String,
    /// Its job.
    pub job: Option<JobId>,
    /// The namespace of the job.
    pub namespace: Option<String>,
    /// When its first fact became true.
    pub since: Timestamp,
    /// When a step must look at it.
    pub next_look: Option<Timestamp>,
    /// The rest of it.
    pub document: String,
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Its number; ascending. A new one gets it when it is inserted.
    pub id: u64,
    /// Raised by each change, which matches it.
    pub version: u64,
    /// The id of its message: 32 hexadecimal digits.
    pub message: String,
    /// Its route; `None` for a call of a monitor.
    pub route: Option<String>,
    /// The job of a call of a monitor.
    pub job: Option<JobId>,
    /// The place of its target in the route.
    pub place: u32,
    /// The kind of its target.
    pub kind: String,
    /// The host of its target; of a mail to one receiver alone, that receiver.
    pub host: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// The name of its state.
    pub state: String,
    /// When it may be claimed; `None` if it was sent or given up.
    pub claim_at: Option<Timestamp>,
    /// Who sends it.
    pub session: Option<SessionId>,
    /// See [`carillon_domain::alert::Delivery::tries`].
    pub tries: u32,
    /// See [`carillon_domain::alert::Delivery::refusals`].
    pub refusals: u32,
    /// See [`carillon_domain::alert::Delivery::first_try_at`].
    pub first_try_at: Option<Timestamp>,
    /// When it was sent or given up.
    pub settled_at: Option<Timestamp>,
    /// The words of the last answer.
    pub answer: Option<String>,
    /// Its message.
    pub document: String,
}

impl DeliveryRow {
    /// The kind and the host of mails to all receivers of a target. A receiver who was refused among others has an own row, with the
    /// address as its host.
    pub const MAIL: &str = "mail";

    /// The one receiver of a mail, if it does not go to all of its target.
    pub fn receiver(&self) -> Option<&str> {
        Some(self.host.as_str()).filter(|host| self.kind == Self::MAIL && *host != Self::MAIL)
    }
}

/// A job with expectations or a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchRow {
    /// The job.
    pub job: JobId,
    /// Up to which due time starts are judged.
    pub starts: Timestamp,
    /// Up to which due time ends are judged.
    pub ends: Timestamp,
    /// When its expectations are to be looked at.
    pub look_at: Option<Timestamp>,
    /// Whether it has a monitor.
    pub pings: bool,
}

/// A row of history as far as a step needs it to see whether it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunHead {
    /// The record.
    pub run: RunId,
    /// Its job.
    pub job: JobId,
    /// Its outcome.
    pub status: Status,
}

/// Which incidents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncidentAsk {
    /// Those with these ids.
    Ids(Vec<String>),
    /// Up to so many whose look is due by then, the first ones first.
    Due(Timestamp, usize),
    /// Those that people ask for, oldest first.
    Page(IncidentQuery),
}

/// Which deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryAsk {
    /// The one with that number.
    Id(u64),
    /// Up to so many that may be claimed by then, those that have waited longest first.
    Due(Timestamp, usize),
    /// Those of one message, by place.
    Message(String),
    /// The newest call of a job's monitor.
    LastPing(JobId),
    /// Those that people ask for, newest first.
    Page(DeliveryQuery),
}

/// Which part of some jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// Those with an open incident.
    Troubled,
    /// Those with a monitor.
    Monitored,
}

/// Which rows are to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// Incidents.
    Incidents,
    /// Expectations.
    Expectations,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertWrite {
    /// Replaces the document of the cursor, which the transaction has locked.
    Cursor(String),
    /// Stores a route.
    Route(RouteRow),
    /// Deletes a route, its incidents, and its deliveries that were not sent yet.
    RouteGone(String),
    /// Adds facts, but for those whose key is there; answers how many.
    Facts(Vec<FactRow>),
    /// Frees the key of a fact; answers whether there was one.
    FreeKey(String),
    /// Stores incidents.
    Incidents(Vec<IncidentRow>),
    /// Deletes incidents by id.
    IncidentsGone(Vec<String>),
    /// Deletes the incidents of a route.
    IncidentsOfRouteGone(String),
    /// Deletes the incidents of jobs.
    IncidentsOfJobsGone(Vec<JobId>),
    /// All incidents of a route are looked at by then.
    LookAtRoute(String, Timestamp),
    /// All incidents of jobs are looked at by then.
    LookAtJobs(Vec<JobId>, Timestamp),
    /// Adds deliveries, under ascending numbers.
    Deliveries(Vec<DeliveryRow>),
    /// Changes a delivery that is at the version given, and raises it; answers whether it was.
    Delivery(DeliveryRow),
    /// Adds jobs to watch. One that is watched keeps how far it is judged, and is looked at when the new row says.
    Watch(Vec<WatchRow>),
    /// Changes a job that is still watched as it was read, first; answers whether it was.
    Watched(WatchRow, WatchRow),
    /// Stops watching jobs.
    WatchGone(Vec<JobId>),
    /// Deletes up to so many deliveries that were sent or given up before then, but never the newest; answers how many.
    PurgeDeliveries(Timestamp, usize),
    /// Deletes up to so many facts that are not open, older than then, and not above that number; never the newest. Answers how many.
    PurgeFacts(Timestamp, u64, usize),
}

/// Statements about alerts.
pub trait AlertRows {
    /// The document of the cursor; `None` before the first. `lock` makes whoever asks so too wait for the end of the transaction.
    fn cursor(&mut self, lock: bool) -> impl Future<Output = StoreResult<Option<String>>> + Send;

    /// Every route, by name.
    fn route_rows(&mut self) -> impl Future<Output = StoreResult<Vec<RouteRow>>> + Send;

    /// Whether any job is watched.
    fn has_watched(&mut self) -> impl Future<Output = StoreResult<bool>> + Send;

    /// Facts by their numbers.
    fn facts_numbered(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<FactRow>>> + Send;

    /// Incidents.
    fn incident_rows(&mut self, ask: &IncidentAsk) -> impl Future<Output = StoreResult<Vec<IncidentRow>>> + Send;

    /// A part of some jobs, in any order.
    fn among(&mut self, jobs: &[JobId], which: Among) -> impl Future<Output = StoreResult<Vec<JobId>>> + Send;

    /// The first look that is to come, or is due.
    fn first_look(&mut self, looks: Looks) -> impl Future<Output = StoreResult<Option<Timestamp>>> + Send;

    /// Up to `limit` jobs whose expectations are to be looked at by then, the first ones first.
    fn watched_due(
        &mut self,
        until: Timestamp,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<WatchRow>>> + Send;

    /// Deliveries.
    fn delivery_rows(&mut self, ask: &DeliveryAsk) -> impl Future<Output = StoreResult<Vec<DeliveryRow>>> + Send;

    /// The first delivery of each notice, by number.
    fn notices_numbered(&mut self, ask: &JournalAsk)
    -> impl Future<Output = StoreResult<Numbered<DeliveryRow>>> + Send;

    /// How many deliveries are in each state, as far as [`DeliveryCounts::MOST`].
    fn delivery_counts(&mut self) -> impl Future<Output = StoreResult<DeliveryCounts>> + Send;

    /// Writes; answers how many rows matched, where the write says so.
    fn write_alert(&mut self, write: &AlertWrite) -> impl Future<Output = StoreResult<u64>> + Send;
}
