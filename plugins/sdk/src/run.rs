//! One run, as a plugin sees it.

use std::ffi::{CStr, c_char};
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::abi;
use crate::failure::Failure;
use crate::time::rfc3339;

/// How long [`Run::sleep`] takes to notice that the run is to stop.
const NOTICE: Duration = Duration::from_millis(10);

/// The facts of one run, its output, and whether it is to stop. May be shared among threads.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    facts: &'a abi::RunFacts,
}

// SAFETY: the ABI promises that the facts are constant while `run` runs, and 'a does not outlast it. The callbacks may be called
// from any thread, from several at a time.
unsafe impl Send for Run<'_> {}
// SAFETY: as above.
unsafe impl Sync for Run<'_> {}

impl<'a> Run<'a> {
    /// # Safety
    /// `facts` must hold what the ABI promises, for as long as `'a`.
    pub(crate) unsafe fn new(facts: &'a abi::RunFacts) -> Self {
        Self { facts }
    }

    /// Namespace of the job.
    pub fn namespace(&self) -> &'a str {
        self.text(self.facts.job_namespace)
    }

    /// Name of the job.
    pub fn job(&self) -> &'a str {
        self.text(self.facts.job)
    }

    /// Unique among all runs of all jobs.
    pub fn run_id(&self) -> &'a str {
        self.text(self.facts.run_id)
    }

    /// 1 for the first attempt at this firing.
    pub fn attempt(&self) -> u32 {
        self.facts.attempt
    }

    /// When the firing was due.
    pub fn due_at(&self) -> SystemTime {
        instant(self.facts.due_at_ms)
    }

    /// When the firing was due, in RFC 3339, in UTC, with milliseconds: as Carillon writes it everywhere.
    pub fn due_at_rfc3339(&self) -> String {
        rfc3339(self.facts.due_at_ms)
    }

    /// Identifies the firing: `namespace/job/due time`, such as `default/nightly-backup/2027-01-15T03:00:00.000Z`. The same
    /// for each attempt at it, so that whoever is asked twice can tell.
    pub fn firing_id(&self) -> String {
        format!("{}/{}/{}", self.namespace(), self.job(), self.due_at_rfc3339())
    }

    /// When the run will be stopped; `None` for never.
    pub fn deadline(&self) -> Option<SystemTime> {
        (self.facts.deadline_ms != 0).then(|| instant(self.facts.deadline_ms))
    }

    /// How long is left until the deadline; zero when it has passed.
    pub fn remaining(&self) -> Option<Duration> {
        let deadline = self.deadline()?;
        Some(deadline.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// Grows with every start of the job. Hand it to what the plugin writes to, so that it can refuse a smaller one.
    pub fn fencing_token(&self) -> u64 {
        self.facts.fencing_token
    }

    /// The job's params as JSON text, as they were before serde read them.
    pub fn params_json(&self) -> &'a str {
        self.text(self.facts.params_json)
    }

    /// The run's variables: name and value. They are not those of the process.
    pub fn env(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let variables = if self.facts.env.is_null() {
            &[][..]
        } else {
            // SAFETY: the ABI promises `env_count` variables there, for 'a.
            unsafe { std::slice::from_raw_parts(self.facts.env, self.facts.env_count as usize) }
        };
        let run = *self;
        variables.iter().map(move |variable| (run.text(variable.name), run.text(variable.value)))
    }

    /// Where to write the run's output. Each write goes out at once; wrap it into a `BufWriter` for many small ones.
    pub fn output(&self) -> Output<'a> {
        Output { run: *self }
    }

    /// Whether the run is to stop: somebody cancelled it, or its time is over. Cheap; stays true.
    pub fn cancelled(&self) -> bool {
        // SAFETY: the ABI allows this from any thread while `run` runs.
        unsafe { (self.facts.cancelled)(self.facts.host) != 0 }
    }

    /// [`Run::cancelled`] as an error, for `?`.
    pub fn go_on(&self) -> Result<(), Failure> {
        if self.cancelled() { Err(Failure::new("stopped, because it was asked to stop")) } else { Ok(()) }
    }

    /// Sleeps, and wakes with an error when the run is to stop.
    pub fn sleep(&self, duration: Duration) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            self.go_on()?;
            match duration.checked_sub(began.elapsed()) {
                Some(rest) if !rest.is_zero() => std::thread::sleep(rest.min(NOTICE)),
                _ => return Ok(()),
            }
        }
    }

    fn text(&self, pointer: *const c_char) -> &'a str {
        // SAFETY: the ABI promises a string that ends in a NUL and lives for 'a.
        let text = unsafe { CStr::from_ptr(pointer) };
        // It also promises UTF-8; should that not hold, nothing is better than a crash.
        text.to_str().unwrap_or_default()
    }
}

/// Writes to the output of a run, from any thread. The server keeps the first and the last 32 KiB.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    run: Run<'a>,
}

impl io::Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let facts = self.run.facts;
        // SAFETY: the bytes are there for the call, and the ABI allows it from any thread while `run` runs.
        match unsafe { (facts.write)(facts.host, bytes.as_ptr().cast(), bytes.len()) } {
            0 => Ok(bytes.len()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn instant(ms: i64) -> SystemTime {
    let distance = Duration::from_millis(ms.unsigned_abs());
    if ms < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}
