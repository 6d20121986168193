//! For people at a terminal only: tables that are drawn again, and bars that tell how far a command is.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::server::Server;

/// A command at a terminal of its own, which `script` of util-linux makes.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    seen: String,
}

impl Terminal {
    fn start(server: &Server, arguments: &str) -> Self {
        let mut command = Command::new("script");
        // A shell that stays beside its command, as dash does, would take Ctrl-C as well, and end of it.
        command.args(["-qfec", &format!("exec {} {arguments}", env!("CARGO_BIN_EXE_carillon")), "/dev/null"]);
        command.current_dir(server.dir.path()).env("CARILLON_SERVER", &server.url).env("TERM", "xterm");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script of util-linux");
        let keys = child.stdin.take().unwrap();
        Self { child, keys, seen: String::new() }
    }

    /// Reads until the screen has shown a text so often.
    fn wait_for(&mut self, text: &str, times: usize) {
        let mut bytes = [0; 4096];
        while self.seen.matches(text).count() < times {
            let length = self.child.stdout.as_mut().unwrap().read(&mut bytes).unwrap();
            assert_ne!(length, 0, "it ended, and never showed {text:?}: {}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
    }

    /// Its exit code, and all that it showed.
    fn end(mut self) -> (Option<i32>, String) {
        self.child.stdout.take().unwrap().read_to_string(&mut self.seen).unwrap();
        (self.child.wait().unwrap().code(), self.seen)
    }
}

#[test]
fn a_table_is_drawn_again_until_ctrl_c() {
    let server = Server::start();
    for (arguments, row) in
        [("job list --watch=1", "tick"), ("run list --watch=1", "no run"), ("cluster --watch=1", "live")]
    {
        let mut terminal = Terminal::start(&server, arguments);
        terminal.wait_for("again each 1 s", 2);
        if row == "tick" {
            server.out(&["job", "add", row, "-s", "0 0 1 1 *", "-c", "true"], 0);
        }
        terminal.wait_for(row, 1);
        terminal.keys.write_all(b"\x03").unwrap();
        let (code, seen) = terminal.end();
        assert_eq!(code, Some(0), "{arguments}: {seen}");
    }
    let told = server.out(&["job", "list", "--watch"], 2);
    assert!(told.contains("--watch draws on a terminal"), "{told}");
    assert!(server.out(&["job", "list", "--watch", "--json"], 2).contains("cannot be used with"));
}

#[test]
fn bars_are_drawn_on_a_terminal_only() {
    let server = Server::start();
    std::fs::write(server.dir.path().join("night"), "0 3 * * * /opt/a\n").unwrap();
    for (arguments, bar) in [("backup copy.db", "copying ["), ("import night", "importing [")] {
        let (code, seen) = Terminal::start(&server, arguments).end();
        assert!(code == Some(0) && seen.contains(bar), "{arguments}: {seen}");
        assert!(seen.contains("\r\u{1b}[K"), "the bar goes: {seen}");
    }
    let told = server.out(&["backup", "other.db"], 0);
    assert!(!told.contains("copying") && told.contains("is a whole copy of carillon.db"), "{told}");
}
