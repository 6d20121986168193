//! Following a run to its end, and seeing to it that it comes to one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::limits::Limits;
use super::link::HostLink;
use super::server::InServer;
use super::slots::{End, Slots};
use super::verdict::Stopped;

/// A run that is to stop is told so again and again: a signal that comes just before a system call interrupts nothing.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A run that goes on and is waited for.
pub(super) struct Ongoing {
    key: u64,
    end: oneshot::Receiver<End>,
    place: Place,
    over: bool,
}

/// Where a run goes on.
#[derive(Clone)]
pub(super) enum Place {
    Host(Arc<HostLink>),
    Server(Arc<InServer>),
}

impl Place {
    /// What is kept there of its runs.
    pub(super) fn slots(&self) -> &Slots {
        match self {
            Self::Host(host) => &host.slots,
            Self::Server(server) => &server.slots,
        }
    }
}

impl Ongoing {
    /// The run of that key, whose end is told to `end`.
    pub(super) fn new(key: u64, end: oneshot::Receiver<End>, place: Place) -> Self {
        Self { key, end, place, over: false }
    }

    /// Waits for the end of the run, and sees to it that it comes. The second answer is why it was to stop, if it was.
    pub(super) async fn follow(mut self, limits: &Limits) -> (End, Option<Stopped>) {
        let (how, mut reason) = tokio::select! {
            biased;
            end = Self::ended(&mut self.end, &mut self.over) => return (end, None),
            stopped = limits.reached() => stopped,
        };
        let kill_grace = limits.kill_grace;
        let mut patience = std::pin::pin!(limits.patience());
        let mut patient = true;
        loop {
            self.cancel();
            tokio::select! {
                biased;
                end = Self::ended(&mut self.end, &mut self.over) => return (end, Some((how, reason))),
                () = &mut patience, if patient => {
                    patient = false;
                    let killed = self.give_up();
                    reason = format!("{reason}; it did not return within {kill_grace:?}{killed}");
                }
                () = tokio::time::sleep(ASK_EVERY) => {}
            }
        }
    }

    async fn ended(end: &mut oneshot::Receiver<End>, over: &mut bool) -> End {
        match end.await {
            Ok(end) => {
                *over = true;
                end
            }
            // Whoever holds the other side tells every run of its end before it goes; then this is the server's own end.
            Err(_) => std::future::pending().await,
        }
    }

    fn cancel(&self) {
        match &self.place {
            Place::Host(host) => host.cancel(self.key),
            Place::Server(server) => server.cancel(self.key),
        }
    }

    /// Ends it by force, if there is one; how, as a part of a sentence.
    fn give_up(&self) -> &'static str {
        match &self.place {
            Place::Host(host) => {
                host.give_up(self.key);
                ", so its process was killed"
            }
            Place::Server(server) => {
                server.give_up(self.key);
                ""
            }
        }
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        if !self.over {
            self.cancel();
            self.give_up();
        }
    }
}
