//! A child runs in the keeper's own memory until its exec.
//!
//! A fork copies page tables, and later each page that either side writes. The child needs them only until its exec. So it
//! borrows the keeper's memory (CLONE_VM) and gets a stack of its own. The keeper does not wait for its exec (no CLONE_VFORK). A child
//! that hangs before it (a dead network mount, a SIGSTOP from its new user) must not hang the keeper. The fence depends on the
//! keeper's timer.
//!
//! - *Nothing of the keeper's changes under its hands.* The child writes to its stack only; its system calls go past libc
//!   and its errno ([`crate::process::launch::system`]), and no signal has a handler.
//! - *Nothing of the child's goes away.* What it reads is in its cradle, and the files that it needs, which may be the keeper's
//!   own at first ([`crate::process::launch::files`]). A cradle is left alone until the kernel says that the child has left this memory, by
//!   exec or by death (CLONE_CHILD_CLEARTID).
//! - *No other user can trace it.* Before its exec a child may have become another user, who could trace it and so write into the
//!   keeper. Memory that is not dumpable cannot be traced but by root ([`crate::process::startup`] and [`crate::process::launch::child`] see to that),
//!   and no death of a child dumps it: that would end the keeper too.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::process::launch::child::Image;
use crate::process::launch::fork::{CloneArgs, fork_into};
use crate::process::launch::system::clone_into;

/// For a dozen system calls.
const STACK_BYTES: usize = 32 << 10;

#[repr(C, align(16))]
struct Stack(UnsafeCell<MaybeUninit<[u8; STACK_BYTES]>>);

struct Cradle {
    stack: Stack,
    /// Not 0 while a child lives in it. The kernel writes the 0.
    occupied: AtomicI32,
    image: Option<Image>,
}

/// As many as there are children before their exec; none is ever moved.
#[derive(Default)]
pub(crate) struct Cradles(Vec<Box<Cradle>>);

impl Cradles {
    /// Makes a child that becomes `image`, in `cgroup`; its process id.
    pub(crate) fn bear(&mut self, image: Image, cgroup: Option<BorrowedFd<'_>>) -> io::Result<libc::pid_t> {
        let cradle = self.vacant();
        let borrows_files = image.borrows_files();
        let image = ptr::from_ref(cradle.image.insert(image));
        cradle.occupied.store(1, Ordering::Relaxed);
        let stack = cradle.stack.0.get().cast();
        let arguments = CloneArgs::child_in(cgroup).borrowing_files(borrows_files).sharing_memory(
            stack,
            STACK_BYTES,
            cradle.occupied.as_ptr(),
        );
        // SAFETY: stack and image stay where they are and as they are until `occupied` is 0; the stack is aligned. A child
        // that borrows files leaves them as they are.
        let born = unsafe { clone_into(&arguments, Image::begin, image) };
        let pid = match born {
            Ok(pid) => return Ok(libc::pid_t::try_from(pid).unwrap_or_default()),
            Err(errno @ (libc::EAGAIN | libc::ENOMEM)) => Err(io::Error::from_raw_os_error(errno)),
            // An old kernel or a sandbox that allows no clone3: a copy of all this memory does as well.
            // SAFETY: the keeper has one thread; `begin` makes only system calls.
            Err(_) => unsafe { fork_into(cgroup) },
        };
        if matches!(pid, Ok(0)) {
            // SAFETY: this is the child of that fork.
            unsafe { Image::begin(image) }
        }
        cradle.occupied.store(0, Ordering::Relaxed);
        pid
    }

    /// Gives up what the cradles without a child held: files, secrets perhaps. Answers where one of them is.
    pub(crate) fn tidy(&mut self) -> Option<usize> {
        let mut vacant = None;
        for (place, cradle) in self.0.iter_mut().enumerate() {
            // Acquire: what the child read, it has read.
            if cradle.occupied.load(Ordering::Acquire) == 0 {
                cradle.image = None;
                vacant = vacant.or(Some(place));
            }
        }
        vacant
    }

    fn vacant(&mut self) -> &mut Cradle {
        let place = self.tidy().unwrap_or_else(|| {
            let stack = Stack(UnsafeCell::new(MaybeUninit::uninit()));
            self.0.push(Box::new(Cradle { stack, occupied: AtomicI32::new(0), image: None }));
            self.0.len() - 1
        });
        &mut self.0[place]
    }
}

impl Drop for Cradles {
    /// A child that is still in its cradle keeps it.
    fn drop(&mut self) {
        for cradle in self.0.drain(..).filter(|cradle| cradle.occupied.load(Ordering::Acquire) != 0) {
            Box::leak(cradle);
        }
    }
}
