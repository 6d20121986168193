//! Command targets: children of the keeper, as runs are, so they end with the node and hold no more than their bounds.

use std::ffi::CString;
use std::time::Duration;

use carillon_alerts::Command;
use carillon_domain::alert::Answer;
use carillon_domain::id::RunId;
use carillon_domain::run::Outcome;
use carillon_keeper::{Exit, KeeperHandle, Live, Spawn};
use tokio_util::sync::CancellationToken;

/// How long after SIGTERM a command is killed.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// How much of its output is told, in characters.
const TOLD: usize = 300;
/// As for jobs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs a command of a route and tells how it ended. It is ended at `stop`.
pub(super) async fn run(keeper: &KeeperHandle, run: RunId, command: Command, stop: &CancellationToken) -> Answer {
    match spawn(run, command) {
        Ok(spawn) => answer(keeper.spawn(spawn, Live::unheard()).follow(stop).await),
        Err(_) => {
            Answer::Refused { words: "The command holds a NUL character; change the route.".into(), permanent: true }
        }
    }
}

/// Nothing of the server's own environment gets in.
fn spawn(run: RunId, command: Command) -> Result<Spawn, std::ffi::NulError> {
    let Command { command, timeout, environment, stdin } = command;
    let usual = [format!("PATH={PATH}"), "LANG=C.UTF-8".to_owned(), "HOME=/".to_owned()];
    let given = environment.into_iter().map(|(name, value)| format!("{name}={value}"));
    let env = usual.into_iter().chain(given).map(CString::new).collect::<Result<_, _>>()?;
    let argv = ["/bin/sh".to_owned(), "-c".to_owned(), command].map(CString::new);
    Ok(Spawn {
        run,
        argv: argv.into_iter().collect::<Result<_, _>>()?,
        env,
        dir: CString::new("/")?,
        dir_or_root: true,
        stdin: Some(stdin.into_bytes()),
        user: None,
        timeout: Some(timeout),
        kill_grace: KILL_GRACE,
    })
}

fn answer(exit: Exit) -> Answer {
    let output = String::from_utf8_lossy(&exit.output);
    let skipped = output.chars().count().saturating_sub(TOLD);
    let printed: String = output.chars().skip(skipped).collect();
    let printed = match printed.trim() {
        "" => String::new(),
        printed => format!(" It printed: {printed}"),
    };
    let refused = |words: String| Answer::Refused { words: format!("{words}{printed}"), permanent: false };
    match (exit.how, exit.exit_code, exit.signal) {
        (Outcome::Succeeded, ..) => Answer::Delivered { words: format!("The command succeeded.{printed}") },
        (Outcome::TimedOut, ..) => refused("The command took too long and was ended.".into()),
        (Outcome::Cancelled, ..) => refused("The command was ended, because the node ends.".into()),
        (_, Some(code), _) => refused(format!("The command failed with exit code {code}.")),
        (_, None, Some(signal)) => refused(format!("The command was ended by signal {signal}.")),
        (_, None, None) => {
            let why = exit.reason.unwrap_or_else(|| "nobody knows why".into());
            refused(format!("The command did not run: {why}."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(how: Outcome, exit_code: Option<i32>, output: &str) -> Exit {
        Exit { exit_code, reason: None, output: output.into(), ..Exit::without_process(how, "") }
    }

    #[test]
    fn an_exit_is_told_in_a_sentence() {
        let sent = answer(exit(Outcome::Succeeded, Some(0), ""));
        assert_eq!(sent, Answer::Delivered { words: "The command succeeded.".into() });
        let failed = answer(exit(Outcome::Failed, Some(3), "no such user\n"));
        let words = "The command failed with exit code 3. It printed: no such user".into();
        assert_eq!(failed, Answer::Refused { words, permanent: false });
        let long = answer(exit(Outcome::TimedOut, None, &"x".repeat(10_000)));
        assert!(matches!(long, Answer::Refused { words, .. } if words.len() < 400 && words.contains("too long")));
    }

    #[test]
    fn the_environment_is_its_own() {
        let command = Command {
            command: "cat".into(),
            timeout: Duration::from_secs(5),
            environment: [("CARILLON_ALERT_JOB".to_owned(), "x".to_owned())].into(),
            stdin: "{}".into(),
        };
        let spawn = spawn(RunId::drawn(carillon_domain::id::SessionId::from_random(1), 1), command).ok().unwrap();
        let env: Vec<_> = spawn.env.iter().map(|variable| variable.to_str().unwrap()).collect();
        assert_eq!(env, [&format!("PATH={PATH}"), "LANG=C.UTF-8", "HOME=/", "CARILLON_ALERT_JOB=x"]);
        assert_eq!((spawn.timeout, spawn.stdin.as_deref()), (Some(Duration::from_secs(5)), Some(&b"{}"[..])));
    }
}
