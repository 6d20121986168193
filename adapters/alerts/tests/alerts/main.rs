//! Messages as they look, and as they arrive at real receivers: HTTP servers in this process, and aiosmtpd for mail.

mod documented;
mod hostile;
mod http;
mod looks;
mod mail;
mod mail_server;
mod receiver;
mod sample;
mod script;

/// Says loudly what cannot be tested here; `./check` repeats it at its end.
fn skip(why: &str) {
    use std::io::Write as _;
    // Straight to the terminal: the test harness keeps what a test prints to itself.
    let _unheard = std::io::stderr().write_all(format!("\n\nSKIPPED, NOT TESTED HERE: {why}\n\n").as_bytes());
}
