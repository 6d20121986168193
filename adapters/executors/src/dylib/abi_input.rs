//! The facts of a run, from the executor's to the plugin's: the same in a host process and in the server.

use std::ffi::{CStr, c_char, c_void};
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, ptr};

use carillon_plugin::abi::{Env, RunFacts as AbiFacts};
use serde_json::Value;

use crate::executor::{RESERVED, RunFacts};
use crate::shell::secrets;
use carillon_keeper::protocol::fields::{BadFrame, Put, Take};

/// The facts of a run as the plugin gets them. No `Debug`: params and variables may hold secrets.
#[derive(Clone)]
pub(crate) struct AbiInput {
    attempt: u32,
    due_at_ms: i64,
    /// 0 for none.
    deadline_ms: i64,
    fencing_token: u64,
    /// As C wants them, one behind the other: namespace, job, run id and params; then the names of the variables, each
    /// followed by its value.
    texts: Vec<u8>,
}

/// How many texts come before those of the variables.
const BEFORE_VARIABLES: usize = 4;

impl AbiInput {
    /// The input of the plugin; the error is a sentence. The run's time counts from now.
    pub(crate) fn of(facts: &RunFacts) -> Result<Self, String> {
        let mut texts = Texts(Vec::with_capacity(512));
        texts.push(&facts.namespace, || "the namespace".to_owned())?;
        texts.push(&facts.job, || "the job's name".to_owned())?;
        texts.push(facts.run_id, || "the run's id".to_owned())?;
        texts.push(facts.params.text(), || "params".to_owned())?;
        let own = own_variables(facts);
        for (name, value) in facts.variables() {
            if own.iter().all(|(given, _)| given != name) {
                texts.push_variable(name, value)?;
            }
        }
        own.iter().try_for_each(|(name, value)| texts.push_variable(name, value))?;
        Ok(Self {
            attempt: facts.attempt,
            due_at_ms: facts.due_at.as_ms(),
            deadline_ms: facts.timeout.map_or(0, deadline_ms),
            fencing_token: facts.fencing_token,
            texts: texts.0,
        })
    }

    /// Writes them into a frame.
    pub(crate) fn put<'a>(&self, frame: Put<'a>) -> Put<'a> {
        let frame = frame.u32(self.attempt).u64(self.due_at_ms.cast_unsigned()).u64(self.deadline_ms.cast_unsigned());
        frame.u64(self.fencing_token).bytes(&self.texts)
    }

    /// Reads what [`Self::put`] wrote.
    pub(crate) fn take(frame: &mut Take) -> Result<Self, BadFrame> {
        let attempt = frame.u32()?;
        let (due_at_ms, deadline_ms) = (frame.u64()?.cast_signed(), frame.u64()?.cast_signed());
        let (fencing_token, texts) = (frame.u64()?, frame.bytes()?.to_vec());
        let count = texts.iter().filter(|byte| **byte == 0).count();
        if texts.last() != Some(&0) || count < BEFORE_VARIABLES || count % 2 != 0 {
            return Err(BadFrame("the facts of a run are not whole"));
        }
        Ok(Self { attempt, due_at_ms, deadline_ms, fencing_token, texts })
    }

    /// Where its variables are. Valid while `self` is.
    pub(crate) fn variables(&self) -> Vec<Env> {
        let mut texts = self.pointers().skip(BEFORE_VARIABLES);
        let mut variables = Vec::with_capacity(16);
        while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
            variables.push(Env { name, value });
        }
        variables
    }

    /// Valid while `self` and `variables` are.
    pub(crate) fn for_plugin(&self, variables: &[Env], callbacks: &Callbacks) -> AbiFacts {
        let mut texts = self.pointers();
        let mut next = || texts.next().unwrap_or(c"".as_ptr());
        AbiFacts {
            struct_size: size_of::<AbiFacts>() as u32,
            attempt: self.attempt,
            job_namespace: next(),
            job: next(),
            run_id: next(),
            due_at_ms: self.due_at_ms,
            deadline_ms: self.deadline_ms,
            fencing_token: self.fencing_token,
            params_json: next(),
            env: if variables.is_empty() { ptr::null() } else { variables.as_ptr() },
            env_count: u32::try_from(variables.len()).unwrap_or(u32::MAX),
            reserved: 0,
            host: callbacks.host,
            write: callbacks.write,
            cancelled: callbacks.cancelled,
        }
    }

    /// Where each text begins. Each is followed by a NUL.
    fn pointers(&self) -> impl Iterator<Item = *const c_char> {
        let mut rest = &self.texts[..];
        std::iter::from_fn(move || {
            let text = CStr::from_bytes_until_nul(rest).ok()?;
            rest = rest.get(text.count_bytes() + 1..).unwrap_or_default();
            Some(text.as_ptr())
        })
    }
}

/// Texts as C wants them, one behind the other.
struct Texts(Vec<u8>);

impl Texts {
    fn push(&mut self, text: impl fmt::Display, what: impl Fn() -> String) -> Result<(), String> {
        let begin = self.0.len();
        let _infallible = write!(self.0, "{text}");
        if self.0[begin..].contains(&0) {
            return Err(format!("{} holds a NUL character", what()));
        }
        self.0.push(0);
        Ok(())
    }

    fn push_variable(&mut self, name: &str, value: impl fmt::Display) -> Result<(), String> {
        let what = || format!("the variable {name:?}");
        self.push(name, what)?;
        self.push(value, what)
    }
}

/// The functions that a plugin may call during a run, and what it hands them.
pub(crate) struct Callbacks {
    pub(crate) host: *mut c_void,
    pub(crate) write: unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> i32,
    pub(crate) cancelled: unsafe extern "C" fn(*mut c_void) -> i32,
}

/// `params.env`, if the plugin's schema allows one. Variables are told to the plugin, and never put into the environment of a process.
/// Many runs share that process, and LD_PRELOAD would make other code run in it.
fn own_variables(facts: &RunFacts) -> Vec<(String, String)> {
    let Some(Value::Object(env)) = facts.params.field("env") else { return Vec::new() };
    let own = env.iter().filter_map(|(name, value)| Some((name.clone(), secrets::text(value)?.to_owned())));
    own.filter(|(name, _)| !name.starts_with(RESERVED)).collect()
}

fn deadline_ms(timeout: Duration) -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.saturating_add(timeout).as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use carillon_domain::id::RunId;
    use carillon_domain::time::Timestamp;
    use serde_json::json;

    use super::*;
    use carillon_keeper::protocol::fields::next_frame;

    fn facts(params: Value) -> RunFacts {
        RunFacts {
            run_id: RunId::from_parts(1, 2),
            namespace: "default".to_owned(),
            job: "try".to_owned(),
            due_at: Timestamp::from_ms(-5),
            attempt: 3,
            fencing_token: u64::MAX,
            timeout: None,
            kill_grace: Duration::ZERO,
            trace: None,
            params: params.into(),
        }
    }

    fn texts(facts: &AbiInput) -> Vec<&str> {
        // SAFETY: each points to a text that ends in a NUL.
        facts.pointers().map(|text| unsafe { CStr::from_ptr(text) }.to_str().unwrap()).collect()
    }

    #[test]
    fn facts_survive_the_pipe() {
        let params = json!({"env": {"LANG": "de", "X": {"value": "\"", "secret": true}, "CARILLON_JOB": "other"}});
        let whole = AbiInput::of(&facts(params.clone())).unwrap();
        let mut frame = Vec::new();
        whole.put(Put::frame(&mut frame, 1)).done();
        let body = &next_frame(&frame, 1 << 20).unwrap().unwrap().0[1..];
        let read = AbiInput::take(&mut Take(body)).unwrap();
        assert_eq!((read.attempt, read.due_at_ms, read.deadline_ms, read.fencing_token), (3, -5, 0, u64::MAX));
        let params = params.to_string();
        let told = texts(&read);
        assert_eq!(told[..BEFORE_VARIABLES], ["default", "try", "0000000000000001-2", params.as_str()]);
        assert_eq!(told, texts(&whole));
        let variables: Vec<_> = told[BEFORE_VARIABLES..].chunks(2).map(|pair| (pair[0], pair[1])).collect();
        assert_eq!(variables.len(), read.variables().len());
        for variable in [("LANG", "de"), ("X", "\""), ("CARILLON_JOB", "try"), ("CARILLON_ATTEMPT", "3")] {
            assert_eq!(variables.iter().filter(|(name, _)| *name == variable.0).collect::<Vec<_>>(), [&variable]);
        }
        for end in 0..body.len() {
            assert!(AbiInput::take(&mut Take(&body[..end])).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn facts_that_are_not_whole_are_refused() {
        for texts in [&b""[..], b"a\0b\0c\0", b"a\0b\0c\0d", b"a\0b\0c\0d\0NAME\0"] {
            let odd = AbiInput { texts: texts.to_vec(), ..AbiInput::of(&facts(json!({}))).unwrap() };
            let mut frame = Vec::new();
            odd.put(Put::frame(&mut frame, 1)).done();
            assert!(AbiInput::take(&mut Take(&frame[5..])).is_err(), "{texts:?}");
        }
    }

    #[test]
    fn a_nul_is_refused_with_its_place() {
        let refused = |params| AbiInput::of(&facts(params)).err().unwrap();
        assert_eq!(refused(json!({"env": {"X": "a\0"}})), "the variable \"X\" holds a NUL character");
        assert_eq!(
            AbiInput::of(&RunFacts { job: "a\0".into(), ..facts(json!({})) }).err().unwrap(),
            "the job's name holds a NUL character"
        );
    }
}
