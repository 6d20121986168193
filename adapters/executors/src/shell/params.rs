//! A shell job's `params`: read once, with every problem named by its field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::secrets;
use crate::executor::RESERVED;

/// One string of a command line can be no longer (MAX_ARG_STRLEN of Linux, its NUL included), in bytes.
const STRING_BYTES: usize = 131_071;
const FIELDS: [&str; 7] = ["command", "argv", "env", "dir", "stdin", "shell", "user"];

/// The command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// `shell -c command`.
    Command { shell: String, command: String },
    /// The program and its arguments, with no shell.
    Argv(Vec<String>),
}

/// Params that may be run. No `Debug`: they hold secrets.
pub(super) struct Params {
    pub(super) program: Program,
    pub(super) env: BTreeMap<String, String>,
    pub(super) dir: Option<String>,
    pub(super) stdin: Option<String>,
    pub(super) user: Option<String>,
}

impl Params {
    /// All problems at once: `(field, sentence)`.
    pub(super) fn read(params: &Value) -> Result<Self, Vec<(String, String)>> {
        let Some(params) = params.as_object() else {
            return Err(vec![("params".to_owned(), "must be an object".to_owned())]);
        };
        let mut reader = Reader { params, problems: Vec::new() };
        reader.refuse_unknown_fields();
        let program = reader.program();
        let env = reader.env();
        let dir = reader.text("dir");
        if dir.as_ref().is_some_and(|dir| !dir.starts_with('/')) {
            reader.problem("dir", "must be an absolute path; leave it out for the user's home");
        }
        let (stdin, user) = (reader.string("stdin"), reader.text("user"));
        match program {
            Some(program) if reader.problems.is_empty() => Ok(Self { program, env, dir, stdin, user }),
            _ => Err(reader.problems),
        }
    }
}

struct Reader<'a> {
    params: &'a Map<String, Value>,
    problems: Vec<(String, String)>,
}

impl Reader<'_> {
    fn problem(&mut self, field: &str, sentence: impl Into<String>) {
        self.problems.push((format!("params.{field}"), sentence.into()));
    }

    fn refuse_unknown_fields(&mut self) {
        for name in self.params.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            self.problem(name, format!("is not a field of the shell executor, which knows {}", FIELDS.join(", ")));
        }
    }

    /// A string field; `null` is as good as absent.
    fn string(&mut self, field: &str) -> Option<String> {
        match self.params.get(field)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            _ => {
                self.problem(field, "must be a string");
                None
            }
        }
    }

    /// A string that a system call will take: not empty, not too long, no NUL.
    fn text(&mut self, field: &str) -> Option<String> {
        let text = self.string(field)?;
        if text.is_empty() {
            self.problem(field, "must not be empty");
            return None;
        }
        self.fit(field, &text).then_some(text)
    }

    fn fit(&mut self, field: &str, text: &str) -> bool {
        if text.contains('\0') {
            self.problem(field, "must not hold a NUL character: no program can be given one");
        } else if text.len() > STRING_BYTES {
            self.problem(field, format!("must not be longer than {STRING_BYTES} bytes, which is what Linux allows"));
        } else {
            return true;
        }
        false
    }

    fn program(&mut self) -> Option<Program> {
        let given = |field| self.params.get(field).is_some_and(|value| !value.is_null());
        match (given("command"), given("argv")) {
            (true, false) => {
                let (shell, command) = (self.shell(), self.text("command")?);
                if command.trim().is_empty() {
                    self.problem("command", "must not be blank");
                }
                Some(Program::Command { shell, command })
            }
            (false, true) => {
                if given("shell") {
                    self.problem("shell", "goes with command; argv is executed with no shell");
                }
                self.argv().map(Program::Argv)
            }
            (true, true) => {
                self.problem("argv", "and command exclude each other: give one of them");
                None
            }
            (false, false) => {
                self.problem("command", "is required (or argv, to execute a program with no shell)");
                None
            }
        }
    }

    fn shell(&mut self) -> String {
        let Some(shell) = self.text("shell") else { return "bash".to_owned() };
        if shell.contains('/') && !shell.starts_with('/') {
            self.problem("shell", "must be a name to be found in PATH, or an absolute path");
        }
        shell
    }

    fn argv(&mut self) -> Option<Vec<String>> {
        let Some(items) = self.params.get("argv")?.as_array() else {
            self.problem("argv", "must be an array of strings");
            return None;
        };
        if items.is_empty() {
            self.problem("argv", "must not be empty: its first item is the program");
        }
        let mut argv = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let field = format!("argv[{index}]");
            match item.as_str() {
                None => self.problem(&field, "must be a string"),
                Some("") if index == 0 => self.problem(&field, "must not be empty: it is the program"),
                Some(text) => {
                    self.fit(&field, text);
                    argv.push(text.to_owned());
                }
            }
        }
        Some(argv)
    }

    fn env(&mut self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        let entries = match self.params.get("env") {
            None | Some(Value::Null) => return env,
            Some(Value::Object(entries)) => entries,
            Some(_) => {
                self.problem("env", "must be an object of strings");
                return env;
            }
        };
        for (name, value) in entries {
            let field = format!("env.{name}");
            // As Kubernetes has it; a shell can use fewer, a program any of them.
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            if name.is_empty() || !name.bytes().all(fits) || name.starts_with(|first: char| first.is_ascii_digit()) {
                self.problem(&field, "is not a variable's name: letters, digits, _ - and . with no digit first");
            } else if name.starts_with(RESERVED) {
                self.problem(&field, "is reserved: variables that begin with CARILLON_ are set by the server");
            }
            if let Some(text) = self.variable(&field, value)
                && self.fit(&field, text)
            {
                env.insert(name.clone(), text.to_owned());
            }
        }
        env
    }

    /// A string, or `{"value": "...", "secret": true}`.
    fn variable<'v>(&mut self, field: &str, value: &'v Value) -> Option<&'v str> {
        let Some(marked) = value.as_object() else {
            if !value.is_string() {
                self.problem(field, "must be a string, or an object {\"value\": string, \"secret\": true}");
            }
            return secrets::text(value);
        };
        for name in marked.keys().filter(|name| !matches!(name.as_str(), "value" | "secret")) {
            self.problem(&format!("{field}.{name}"), "is not known here: a variable has a value and may be secret");
        }
        if marked.get("secret").is_some_and(|secret| !secret.is_boolean()) {
            self.problem(&format!("{field}.secret"), "must be true or false");
        }
        let text = secrets::text(value);
        if text.is_none() {
            self.problem(&format!("{field}.value"), "must be a string (a secret is never shown: give it again)");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(params: Value) -> Vec<String> {
        let problems = Params::read(&params).err().unwrap_or_default();
        problems.into_iter().map(|(field, sentence)| format!("{field} {sentence}")).collect()
    }

    #[test]
    fn what_is_right_is_taken() {
        for params in [
            json!({"command": "x"}),
            json!({"argv": ["x", ""]}),
            json!({"command": "x", "shell": "/bin/sh", "dir": "/", "stdin": "", "user": "root", "argv": null}),
            json!({"command": "x", "shell": "zsh", "env": {"A": "", "_b1": {"value": "v", "secret": true}}}),
        ] {
            assert_eq!(problems(params), [""; 0]);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (params, expected) in [
            (json!([]), "params must be an object"),
            (json!({}), "params.command is required"),
            (json!({"command": "x", "argv": ["x"]}), "params.argv and command exclude each other"),
            (json!({"command": ""}), "params.command must not be empty"),
            (json!({"command": " \n"}), "params.command must not be blank"),
            (json!({"command": 5}), "params.command must be a string"),
            (json!({"command": "a\0b"}), "params.command must not hold a NUL"),
            (json!({"command": "x".repeat(200_000)}), "params.command must not be longer than 131071 bytes"),
            (json!({"command": "x", "comand": "y"}), "params.comand is not a field of the shell executor"),
            (json!({"argv": "x"}), "params.argv must be an array"),
            (json!({"argv": []}), "params.argv must not be empty"),
            (json!({"argv": [""]}), "params.argv[0] must not be empty"),
            (json!({"argv": ["x", 1]}), "params.argv[1] must be a string"),
            (json!({"argv": ["x"], "shell": "sh"}), "params.shell goes with command"),
            (json!({"command": "x", "shell": "bin/sh"}), "params.shell must be a name"),
            (json!({"command": "x", "dir": "tmp"}), "params.dir must be an absolute path"),
            (json!({"command": "x", "stdin": 1}), "params.stdin must be a string"),
            (json!({"command": "x", "env": []}), "params.env must be an object"),
            (json!({"command": "x", "env": {"A B": ""}}), "params.env.A B is not a variable's name"),
            (json!({"command": "x", "env": {"1": ""}}), "params.env.1 is not a variable's name"),
            (json!({"command": "x", "env": {"CARILLON_X": ""}}), "params.env.CARILLON_X is reserved"),
            (json!({"command": "x", "env": {"A": 1}}), "params.env.A must be a string"),
            (json!({"command": "x", "env": {"A": {"value": null}}}), "params.env.A.value must be a string"),
            (json!({"command": "x", "env": {"A": {"value": "", "secret": 1}}}), "params.env.A.secret must be true"),
            (json!({"command": "x", "env": {"A": {"value": "", "x": 1}}}), "params.env.A.x is not known here"),
        ] {
            let found = problems(params.clone());
            assert!(found.len() == 1 && found[0].starts_with(expected), "{params}: {found:?}");
        }
    }

    #[test]
    fn all_problems_are_told_at_once() {
        assert_eq!(problems(json!({"argv": [1], "dir": "x", "env": 3, "nope": 1, "user": ""})).len(), 5);
    }
}
