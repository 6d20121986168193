//! The machine's own spawn rate: `raw PIPE SECONDS PROGRAM ARGUMENT...` starts a program and waits for it, again and again,
//! as cheaply as Linux can, and prints how often that went.
//!
//! It is a process of its own for each spawner: small, with one thread and memory that it shares with nobody but the child
//! that it waits for.

use std::ffi::{CStr, CString, OsString, c_char, c_void};
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::process::{Command, ExitCode, Stdio};
use std::ptr;
use std::time::{Duration, Instant};

/// For the child before its exec, which needs next to none.
const STACK_BYTES: usize = 64 << 10;

/// As a run of the shell executor finds it: a shell looks up what LANG names.
const ENVIRONMENT: [&CStr; 4] = [
    c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    c"HOME=/root",
    c"LANG=C.UTF-8",
    c"USER=root",
];

/// Spawns of `argv` a second by so many spawners at the same time, with or without a pipe that is read to its end.
pub fn rate(argv: &[&str], spawners: usize, pipe: bool, seconds: f64) -> f64 {
    let start = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("raw").args([pipe.to_string(), seconds.to_string()]).args(argv);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let all: Vec<_> = (0..spawners).map(|_| start()).collect();
    let count = |spawner: std::process::Child| {
        let output = spawner.wait_with_output().unwrap().stdout;
        String::from_utf8(output).unwrap().trim().parse::<f64>().unwrap()
    };
    all.into_iter().map(count).sum()
}

/// A spawner: prints its own spawns a second.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.map(OsString::into_string).map(Result::unwrap);
    let pipe: bool = arguments.next().unwrap().parse().unwrap();
    let time = Duration::from_secs_f64(arguments.next().unwrap().parse().unwrap());
    let argv: Vec<CString> = arguments.map(|argument| CString::new(argument).unwrap()).collect();
    let argv: Vec<*const c_char> = argv.iter().map(|argument| argument.as_ptr()).chain([ptr::null()]).collect();
    let mut stack = vec![0_u128; STACK_BYTES / 16];
    let (began, mut spawns) = (Instant::now(), 0_u32);
    while began.elapsed() < time {
        let (output, writer) =
            if pipe { std::io::pipe().map(|(r, w)| (Some(r), Some(w))).unwrap() } else { (None, None) };
        let child = Child { argv: argv.as_ptr(), output: writer.as_ref().map(AsRawFd::as_raw_fd) };
        let pid = child.start(&mut stack);
        drop(writer);
        if let Some(mut output) = output {
            assert_eq!(output.read(&mut [0; 4096]).unwrap(), 0);
        }
        let mut status = -1;
        // SAFETY: waits for that child; `status` is valid for writing.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert_eq!(status, 0);
        spawns += 1;
    }
    println!("{}", f64::from(spawns) / began.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}

struct Child {
    argv: *const *const c_char,
    output: Option<RawFd>,
}

impl Child {
    fn start(&self, stack: &mut [u128]) -> libc::pid_t {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: this thread, the only one, sleeps until the child is its program or dead; till then the child uses the
        // stack and reads what `self` points to.
        unsafe {
            libc::clone(become_program, stack.as_mut_ptr_range().end.cast(), flags, ptr::from_ref(self) as *mut c_void)
        }
    }
}

extern "C" fn become_program(child: *mut c_void) -> libc::c_int {
    // SAFETY: `start` hands over a `Child` that outlives this call; both arrays end in a null pointer.
    unsafe {
        let child = &*child.cast::<Child>();
        if let Some(output) = child.output {
            libc::dup2(output, 1);
            libc::dup2(output, 2);
        }
        let env = ENVIRONMENT.map(CStr::as_ptr);
        let env = [env[0], env[1], env[2], env[3], ptr::null()];
        libc::execve(*child.argv, child.argv, env.as_ptr());
        libc::_exit(127)
    }
}
