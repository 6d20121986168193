//! The trait behind the C ABI, called as Carillon calls it, with a host made of two fields.

use std::ffi::{CStr, CString, c_char, c_void};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use carillon_plugin::abi::{ABI_VERSION, Descriptor, Env, FAILED, RunFacts, RunResult, SUCCEEDED};
use carillon_plugin::{Failure, Plugin, Run, export_plugin};
use serde::Deserialize;

#[derive(Default)]
struct Probe;

#[derive(Deserialize)]
struct Params {
    what: String,
}

impl Plugin for Probe {
    const NAME: &'static str = "probe";
    const VERSION: &'static str = "1.2.3";
    const PARAMS_SCHEMA: &'static str = r#"{"type":"object"}"#;
    type Params = Params;

    fn run(&self, params: Params, run: &Run<'_>) -> Result<(), Failure> {
        match params.what.as_str() {
            "facts" => facts(run),
            "threads" => std::thread::scope(|scope| {
                (0..4).for_each(|_| drop(scope.spawn(|| run.output().write_all(b"x").unwrap())));
                Ok(())
            }),
            "error" => Err("twelve".parse::<u32>().unwrap_err().into()),
            "code" => Err(Failure::new("a\0b").with_exit_code(42)),
            "long" => Err(Failure::new("€".repeat(2000))),
            "panic" => panic!("at {}", params.what),
            "strange panic" => std::panic::panic_any(7),
            "sleep" => run.sleep(Duration::from_secs(3600)),
            "write" => Ok(write!(run.output(), "refuse")?),
            other => Err(Failure::new(other)),
        }
    }
}

export_plugin!(Probe);

fn facts(run: &Run<'_>) -> Result<(), Failure> {
    assert_eq!((run.namespace(), run.job(), run.run_id(), run.attempt()), ("space", "job", "id", 3));
    assert_eq!((run.due_at(), run.deadline()), (UNIX_EPOCH + Duration::from_millis(1500), Some(UNIX_EPOCH + NEVER)));
    assert!(run.remaining().unwrap() > Duration::from_secs(3600));
    assert_eq!((run.fencing_token(), run.firing_id().as_str()), (u64::MAX, "space/job/1970-01-01T00:00:01.500Z"));
    assert_eq!(run.env().collect::<Vec<_>>(), [("NAME", "value")]);
    assert!(!run.cancelled());
    run.go_on()
}

const NEVER: Duration = Duration::from_secs(1 << 40);

/// The context behind the callbacks of a plugin.
#[derive(Default)]
struct Host {
    output: Mutex<Vec<u8>>,
    stop: AtomicBool,
}

/// # Safety
/// `host` must be what [`call`] put into the facts.
unsafe fn host<'a>(host: *mut c_void) -> &'a Host {
    // SAFETY: promised by the caller.
    unsafe { &*host.cast::<Host>() }
}

unsafe extern "C" fn write(pointer: *mut c_void, data: *const c_char, length: usize) -> i32 {
    // SAFETY: the plugin hands over a slice, and the pointer of the facts.
    let (host, bytes) = unsafe { (host(pointer), std::slice::from_raw_parts(data.cast::<u8>(), length)) };
    if bytes == b"refuse" {
        return 32;
    }
    host.output.lock().unwrap().extend_from_slice(bytes);
    0
}

unsafe extern "C" fn cancelled(pointer: *mut c_void) -> i32 {
    // SAFETY: the plugin hands over the pointer of the facts.
    unsafe { host(pointer) }.stop.load(Ordering::Relaxed).into()
}

unsafe extern "C" {
    fn carillon_plugin_init(host_abi_version: u32) -> *const Descriptor;
}

/// Status, exit code and message of one run.
fn call(host: &Host, params: &str) -> (i32, i32, String) {
    // SAFETY: exported above.
    let descriptor = unsafe { &*carillon_plugin_init(ABI_VERSION) };
    let params = CString::new(params).unwrap();
    let env = [Env { name: c"NAME".as_ptr(), value: c"value".as_ptr() }];
    let facts = RunFacts {
        struct_size: size_of::<RunFacts>() as u32,
        attempt: 3,
        job_namespace: c"space".as_ptr(),
        job: c"job".as_ptr(),
        run_id: c"id".as_ptr(),
        due_at_ms: 1500,
        deadline_ms: NEVER.as_millis() as i64,
        fencing_token: u64::MAX,
        params_json: params.as_ptr(),
        env: env.as_ptr(),
        env_count: 1,
        reserved: 0,
        host: (&raw const *host).cast_mut().cast(),
        write,
        cancelled,
    };
    let mut message = vec![0_u8; 1024];
    let mut result = RunResult {
        struct_size: size_of::<RunResult>() as u32,
        status: FAILED,
        exit_code: 0,
        message_capacity: 1024,
        message: message.as_mut_ptr().cast(),
    };
    // SAFETY: all is there for the call, as the ABI has it.
    unsafe { descriptor.run.unwrap()(&raw const facts, &raw mut result) };
    let message = CStr::from_bytes_until_nul(&message).unwrap().to_str().unwrap().to_owned();
    (result.status, result.exit_code, message)
}

fn what(what: &str) -> (i32, i32, String) {
    call(&Host::default(), &format!("{{\"what\": \"{what}\"}}"))
}

fn failed(exit_code: i32, message: &str) -> (i32, i32, String) {
    (FAILED, exit_code, message.to_owned())
}

#[test]
fn a_plugin_describes_itself() {
    // SAFETY: exported above; a descriptor's strings are constant.
    let texts = unsafe {
        let descriptor = &*carillon_plugin_init(ABI_VERSION);
        assert_eq!((descriptor.abi_version, descriptor.struct_size as usize), (1, size_of::<Descriptor>()));
        [descriptor.name, descriptor.version, descriptor.params_schema].map(|text| CStr::from_ptr(text))
    };
    assert_eq!(texts, [c"probe", c"1.2.3", c"{\"type\":\"object\"}"]);
}

#[test]
fn facts_and_output_reach_the_plugin() {
    assert_eq!(what("facts"), (SUCCEEDED, 0, String::new()));
    let host = Host::default();
    assert_eq!(call(&host, r#"{"what": "threads"}"#), (SUCCEEDED, 0, String::new()));
    assert_eq!(host.output.into_inner().unwrap(), b"xxxx");
    assert_eq!(what("write"), failed(1, "Broken pipe (os error 32)"));
}

#[test]
fn errors_and_panics_are_failed_runs() {
    assert_eq!(what("error"), failed(1, "invalid digit found in string"));
    assert_eq!(what("code"), failed(42, "a b"));
    assert_eq!(what("panic"), failed(1, "the plugin panicked: at panic"));
    assert_eq!(what("strange panic"), failed(1, "the plugin panicked: with no message"));
    assert_eq!(what("long"), failed(1, &"€".repeat(1023 / 3)));
    let (status, _, message) = call(&Host::default(), "{}");
    assert_eq!((status, message.contains("missing field `what`")), (FAILED, true));
}

#[test]
fn a_sleeping_plugin_wakes_when_it_is_to_stop() {
    let host = Host::default();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| call(&host, r#"{"what": "sleep"}"#));
        host.stop.store(true, Ordering::Relaxed);
        assert_eq!(run.join().unwrap(), failed(1, "stopped, because it was asked to stop"));
    });
}
