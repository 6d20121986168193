//! The functions that [`export_plugin!`](crate::export_plugin) calls, from the C ABI to the trait. Not for use by hand.

use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{FAILED, RunFacts, RunResult, SUCCEEDED};
use crate::{Failure, Plugin, Run};

/// The bytes of `text` and a NUL. `N` must be one more than its length.
pub const fn with_nul<const N: usize>(text: &str) -> [u8; N] {
    let text = text.as_bytes();
    assert!(text.len() + 1 == N, "the array must have room for the text and a NUL");
    let mut bytes = [0; N];
    let mut i = 0;
    while i < text.len() {
        assert!(text[i] != 0, "a plugin's name, version and schema cannot hold a NUL character");
        bytes[i] = text[i];
        i += 1;
    }
    bytes
}

/// Executes one run, catching panics.
///
/// # Safety
/// Both pointers must be what the ABI promises to a plugin's `run`.
pub unsafe fn run<'a, P: Plugin>(plugin: impl Fn() -> &'a P, facts: *const RunFacts, result: *mut RunResult) {
    // SAFETY: promised by the caller; the borrows end with this call.
    let (run, result) = unsafe { (Run::new(&*facts), &mut *result) };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let outcome = match serde_json::from_str(run.params_json()) {
            Ok(params) => plugin().run(params, &run),
            Err(error) => Err(Failure::new(format!("the params are not what the plugin expects: {error}"))),
        };
        // println! is buffered in this library's own copy of std, which no other code flushes.
        let _ = std::io::stdout().flush();
        outcome
    }));
    let outcome = outcome.unwrap_or_else(|payload| Err(Failure::new(panic_sentence(payload))));
    match outcome {
        Ok(()) => (result.status, result.exit_code) = (SUCCEEDED, 0),
        Err(failure) => {
            (result.status, result.exit_code) = (FAILED, failure.exit_code().into());
            // SAFETY: promised by the caller.
            unsafe { write_message(result, failure.message()) };
        }
    }
}

fn panic_sentence(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("with no message");
    let sentence = format!("the plugin panicked: {text}");
    // A payload may itself panic when it is dropped.
    std::mem::forget(payload);
    sentence
}

/// As much of `message` as fits, cut between two characters; its NULs become spaces.
///
/// # Safety
/// `result` must have the buffer that the ABI promises.
unsafe fn write_message(result: &mut RunResult, message: &str) {
    let Some(room) = (result.message_capacity as usize).checked_sub(1) else { return };
    let length = message.floor_char_boundary(room);
    let bytes: Vec<u8> =
        message.as_bytes()[..length].iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    // SAFETY: the buffer has room for `length` bytes and a NUL, and no other thread uses it now.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), result.message, length);
        result.message.add(length).write(0);
    }
}
