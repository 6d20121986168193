//! Kills a frozen node that has runs in its own process.
//!
//! The keeper kills children at the deadline of the lease; a run in the node can only be ended with the node. One that is
//! awake ends itself. A frozen node would continue its runs after
//! it wakes, when another node has them, so the keeper kills it.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};

/// The node, which is to be gone some time after the deadline of its lease.
pub(crate) struct Node {
    pid: Pid,
    /// How long it has to end by itself, in milliseconds.
    grace_ms: u64,
    killed: bool,
}

impl Node {
    /// The process that has started this one.
    pub(crate) fn parent(grace_ms: u64) -> Self {
        Self { pid: getppid(), grace_ms, killed: false }
    }

    /// Whether it is process 1 of a container. No process in the container can kill that one.
    pub(crate) fn is_init(&self) -> bool {
        self.pid.as_raw() == 1
    }

    /// When it is to be gone, if its lease ends at `deadline_ms`; `None` if there is no lease yet, or one without an end.
    pub(crate) fn killed_at_ms(&self, deadline_ms: u64) -> Option<u64> {
        (deadline_ms != 0 && !self.killed).then(|| deadline_ms.checked_add(self.grace_ms)).flatten()
    }

    /// Kills it if its time is over. To be asked only when no longer lease can be on its way.
    pub(crate) fn keep_time(&mut self, now_ms: u64, deadline_ms: u64) {
        if self.killed_at_ms(deadline_ms).is_some_and(|at_ms| now_ms >= at_ms) {
            self.killed = true;
            // A parent that is gone has been replaced, and its number may be somebody else's by now.
            if getppid() == self.pid {
                // A refusal leaves it to end itself.
                let _ = kill(self.pid, Signal::SIGKILL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lease_with_an_end_has_an_end() {
        let node = Node::parent(500);
        for (deadline_ms, at_ms) in [(0, None), (1_000, Some(1_500)), (u64::MAX, None)] {
            assert_eq!(node.killed_at_ms(deadline_ms), at_ms);
        }
    }
}
