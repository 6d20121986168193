//! The main program of a shell line: the word by which a person would name the line.
//!
//! It is a guess for readable names, not a shell. Tests and other preliminaries (`[ -x f ] &&`, `cd d &&`), keywords,
//! assignments and wrappers (`nice`, `flock FILE`, `python3`) are skipped. The answer is the last part of the first
//! remaining path. It is `checkarray` for `if [ -x /usr/share/mdadm/checkarray ]; then /usr/share/mdadm/checkarray
//! --cron; fi`.

/// Words that may come before a command.
const KEYWORDS: [&str; 10] = ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "}"];

/// Commands that only prepare or decide; the main program comes after them.
const PRELIMINARIES: [&str; 30] = [
    "[", "[[", "test", ".", "source", "cd", "pushd", "export", "set", "unset", "umask", "ulimit", "sleep", "true",
    "false", ":", "which", "type", "hash", "for", "done", "fi", "case", "esac", "read", "trap", "exit", "echo",
    "printf", "cat",
];

/// Commands that run the command in their arguments. Each has its options that take a word, and the number of words
/// before that command.
const WRAPPERS: [(&str, &[&str], usize); 26] = [
    ("bash", &["-o"], 0),
    ("chronic", &[], 0),
    ("chrt", &[], 1),
    ("command", &[], 0),
    ("dash", &[], 0),
    ("env", &["-u", "-C"], 0),
    ("exec", &["-a"], 0),
    ("flock", &["-w", "-E"], 1),
    ("ionice", &["-c", "-n"], 0),
    ("java", &["-cp", "-classpath"], 0),
    ("nice", &["-n"], 0),
    ("node", &["-r"], 0),
    ("nohup", &[], 0),
    ("perl", &["-I"], 0),
    ("php", &["-c", "-d"], 0),
    ("python", &["-W", "-X"], 0),
    ("python3", &["-W", "-X"], 0),
    ("ruby", &["-I"], 0),
    ("run-parts", &["-a"], 0),
    ("runuser", &["-u", "-g"], 0),
    ("setsid", &[], 0),
    ("sh", &["-o"], 0),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("sudo", &["-u", "-g", "-h"], 0),
    ("time", &["-f", "-o"], 0),
    ("timeout", &["-k", "-s"], 1),
];

/// The name of the main program of `line`; `None` if no word looks like a program.
pub(super) fn program(line: &str) -> Option<String> {
    let commands = simple_commands(line);
    let subject = commands.iter().find_map(|words| subject(words));
    let wordy = |name: &&str| name.contains(char::is_alphanumeric) && !name.starts_with('-') && !is_keyword(name);
    let any = || commands.iter().flatten().filter_map(|word| base_name(word)).find(wordy);
    subject.or_else(any).map(str::to_owned)
}

/// The main program of one simple command, unless the command is a preliminary.
fn subject(words: &[String]) -> Option<&str> {
    let mut words =
        words.iter().map(String::as_str).skip_while(|word| is_keyword(word) || is_assignment(word)).peekable();
    let mut best = None;
    while let Some(word) = words.next() {
        let Some(name) = base_name(word) else { return best };
        let asks = name == "command" && words.peek().is_some_and(|next| next.eq_ignore_ascii_case("-v"));
        if PRELIMINARIES.contains(&name) || asks {
            return best;
        }
        let Some((_, valued, operands)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) else {
            return Some(name);
        };
        best = Some(name);
        let mut operands = *operands;
        while let Some(next) = words.peek() {
            let option = next.starts_with('-');
            if !option && !is_assignment(next) {
                if operands == 0 {
                    break;
                }
                operands -= 1;
            }
            if valued.contains(next) {
                words.next();
            }
            words.next();
        }
    }
    best
}

fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| super::variable::is_name(name))
}

/// The last part of a path. `None` if it is not a name: a variable, a text with blanks, or one without letters and
/// digits.
fn base_name(word: &str) -> Option<&str> {
    let name = word.trim_end_matches('/').rsplit('/').next()?;
    let plain =
        name.chars().any(|c| c.is_ascii_alphanumeric()) && !name.contains(|c: char| c.is_whitespace() || c == '$');
    (plain || matches!(name, "[" | "[[" | "." | ":" | "!" | "{" | "}")).then_some(name)
}

/// The simple commands of a line, each as its words. Quotes are removed, substitutions become `$`, and redirections are
/// left out.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut split = Splitter::default();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => split.word.extend(chars.next()),
            '\'' | '"' => {
                let mut escape = false;
                let inner = chars.by_ref().take_while(|d| {
                    let ends = *d == c && !escape;
                    escape = c == '"' && *d == '\\' && !escape;
                    !ends
                });
                split.word.extend(inner);
            }
            '`' => {
                split.word.push('$');
                chars.by_ref().find(|d| *d == '`');
            }
            '$' => {
                split.word.push('$');
                if let Some(open @ ('(' | '{')) = chars.peek().copied() {
                    skip_balanced(&mut chars, open, if open == '(' { ')' } else { '}' });
                }
            }
            '<' | '>' => {
                if split.word.chars().all(|d| d.is_ascii_digit()) {
                    split.word.clear();
                }
                split.end_word();
                while chars.next_if(|d| "<>&|".contains(*d)).is_some() {}
                split.redirects = true;
            }
            ' ' | '\t' => split.end_word(),
            ';' | '&' | '|' | '(' | ')' | '\n' => split.end_command(),
            other => split.word.push(other),
        }
    }
    split.end_command();
    split.commands
}

#[derive(Default)]
struct Splitter {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: String,
    /// Whether the next word is the file of a redirection.
    redirects: bool,
}

impl Splitter {
    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        if !std::mem::take(&mut self.redirects) {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.redirects = false;
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

fn skip_balanced(chars: &mut impl Iterator<Item = char>, open: char, close: char) {
    let mut depth = 0_usize;
    for c in chars {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_program_names_the_line() {
        for (line, name) in [
            ("/usr/local/bin/backup.sh --full", "backup.sh"),
            ("backup", "backup"),
            ("$HOME/bin/daily.job >> $HOME/tmp/out 2>&1", "daily.job"),
            ("[ -x /usr/sbin/a ] && [ $(date +%d) -le 7 ] && /usr/sbin/a --cron", "a"),
            ("if [ -x /usr/share/m/check ]; then /usr/share/m/check --quiet; fi", "check"),
            ("test -x /usr/sbin/t && { [ -r \"$D\" ] && . \"$D\" ; nice -n$N /usr/sbin/t -q ; }", "t"),
            ("command -v sa1 > /dev/null && sa1 1 1", "sa1"),
            ("rsync -v /a /b; logger done", "rsync"),
            ("command sync; logger done", "sync"),
            (r#""/opt/my\"tool" x"#, r#"my\"tool"#),
            (r"'/opt/a\' x", r"a\"),
            (r#""/opt/ab" x"#, "ab"),
            (r#""/opt/abc" x"#, "abc"),
            ("/opt/`hostname`/run x", "run"),
            (
                "d=$({ cat /etc/x.conf || true; } | tail -1); d=${d:-/var}; if [ -d \"$d\" ]; then find \"$d/\"; fi",
                "find",
            ),
            ("cd / && run-parts --report /etc/cron.hourly", "cron.hourly"),
            ("test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }", "cron.daily"),
            ("nice -n 10 ionice -c2 -n 7 /opt/rotate now", "rotate"),
            ("flock -n /run/lock/sync /opt/sync", "sync"),
            ("timeout -k 5 30m sudo -u postgres pg_dump app | gzip > app.gz", "pg_dump"),
            ("/usr/bin/env TZ=UTC python3 -u /srv/report.py", "report.py"),
            ("php -d memory_limit=1G '/srv/my app/artisan' schedule:run", "artisan"),
            ("bash -c 'cd /srv && make'", "bash"),
            ("PGUSER=app psql -c 'select 1'", "psql"),
            ("`which perl` /srv/run.pl", "run.pl"),
            ("echo \"it's; fine\" | mail joe", "mail"),
            ("echo hello", "echo"),
            ("[ -x /opt/flag ]", "flag"),
            ("if [[ -x /opt/a ]]; then for f in *.log; do gzip $f; done; fi", "gzip"),
            ("(cd /srv; ./tick) 2>/dev/null", "tick"),
            ("2>/dev/null >out tick", "tick"),
        ] {
            assert_eq!(program(line).as_deref(), Some(name), "{line}");
        }
    }

    #[test]
    fn a_line_may_have_no_program() {
        for line in ["", "$", "''", "{ }", "\u{65e5}\u{672c}", "; ; &"] {
            assert_eq!(program(line), None, "{line}");
        }
    }
}
