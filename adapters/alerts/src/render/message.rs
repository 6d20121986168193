//! A notice in the words that all receivers share: a title, sentences, the end of the output, a link.

pub(super) use carillon_domain::alert::State;
use carillon_domain::alert::{Notice, When};

use super::Extra;
use super::plain::one_line;

/// The longest title, in characters.
const TITLE: usize = 140;
/// The longest sentence, in characters. The domain's are far shorter, unless a reason in them is long.
const SENTENCE: usize = 4_000;

/// The content of a notice, before it takes the form of one receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// The notice's id; repeats of a delivery have the same.
    pub id: String,
    /// The same for all messages of one incident.
    pub thread: String,
    pub route: String,
    /// The name of the `When`.
    pub when: &'static str,
    pub state: State,
    pub namespace: Option<String>,
    pub job: Option<String>,
    pub run: Option<String>,
    /// RFC 3339.
    pub due_at: Option<String>,
    /// A few words: who, and what happened.
    pub title: String,
    pub sentence: String,
    /// Advice; may be empty.
    pub then: String,
    /// The end of the output, without secrets.
    pub output: Option<String>,
    /// The address of the page about it.
    pub link: Option<String>,
}

impl Message {
    pub fn of(notice: &Notice, extra: &Extra) -> Self {
        Self {
            id: notice.id.to_string(),
            thread: notice.thread.to_string(),
            route: notice.route.clone(),
            when: notice.when.as_str(),
            state: notice.state,
            namespace: notice.namespace.clone(),
            job: notice.job.clone(),
            run: notice.run.map(|run| run.to_string()),
            due_at: notice.due_at.map(|due_at| due_at.to_rfc3339_short()),
            title: one_line(&title(notice), TITLE),
            sentence: one_line(&notice.sentence, SENTENCE),
            then: one_line(&notice.then, SENTENCE),
            output: extra.output_tail.clone().filter(|_| notice.with_output),
            link: extra.link.clone().filter(|link| link.starts_with("https://") || link.starts_with("http://")),
        }
    }

    /// A sign that is told apart without colour.
    pub fn mark(&self) -> &'static str {
        match self.state {
            State::Open if self.when == When::Output.as_str() => "ℹ",
            State::Open => "✖",
            State::Recovered => "✔",
            State::Test => "ℹ",
        }
    }

    /// The words of the link.
    pub fn link_words(&self) -> &'static str {
        if self.run.is_some() { "Open the run" } else { "Open Carillon" }
    }
}

/// Who, and what happened to it.
fn title(notice: &Notice) -> String {
    if notice.state == State::Test {
        return format!("Test of the route {}", notice.route);
    }
    if notice.folded > 0 {
        return format!("{} more alerts of the route {}", notice.folded, notice.route);
    }
    let job = match (&notice.namespace, &notice.job) {
        (Some(namespace), Some(job)) if namespace != "default" => Some(format!("{namespace}/{job}")),
        (_, job) => job.clone(),
    };
    let again = if notice.repeats > 0 && notice.state == State::Open { "still: " } else { "" };
    match job {
        Some(job) => format!("{again}{job} {}", words(notice.when, notice.state)),
        None => {
            let part = notice.part.as_ref().map(|part| format!(": {part}")).unwrap_or_default();
            format!("{again}{}{part}", words(notice.when, notice.state))
        }
    }
}

fn words(when: When, state: State) -> &'static str {
    if state == State::Recovered {
        return match when {
            When::NodeLost => "a node is back",
            When::CommitsLost => "lost commits are accepted",
            When::ClockDrift => "a clock is right again",
            When::DatabaseAway => "the database is back",
            When::DiskFull => "a disk has room again",
            When::PluginRefused => "a plugin is loaded again",
            When::CertificateExpires => "a certificate is renewed",
            _ => "has recovered",
        };
    }
    match when {
        When::Failed => "failed",
        When::TimedOut => "timed out",
        When::Lost => "was lost",
        When::Skipped => "was skipped",
        When::LateStart => "did not start in time",
        When::LateFinish => "did not finish in time",
        When::Recovered => "has recovered",
        When::Output => "wrote output",
        When::NodeLost => "a node is lost",
        When::CommitsLost => "the database lost commits",
        When::ClockDrift => "a clock is wrong",
        When::DatabaseAway => "the database is away",
        When::DiskFull => "a disk is nearly full",
        When::PluginRefused => "a plugin is refused",
        When::CertificateExpires => "a certificate ends soon",
    }
}
