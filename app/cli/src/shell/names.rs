//! Names of the server as ends of a word: jobs and runs. A server that does not answer at once offers none.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap_complete::engine::CompletionCandidate;
use serde_json::Value;

use crate::args::{DEFAULT_SERVER, ServerArgs};
use crate::client::{Call, Client};

/// How many are offered at the most.
const MOST: &str = "200";

/// The jobs of the line's namespace whose names begin with the word.
pub fn jobs(word: &OsStr) -> Vec<CompletionCandidate> {
    let Some(prefix) = word.to_str() else { return Vec::new() };
    let line = Line::of_process();
    let namespace = line.value(&["-n", "--namespace"]).unwrap_or_else(|| "default".into());
    let call = Call::get("/v1/jobs").with("namespace", namespace).with("prefix", prefix).with("limit", MOST);
    let candidate = |job: &Value| {
        Some(
            CompletionCandidate::new(job["name"].as_str()?)
                .help(job["schedule"].as_str().map(|text| text.to_owned().into())),
        )
    };
    line.ask(call).iter().filter_map(candidate).collect()
}

/// The newest runs whose ids begin with the word.
pub fn runs(word: &OsStr) -> Vec<CompletionCandidate> {
    let Some(prefix) = word.to_str() else { return Vec::new() };
    let call = Call::get("/v1/runs").with("namespace", "*").with("limit", MOST);
    let candidate = |run: &Value| {
        let id = run["id"].as_str().filter(|id| id.starts_with(prefix))?;
        let of = format!("{} {}", run["job"].as_str()?, run["status"].as_str()?);
        Some(CompletionCandidate::new(id).help(Some(of.into())))
    };
    Line::of_process().ask(call).iter().filter_map(candidate).collect()
}

/// The words of the line that is completed, as far as they say which server is meant.
struct Line(Vec<String>);

impl Line {
    /// The shell hands them over behind `--`.
    fn of_process() -> Self {
        let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
        Self(words.map(|word| word.to_string_lossy().into_owned()).collect())
    }

    /// The value of an option. Bash breaks words at `=` and `:`; they are put together again.
    fn value(&self, names: &[&str]) -> Option<String> {
        let at = self.0.iter().position(|word| names.contains(&word.split('=').next().unwrap_or_default()))?;
        if let Some((_, value)) = self.0[at].split_once('=') {
            return Some(value.to_owned());
        }
        let mut rest = self.0[at + 1..].iter().skip_while(|word| *word == "=").peekable();
        let mut value = rest.next()?.clone();
        while let Some(next) = rest.next_if(|next| value.ends_with(':') || *next == ":") {
            value.push_str(next);
        }
        Some(value)
    }

    /// The items of the answer; none where there is no server, or it refuses.
    fn ask(&self, call: Call<'_>) -> Vec<Value> {
        let path = |name: &str, variable: &str| -> Option<PathBuf> {
            self.value(&[name]).map(PathBuf::from).or_else(|| std::env::var_os(variable).map(PathBuf::from))
        };
        let server = self.value(&["--server"]).or_else(|| std::env::var("CARILLON_SERVER").ok());
        let args = ServerArgs {
            server: server.unwrap_or_else(|| DEFAULT_SERVER.into()),
            ca: path("--ca", "CARILLON_CA"),
            cert: path("--cert", "CARILLON_CERT"),
            key: path("--key", "CARILLON_KEY"),
            json: false,
        };
        let reply = Client::in_haste(&args).and_then(|client| client.call(call));
        reply.map(|mut reply| reply.take_items()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_however_the_shell_breaks_words() {
        let server = |words: &[&str]| Line(words.iter().map(|word| (*word).to_owned()).collect()).value(&["--server"]);
        for (words, expected) in [
            (&["carillon", "--server", "http://h:1", "job"][..], Some("http://h:1")),
            (&["carillon", "--server=http://h:1", "job"], Some("http://h:1")),
            (&["carillon", "--server", "http", ":", "//h", ":", "1", "job"], Some("http://h:1")),
            (&["carillon", "--server", "=", "http", ":", "//h", "job"], Some("http://h")),
            (&["carillon", "job", "--server"], None),
            (&["carillon", "job"], None),
        ] {
            assert_eq!(server(words).as_deref(), expected, "{words:?}");
        }
    }
}
