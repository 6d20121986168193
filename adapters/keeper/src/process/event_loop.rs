//! The keeper's event loop: wait, apply the clock, reap, report.
//!
//! Every round is bounded: one read per run, a few dozen spawns, one look at what ended runs left behind. So endless output,
//! a burst of spawns or a fork bomb delays the fence by milliseconds at most.

use std::io::Write;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signalfd::SignalFd;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::clock::boottime_ms;
use crate::process::frozen_node::Node;
use crate::process::node_socket::Link;
use crate::process::run_supervisor::Runs;
use crate::protocol::frames::Command;

/// Commands carried out in one round; each may be a fork.
const COMMANDS_PER_ROUND: usize = 32;
/// Events taken in one round; each may be a read of a pipe.
const EVENTS_PER_ROUND: usize = 128;

const LINK: u64 = u64::MAX;
const CHILDREN: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;

/// The loop and what it waits for. Runs are events by their key, which is smaller than the three names above.
pub(crate) struct Keeper {
    epoll: Rc<Epoll>,
    link: Link,
    /// The events of the socket; `None` once the node is gone, as it would never be quiet again.
    link_interest: Option<EpollFlags>,
    children: SignalFd,
    timer: TimerFd,
    timer_at_ms: Option<u64>,
    runs: Runs,
    /// The node, if it is to be killed when its lease is over.
    node: Option<Node>,
    more_commands: bool,
}

impl Keeper {
    pub(crate) fn new(
        epoll: Rc<Epoll>,
        link: Link,
        children: SignalFd,
        runs: Runs,
        node: Option<Node>,
    ) -> nix::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        epoll.add(link.fd(), EpollEvent::new(link.interest(), LINK))?;
        let link_interest = Some(link.interest());
        epoll.add(children.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, CHILDREN))?;
        epoll.add(timer.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        let (timer_at_ms, more_commands) = (None, false);
        Ok(Self { epoll, link, link_interest, children, timer, timer_at_ms, runs, node, more_commands })
    }

    /// Serves until the node is gone and no child is left.
    pub(crate) fn serve(&mut self) -> nix::Result<()> {
        loop {
            let now_ms = boottime_ms();
            self.runs.keep_time(now_ms);
            let reaped = self.runs.reap();
            self.runs.finish_ended(now_ms, reaped, &mut self.link);
            self.link.send();
            if self.link.is_gone() {
                self.runs.abandon();
                if self.runs.nothing_is_left() {
                    return Ok(());
                }
            }
            self.wait()?;
            self.obey()?;
            self.keep_time_of_the_node(now_ms);
        }
    }

    /// `now_ms` is from before the last read of the socket. If the keeper itself was delayed, a lease that the node sent in
    /// that time counts.
    fn keep_time_of_the_node(&mut self, now_ms: u64) {
        if let Some(node) = self.node.as_mut().filter(|_| !self.more_commands) {
            node.keep_time(now_ms, self.runs.deadline_ms());
        }
    }

    fn wait(&mut self) -> nix::Result<()> {
        self.set_link_interest()?;
        self.set_timer()?;
        let busy = self.more_commands || self.runs.more_to_reap();
        let timeout = if busy { EpollTimeout::ZERO } else { EpollTimeout::NONE };
        let mut events = [EpollEvent::empty(); EVENTS_PER_ROUND];
        let count = match self.epoll.wait(&mut events, timeout) {
            Err(Errno::EINTR) => 0,
            other => other?,
        };
        // The clock comes first: what arrived together with the end of the lease arrived too late.
        self.runs.keep_time(boottime_ms());
        for event in &events[..count] {
            match event.data() {
                LINK => self.on_link(event.events()),
                CHILDREN => {
                    while matches!(self.children.read_signal(), Ok(Some(_))) {}
                    self.runs.children_changed();
                }
                TIMER => {
                    self.timer_at_ms = None;
                    // Non-blocking; a timer that was set again has nothing to read.
                    let _ = self.timer.wait();
                }
                run => self.runs.read_output(run, &mut self.link),
            }
        }
        Ok(())
    }

    fn set_link_interest(&mut self) -> nix::Result<()> {
        let interest = (!self.link.is_gone()).then(|| self.link.interest());
        if interest != self.link_interest {
            self.link_interest = interest;
            match interest {
                Some(interest) => self.epoll.modify(self.link.fd(), &mut EpollEvent::new(interest, LINK))?,
                None => self.epoll.delete(self.link.fd())?,
            }
        }
        Ok(())
    }

    fn on_link(&mut self, events: EpollFlags) {
        if events.intersects(EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR | EpollFlags::EPOLLRDHUP) {
            self.link.set_gone();
        } else if events.contains(EpollFlags::EPOLLIN) {
            self.link.receive();
        }
    }

    fn obey(&mut self) -> nix::Result<()> {
        self.more_commands = false;
        for _ in 0..COMMANDS_PER_ROUND {
            let command = match self.link.next_command() {
                Ok(Some(command)) => command,
                Ok(None) => return Ok(()),
                Err(error) => {
                    // `eprintln` would panic if the reader is gone.
                    let _ = writeln!(std::io::stderr(), "carillon keeper: {error}; ending every run");
                    self.link.set_gone();
                    return Ok(());
                }
            };
            match command {
                Command::Spawn(spawn) => self.runs.spawn(spawn, boottime_ms(), &mut self.link),
                Command::Stop(run, how) => self.runs.stop(run, how, boottime_ms()),
                Command::ExtendDeadline(deadline_ms) => self.runs.extend_deadline(deadline_ms),
            }
        }
        self.more_commands = true;
        Ok(())
    }

    fn set_timer(&mut self) -> nix::Result<()> {
        let node = self.node.as_ref().and_then(|node| node.killed_at_ms(self.runs.deadline_ms()));
        let wake_at_ms = [self.runs.next_wake_ms(), node].into_iter().flatten().min();
        if wake_at_ms == self.timer_at_ms {
            return Ok(());
        }
        self.timer_at_ms = wake_at_ms;
        match wake_at_ms {
            // Zero would disarm the timer.
            Some(at_ms) => {
                let at = TimeSpec::from_duration(Duration::from_millis(at_ms.clamp(1, i64::MAX as u64 / 1_000_000)));
                self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            }
            None => self.timer.unset(),
        }
    }
}
