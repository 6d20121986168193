//! Being told: which facts become notices, for whom, and how long a notice is tried.
//!
//! Facts come from journals: history, and troubles of the cluster. [`expect::judge`] adds the facts that nobody writes down, such as a
//! run that never started. [`watch::step`] reads facts in order and answers notices; it is the one entry for a store, the model and the
//! simulator. One node at a time steps, in one commit with the cursor of the journals, so each fact is judged once in the cluster.
//!
//! A [`Route`] says which facts it wants and whom it tells. An [`Incident`] is one trouble of one subject on one route, from its first
//! fact until it is over. A [`Notice`] is a message; a [`Delivery`] is the way of one notice to one [`Target`]. [`calls`] reads the same
//! facts for the monitors of jobs.

mod delivery;
pub mod expect;
mod fact;
mod incident;
mod notice;
mod ping;
mod route;
pub mod sentence;
mod storm;
mod target;
pub mod watch;
mod when;

pub use delivery::{Answer, Candidate, Delivery, DeliveryState, Refused, RefusedReceiver, choose};
pub use expect::{BadTimeOfDay, Because, Broken, Expect, TimeOfDay, Verdict};
pub use fact::{Ended, Fact, JobSubject, Part, Subject, SubjectKey, Trouble, What, retry_of};
pub use incident::{Class, HeldBack, Incident, IncidentKey, Telling};
pub use notice::{BadNoticeId, CronMail, Notice, NoticeId, State};
pub use ping::calls::{Calls, HeldCall, HeldCalls, calls, wanted_calls};
pub use ping::{Ping, PingCall, PingKind};
pub use route::{Route, RouteError, Selection};
pub use storm::Storm;
pub use target::Target;
pub use when::When;
