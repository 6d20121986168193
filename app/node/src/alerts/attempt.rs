//! One attempt to send: the message is made, sent, and its answer is kept.

use std::sync::Arc;
use std::time::Duration;

use carillon_alerts::{Extra, Left, Outcome, Payload, Sender, render, render_ping};
use carillon_domain::alert::{Answer, Notice, Ping};
use carillon_domain::id::RunId;
use carillon_keeper::KeeperHandle;
use carillon_store::alerts::{Claimed, Message};
use carillon_store::{Clock, ControlError, Store, StoreError, SystemClock};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::command;
use super::handle::AlertsHandle;
use crate::engine::EngineHandle;
use carillon_json::{masked, secrets_of};

/// How much of a run's output goes to those who render a part of it, in bytes.
const TAIL: usize = 16 * 1024;
/// How often the answer is written while the database is away, and how long between.
const TRIES: u32 = 6;
const BETWEEN_TRIES: Duration = Duration::from_secs(2);

/// The parts of an attempt. Clones are the same.
#[derive(Clone)]
pub(super) struct Attempts {
    pub store: Arc<dyn Store>,
    pub engine: EngineHandle,
    pub keeper: KeeperHandle,
    pub sender: Arc<Sender>,
    pub page: String,
    pub stop: CancellationToken,
    pub handle: AlertsHandle,
}

impl Attempts {
    /// Sends a claimed delivery and keeps the answer; how it left its lane.
    pub async fn make(self, claimed: Claimed) -> Left {
        let (answer, left) = match self.send(&claimed).await {
            Ok(Outcome { answer, left }) => (answer, left),
            Err(error) => {
                let words = format!("Not sent: the message could not be made, because {error}.");
                (Answer::Refused { words, permanent: false }, Left::Answered)
            }
        };
        self.note(&claimed, &answer);
        self.settle(&claimed, &answer).await;
        left
    }

    /// Gives a delivery back that was not sent.
    pub async fn give_back(&self, claimed: &Claimed, words: &str) {
        self.settle(claimed, &Answer::Refused { words: words.to_owned(), permanent: false }).await;
    }

    async fn send(&self, claimed: &Claimed) -> Result<Outcome, StoreError> {
        let notice = match (&claimed.message, &claimed.target) {
            (Message::Ping(call), _) => {
                let output = self.output(call.run, Ping::MOST_OUTPUT).await?;
                return Ok(self.sender.post(&render_ping(call, output.as_deref()), SystemClock.now()).await);
            }
            (Message::Notice(notice), Some(target)) => (notice, target),
            (Message::Notice(_), None) => {
                return Ok(done(Answer::Refused {
                    words: "Its route has no such target any more.".into(),
                    permanent: true,
                }));
            }
        };
        let (notice, target) = notice;
        // The reason of a failure may tell as much as its output.
        let secrets = match notice.run {
            Some(run) => self.secrets(run).await?.unwrap_or_default(),
            None => Vec::new(),
        };
        let notice = &Notice { sentence: masked(notice.sentence.clone(), &secrets), ..(**notice).clone() };
        let Some(payload) = render(notice, &self.extra(notice).await?, target) else {
            return Ok(done(Answer::Delivered { words: "Nothing was sent: the run wrote no output.".into() }));
        };
        Ok(match payload {
            Payload::Post(post) => self.sender.post(&post, SystemClock.now()).await,
            Payload::Mail(mail) => self.sender.mail(&mail, notice.at).await,
            Payload::Command(wanted) => {
                let run = self.engine.draw_run_id();
                done(command::run(&self.keeper, run, wanted, &self.stop).await)
            }
        })
    }

    async fn extra(&self, notice: &Notice) -> Result<Extra, StoreError> {
        let mut extra = Extra { link: Some(self.link(notice)), ..Extra::default() };
        if let Some(run) = notice.run.filter(|_| notice.with_output) {
            let most = if notice.cron_mail.is_some() { usize::MAX } else { TAIL };
            extra.output_tail = self.output(run, most).await?;
        }
        if let Some(run) = notice.run.filter(|_| notice.cron_mail.is_some()) {
            extra.host = self.store.run(run).await.ok().and_then(|view| view.node);
        }
        Ok(extra)
    }

    /// The page about it.
    fn link(&self, notice: &Notice) -> String {
        let page = &self.page;
        match (notice.run, &notice.namespace, &notice.job) {
            (Some(run), ..) => format!("{page}/runs/{run}"),
            (None, Some(namespace), Some(job)) => format!("{page}/jobs/{namespace}/{job}"),
            _ if notice.when.of_cluster() => format!("{page}/cluster"),
            _ => format!("{page}/alerts"),
        }
    }

    /// The end of a run's output without the secrets of its job; `None` if none is kept. Nobody knows the secrets of a job that is gone,
    /// so its output stays where it is.
    async fn output(&self, run: RunId, most: usize) -> Result<Option<String>, StoreError> {
        let Some(output) = self.store.output(run).await? else { return Ok(None) };
        let Some(secrets) = self.secrets(run).await? else { return Ok(None) };
        // First masked, then cut: half a secret would not be found.
        let text = masked(String::from_utf8_lossy(&output.bytes).into_owned(), &secrets);
        Ok(Some(text[text.ceil_char_boundary(text.len().saturating_sub(most))..].to_owned()))
    }

    /// The secrets that a run was given; `None` if its job is gone.
    async fn secrets(&self, run: RunId) -> Result<Option<Vec<String>>, StoreError> {
        let gone = |error| match error {
            ControlError::Store(error) => Err(error),
            ControlError::Refused(_) => Ok(None),
        };
        let run = match self.store.run(run).await {
            Ok(run) => run,
            Err(error) => return gone(error),
        };
        let job = match self.store.job(&run.key).await {
            Ok(job) if job.state.id == run.job_id => job,
            Ok(_) => return Ok(None),
            Err(error) => return gone(error),
        };
        let own = run.params.as_deref().unwrap_or("null");
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        Ok(Some(secrets_of(&Value::from(vec![read(&job.job.params), read(own)]))))
    }

    /// Writes the answer. If it cannot be written the lease runs out, and the message is sent again.
    async fn settle(&self, claimed: &Claimed, answer: &Answer) {
        let jitter = getrandom::u32().unwrap_or_default() % 1_001;
        for _ in 0..TRIES {
            match self.store.settle_delivery(self.engine.session(), claimed.id, answer, jitter).await {
                Ok(true) => return,
                Ok(false) => {
                    debug!(delivery = claimed.id, "an answer came too late: another node sends the delivery");
                    return;
                }
                Err(error) => {
                    debug!(delivery = claimed.id, %error, "an answer could not be written");
                    tokio::time::sleep(BETWEEN_TRIES).await;
                }
            }
        }
        warn!(delivery = claimed.id, "an answer could not be written: the message will be sent again");
    }

    fn note(&self, claimed: &Claimed, answer: &Answer) {
        let when = match &claimed.message {
            Message::Notice(notice) => notice.when.as_str(),
            Message::Ping(_) => "ping",
        };
        let (outcome, words) = match answer {
            Answer::Delivered { words } => ("delivered", words),
            Answer::Partly { words, .. } => ("partly", words),
            Answer::Refused { words, .. } => ("refused", words),
            Answer::Unknown { words } => ("unknown", words),
        };
        *self.handle.count().attempts.entry((when, outcome)).or_default() += 1;
        if outcome == "delivered" {
            debug!(delivery = claimed.id, host = claimed.host, "{words}");
        } else {
            info!(
                delivery = claimed.id,
                host = claimed.host,
                tries = claimed.delivery.tries,
                "an alert was not delivered to everybody: {words}"
            );
        }
    }
}

fn done(answer: Answer) -> Outcome {
    Outcome { answer, left: Left::Answered }
}
