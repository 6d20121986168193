//! Incidents: one trouble of one subject on one route, from its first fact until it is over.

use std::time::Duration;

use crate::firing::FiringKey;
use crate::id::RunId;
use crate::time::Timestamp;

use super::fact::{Subject, SubjectKey};
use super::notice::{Notice, NoticeId, State};
use super::route::Route;
use super::sentence;
use super::when::When;

/// The facts that one incident joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Runs that end badly: failed, timed out or lost. A success ends it.
    Outcome,
    /// Due times that do not run. A run ends it.
    Skipped,
    /// Late starts. A due time that started in time ends it.
    LateStart,
    /// Late ends. A due time that succeeded in time ends it.
    LateFinish,
    /// A node that went silent. Its return ends it.
    NodeLost,
    /// A database that went back in time. The acceptance of the loss ends it.
    CommitsLost,
    /// A clock that differs.
    ClockDrift,
    /// A disk that is nearly full.
    DiskFull,
    /// A plugin that is not loaded.
    PluginRefused,
    /// A certificate that ends soon.
    CertificateExpires,
}

/// The identity of an incident. A subject has one at most of each class and route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IncidentKey {
    /// The name of the route.
    pub route: String,
    /// The job or the part of the cluster.
    pub subject: SubjectKey,
    /// The class.
    pub class: Class,
}

/// The words of one fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    /// Its kind.
    pub when: When,
    /// Its run.
    pub run: Option<RunId>,
    /// Its due time; the last of several.
    pub due_at: Option<Timestamp>,
    /// The fact: what, when and why.
    pub sentence: String,
    /// The advice: what to do.
    pub then: String,
    /// Whether the run wrote output.
    pub has_output: bool,
}

/// A failure whose next attempt is still to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// The firing.
    pub firing: FiringKey,
    /// The attempt that failed.
    pub attempt: u32,
    /// When it failed.
    pub at: Timestamp,
    /// When the store looks whether the attempt still waits.
    pub look_at: Timestamp,
    /// Its words.
    pub telling: Telling,
}

/// An incident. It is stored while it is open or holds a failure back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// Its identity.
    pub key: IncidentKey,
    /// The namespace of the job.
    pub namespace: Option<String>,
    /// The name of the job.
    pub job: Option<String>,
    /// The part of the cluster, as sentences name it.
    pub part: Option<String>,
    /// The zone of its sentences.
    pub zone: String,
    /// When the first of the facts became true.
    pub since: Timestamp,
    /// How many facts came in a row; 0 while it only holds failures back.
    pub count: u64,
    /// When it was last told; `None` while fewer came than the route waits for.
    pub told_at: Option<Timestamp>,
    /// How often it was told.
    pub tellings: u32,
    /// The newest fact.
    pub last: Option<Telling>,
    /// Failures that wait for their next attempt, in the order in which they came.
    pub held_back: Vec<HeldBack>,
}

impl Class {
    /// Every value.
    pub const ALL: [Class; 10] = [
        Class::Outcome,
        Class::Skipped,
        Class::LateStart,
        Class::LateFinish,
        Class::NodeLost,
        Class::CommitsLost,
        Class::ClockDrift,
        Class::DiskFull,
        Class::PluginRefused,
        Class::CertificateExpires,
    ];

    /// The classes of jobs.
    pub const OF_JOBS: [Class; 4] = [Class::Outcome, Class::Skipped, Class::LateStart, Class::LateFinish];

    /// The name that stores keep.
    pub const fn as_str(self) -> &'static str {
        match self {
            Class::Outcome => "outcome",
            Class::Skipped => "skipped",
            Class::LateStart => "late_start",
            Class::LateFinish => "late_finish",
            Class::NodeLost => "node_lost",
            Class::CommitsLost => "commits_lost",
            Class::ClockDrift => "clock_drift",
            Class::DiskFull => "disk_full",
            Class::PluginRefused => "plugin_refused",
            Class::CertificateExpires => "certificate_expires",
        }
    }

    /// The value of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }

    /// The class of a kind of facts; `None` for facts that leave nothing open: output, and a database that is back already.
    pub const fn of(when: When) -> Option<Self> {
        Some(match when {
            When::Failed | When::TimedOut | When::Lost => Class::Outcome,
            When::Skipped => Class::Skipped,
            When::LateStart => Class::LateStart,
            When::LateFinish => Class::LateFinish,
            When::NodeLost => Class::NodeLost,
            When::CommitsLost => Class::CommitsLost,
            When::ClockDrift => Class::ClockDrift,
            When::DiskFull => Class::DiskFull,
            When::PluginRefused => Class::PluginRefused,
            When::CertificateExpires => Class::CertificateExpires,
            When::Recovered | When::Output | When::DatabaseAway => return None,
        })
    }

    /// Whether further facts while it is open are news: each bad run is, a disk that is still full is not.
    const fn counts(self) -> bool {
        matches!(self, Class::Outcome | Class::Skipped | Class::LateStart | Class::LateFinish)
    }
}

impl Incident {
    /// How long after the start of a next attempt, and how often from then on, the store looks whether it still waits.
    pub const LOOK_EVERY: Duration = Duration::from_secs(60);

    /// An incident without a fact.
    pub fn new(route: &str, subject: &Subject, class: Class, at: Timestamp) -> Self {
        let key = IncidentKey { route: route.to_owned(), subject: subject.key(), class };
        let (namespace, job, part) = match subject {
            Subject::Job(job) => (Some(job.namespace.clone()), Some(job.name.clone()), None),
            Subject::Cluster(part) => (None, None, Some(part.to_string())),
        };
        Self {
            key,
            namespace,
            job,
            part,
            zone: subject.zone().to_owned(),
            since: at,
            count: 0,
            told_at: None,
            tellings: 0,
            last: None,
            held_back: Vec::new(),
        }
    }

    /// Whether there is something to store.
    pub const fn is_open(&self) -> bool {
        self.count > 0 || !self.held_back.is_empty()
    }

    /// When a step must look at it: to tell it again, or at a failure that it holds back.
    pub fn next_look(&self, route: &Route) -> Option<Timestamp> {
        self.repeat_at(route).into_iter().chain(self.held_back.iter().map(|held| held.look_at)).min()
    }

    /// Counts a fact that became true at `at`; `by` of them at once, such as due times that one record tells. Without `repeat` each is
    /// told from the route's `after` on. With `repeat`, those of an open incident wait for the next time.
    pub fn add(&mut self, route: &Route, telling: Telling, by: u64, at: Timestamp, now: Timestamp) -> Option<Notice> {
        let first = self.count == 0;
        if first {
            self.since = at;
        } else if !self.key.class.counts() {
            self.last = Some(telling);
            return None;
        }
        self.count = self.count.saturating_add(by);
        self.last = Some(telling);
        let waits = self.key.class == Class::Outcome && self.count < u64::from(route.after);
        let told_later = self.told_at.is_some() && route.repeat.is_some();
        if waits || told_later { None } else { self.tell(by, now, false) }
    }

    /// Tells it again if it is time to.
    pub fn repeat(&mut self, route: &Route, now: Timestamp) -> Option<Notice> {
        self.repeat_at(route).filter(|at| *at <= now)?;
        self.tell(0, now, true)
    }

    /// Its end, told in `words` if it was told itself and the route asks for it. Failures that it holds back stay.
    pub fn close(&mut self, route: &Route, words: &str, run: Option<RunId>, now: Timestamp) -> Option<Notice> {
        let (told, last, count) = (self.told_at.take(), self.last.take(), std::mem::take(&mut self.count));
        let tellings = std::mem::take(&mut self.tellings);
        let last = last.filter(|_| told.is_some() && route.when.contains(&When::Recovered))?;
        let sentence = sentence::recovered(words, self.key.class, count, self.since, &self.zone);
        let telling =
            Telling { run, due_at: None, sentence, then: sentence::NOTHING_TO_DO.into(), has_output: false, ..last };
        Some(self.notice(State::Recovered, telling, tellings, now))
    }

    /// The notice of a fact that leaves nothing open.
    pub fn passing(
        route: &Route,
        subject: &Subject,
        telling: Telling,
        at: Timestamp,
        now: Timestamp,
    ) -> Option<Notice> {
        // No class asks for it, so any will do: the id tells it apart by its kind.
        let mut alone = Self::new(&route.name, subject, Class::Outcome, at);
        (alone.count, alone.last) = (1, Some(telling));
        alone.tell(1, now, false)
    }

    /// Forgets everything, because the subject is gone.
    pub fn forget(&mut self) {
        (self.count, self.told_at, self.last) = (0, None, None);
        self.held_back.clear();
    }

    /// Holds a failure back until its next attempt has ended.
    pub fn hold_back(&mut self, held: HeldBack) {
        self.release(held.firing);
        self.held_back.push(held);
    }

    /// Takes out the failure that a firing holds back.
    pub fn release(&mut self, firing: FiringKey) -> Option<HeldBack> {
        let place = self.held_back.iter().position(|held| held.firing == firing)?;
        Some(self.held_back.remove(place))
    }

    /// Puts off the next look at failures whose attempt still waits.
    pub fn look_later(&mut self, now: Timestamp) {
        for held in self.held_back.iter_mut().filter(|held| held.look_at <= now) {
            held.look_at = now + Self::LOOK_EVERY;
        }
    }

    fn repeat_at(&self, route: &Route) -> Option<Timestamp> {
        Some(self.told_at? + route.repeat?)
    }

    /// `by` of the facts are those of the telling itself.
    fn tell(&mut self, by: u64, now: Timestamp, again: bool) -> Option<Notice> {
        let mut telling = self.last.clone()?;
        let more = match again {
            true => sentence::goes_on(self.key.class, self.count, self.since, &self.zone),
            false if self.count > by => sentence::in_a_row(self.key.class, self.count),
            false => String::new(),
        };
        telling.sentence.push_str(&more);
        let repeats = self.tellings;
        self.tellings += 1;
        self.told_at = Some(now);
        Some(self.notice(State::Open, telling, repeats, now))
    }

    fn notice(&self, state: State, telling: Telling, repeats: u32, now: Timestamp) -> Notice {
        let IncidentKey { route, subject, class } = &self.key;
        let Telling { when, run, due_at, sentence, then, has_output } = telling;
        let (subject, since) = (subject.to_string(), self.since.to_string());
        let incident = ["incident", route, &subject, class.as_str(), &since];
        let (repeats_text, now_text) = (repeats.to_string(), now.to_string());
        let run_text = run.map(|run| run.to_string()).unwrap_or_default();
        let due_text = due_at.map(|due_at| due_at.to_string()).unwrap_or_default();
        let mut parts = incident.to_vec();
        parts.extend([state.as_str(), when.as_str(), &run_text, &due_text, &repeats_text, &now_text]);
        Notice {
            id: NoticeId::derived(&parts),
            route: route.clone(),
            when,
            state,
            namespace: self.namespace.clone(),
            job: self.job.clone(),
            part: self.part.clone(),
            run,
            due_at,
            at: now,
            sentence,
            then,
            repeats,
            folded: 0,
            thread: NoticeId::derived(&incident),
            with_output: has_output,
            cron_mail: None,
        }
    }
}
