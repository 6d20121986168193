//! `next` and `explain` through the built binary: what they print, how they fail, and the streaming mode.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

/// Schedules of which the samples are wrong; the domain's conformance test says why.
const WRONG: [&str; 6] = [
    "56-57/16 19-19/1,21-21 30,2 * *",
    "37-37/18 5,7,21 L * *",
    "2,56 9 10 2-12,6-11/3,MAY 5-5/1,MON,1",
    "0-0/19,36-52,48-57 * 29 * *",
    "* 3 L * 0",
    "43 * * * SUN",
];

fn carillon(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_carillon"));
    command.args(arguments).env("TZ", "UTC").env_remove("CARILLON_SERVER");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str], input: impl Into<Vec<u8>>) -> Output {
    let mut child = carillon(arguments).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.into());
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn stdout(arguments: &[&str]) -> String {
    let output = run(arguments, "");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn answers(arguments: &[&str], input: impl Into<Vec<u8>>) -> Vec<Value> {
    let output = run(arguments, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn next_prints_a_time_a_line() {
    let after = ["--after", "2026-03-28T12:00:00Z", "--count", "2"];
    for (schedule, extra, expected) in [
        ("0 3 * * *", vec![], "2026-03-29T03:00:00Z\n2026-03-30T03:00:00Z\n"),
        ("30 2 * * *", vec!["--timezone", "Europe/Berlin"], "2026-03-29T01:00:00Z\n2026-03-30T00:30:00Z\n"),
        (
            "30 2 * * *",
            vec!["--timezone", "Europe/Berlin", "--dst-gap", "skip"],
            "2026-03-30T00:30:00Z\n2026-03-31T00:30:00Z\n",
        ),
        ("@every 90s", vec![], "2026-03-28T12:01:30Z\n2026-03-28T12:03:00Z\n"),
        ("@at 2027-01-01T00:00:00.5Z", vec![], "2027-01-01T00:00:00.500Z\n"),
        ("H H * * *", vec!["--key", "default/a"], "2026-03-29T03:46:00Z\n2026-03-30T03:46:00Z\n"),
    ] {
        let arguments: Vec<_> = ["next", schedule].into_iter().chain(after).chain(extra).collect();
        assert_eq!(stdout(&arguments), expected, "{schedule}");
    }
    assert_eq!(stdout(&["next", "* * * * *"]).lines().count(), 10);
}

#[test]
fn a_schedule_that_is_over_prints_nothing_and_says_so() {
    let output = run(&["next", "@at 2020-01-01T00:00:00Z"], "");
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("there is no due time after 20"));
}

#[test]
fn explain_says_it_in_words_and_in_two_clocks() {
    let arguments = ["explain", "0 3 * * *", "--timezone", "Europe/Berlin", "--after", "2026-10-24T00:00:00Z"];
    let expected = "\
At 03:00 every day, Europe/Berlin

UTC                   Europe/Berlin                   local time
2026-10-24T01:00:00Z  Sat 2026-10-24 03:00:00 +02:00  Sat 2026-10-24 01:00:00 +00:00
2026-10-25T02:00:00Z  Sun 2026-10-25 03:00:00 +01:00  Sun 2026-10-25 02:00:00 +00:00
";
    assert_eq!(stdout(&[&arguments[..], &["--count", "2"]].concat()), expected);
    let json: Value = serde_json::from_str(&stdout(&[&arguments[..], &["--count", "1", "--json"]].concat())).unwrap();
    assert_eq!(
        json,
        json!({"schedule": "0 3 * * *", "timezone": "Europe/Berlin", "after": "2026-10-24T00:00:00Z",
               "description": "At 03:00 every day, Europe/Berlin", "next": ["2026-10-24T01:00:00Z"]})
    );
}

#[test]
fn bad_usage_is_exit_code_2_and_a_sentence() {
    for (arguments, sentence) in [
        (vec!["next"], "required arguments were not provided"),
        (vec!["next", "61 * * * *"], "error: minute: \"61\" is out of range; allowed are 0-59"),
        (vec!["next", ""], "error: schedule: it is empty"),
        (vec!["explain", "0 0 30 2 *"], "can never fire"),
        (vec!["explain", "@daily", "--timezone", "Mars/Base"], "timezone: \"Mars/Base\" is unknown"),
        (vec!["next", "CRON_TZ=UTC @daily", "--timezone", "Asia/Tokyo"], "differs from"),
        (vec!["next", "@daily", "--after", "tomorrow"], "is not an RFC 3339 time"),
        (vec!["next", "@daily", "--count", "0"], "0 is not in 1..=10000"),
        (vec!["next", "@daily", "--count", "10001"], "10001 is not in 1..=10000"),
        (vec!["next", "@daily", "--dst-gap", "both"], "invalid value 'both'"),
        (vec!["\u{1b}[2J"], "unrecognized subcommand"),
        (vec![], "Usage: carillon"),
    ] {
        let output = run(&arguments, "");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(sentence) && output.stdout.is_empty(), "{arguments:?}: {stderr}");
    }
}

#[test]
fn every_sample_of_other_schedulers_comes_back_as_it_was() {
    for file in ["debian-utc", "debian-dst", "seconds"] {
        let path = format!("{}/../tests/data/{file}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let samples: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let answers = answers(&["next", "-"], text.clone());
        assert_eq!(answers.len(), samples.len());
        for (sample, answer) in samples.iter().zip(&answers) {
            let wrong = WRONG.iter().any(|schedule| sample["schedule"] == *schedule);
            assert_eq!(sample == answer, !wrong, "{sample} {answer}");
            assert_eq!(answer["next"].as_array().map(Vec::len), Some(6));
        }
    }
}

#[test]
fn fields_keep_their_order_and_their_text() {
    let input = "{\"z\": 1.50, \"schedule\":\"@daily\",\"after\":\"2026-01-01T00:00:00Z\",\"next\":null,\"a\":[ 1,\"\u{e9}\"],\"count\":1}\n";
    let output = run(&["next", "-"], input);
    let expected = "{\"z\":1.50,\"schedule\":\"@daily\",\"after\":\"2026-01-01T00:00:00Z\",\"next\":[\"2026-01-02T00:00:00Z\"],\"a\":[ 1,\"\u{e9}\"],\"count\":1}\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn options_are_the_defaults_of_the_stream() {
    let options = ["--timezone", "Asia/Tokyo", "--after", "2026-01-01T00:00:00Z", "--count", "1"];
    let input = "{\"schedule\":\"0 3 * * *\"}\n\n{\"schedule\":\"0 3 * * *\",\"timezone\":\"UTC\",\"count\":2,\"error\":\"old\"}";
    let next = answers(&[&["next", "-"], &options[..]].concat(), input);
    assert_eq!(next[0], json!({"schedule": "0 3 * * *", "next": ["2026-01-01T18:00:00Z"]}));
    assert_eq!(next[1]["next"], json!(["2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z"]));
    assert_eq!((next.len(), next[1].get("error")), (2, None));
    let words = answers(&[&["explain", "-"], &options[..]].concat(), "{\"schedule\":\"@daily\"}");
    let expected = json!({"schedule": "@daily", "description": "At 00:00 every day, Asia/Tokyo", "next": ["2026-01-01T15:00:00Z"]});
    assert_eq!(words, [expected]);
}

#[test]
fn hostile_lines_are_answered_and_the_stream_goes_on() {
    let mut input: Vec<u8> = Vec::new();
    let hostile: [(&[u8], &str); 16] = [
        (b"nope", "line 1 is not a JSON object"),
        (b"[]", "line 2 is not a JSON object"),
        (b"\"@daily\"", "line 3 is not a JSON object"),
        (b"{\"schedule\":", "line 4 is not a JSON object"),
        (b"{\"schedule\":\"\xff\"}", "line 5 is not a JSON object"),
        (b"{\"schedule\":\"@daily\"} {}", "line 6 is not a JSON object"),
        (b"{}", "schedule: it is required"),
        (b"{\"schedule\":null}", "schedule: it is required"),
        (b"{\"schedule\":7}", "schedule: it must be a string"),
        (b"{\"schedule\":\"0 0 30 2 *\",\"next\":[]}", "can never fire"),
        (b"{\"schedule\":\"@daily\",\"count\":0}", "count: 0 is out of bounds"),
        (b"{\"schedule\":\"@daily\",\"count\":18446744073709551616}", "count: it must be a whole number"),
        (b"{\"schedule\":\"@daily\",\"after\":\"0000-01-01T00:00:00Z\"}", "after: it is not an RFC 3339 time"),
        (b"{\"schedule\":\"@daily\",\"timezone\":\"../etc\"}", "timezone: \"../etc\" is unknown"),
        (b"{\"schedule\":\"@daily\",\"dst\":{\"gap\":\"x\"}}", "dst: it must be"),
        (b"{\"schedule\":\"\\u0000\"}", "schedule: "),
    ];
    for (line, _) in hostile {
        input.extend_from_slice(line);
        input.push(b'\n');
    }
    input.extend(format!("{{\"x\":\"{}\"}}\n", "x".repeat(3 << 20)).bytes());
    input.extend(b"{\"schedule\":\"@daily\",\"count\":1}");
    let answers = answers(&["next", "-"], input);
    for ((line, sentence), answer) in hostile.iter().zip(&answers) {
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains(sentence), "{}: {answer}", String::from_utf8_lossy(line));
        assert_eq!(answer.get("next"), None);
    }
    assert_eq!(answers.len(), hostile.len() + 2);
    assert!(answers[16]["error"].as_str().unwrap().contains("line 17 is longer than 1048576 bytes"));
    assert_eq!(answers[17]["next"].as_array().map(Vec::len), Some(1));
}

#[test]
fn depth_is_handed_back_without_being_followed() {
    let deep = format!("{{\"x\":{}{},\"schedule\":[[]],", "[".repeat(400_000), "]".repeat(400_000));
    let output = run(&["next", "-"], format!("{deep}\"count\":1}}\n"));
    let expected = format!("{deep}\"count\":1,\"error\":\"schedule: it must be a string\"}}\n");
    assert!(String::from_utf8(output.stdout).unwrap() == expected);
}

#[test]
fn a_hundred_thousand_lines_pass_through() {
    let line = "{\"schedule\":\"*/7 3 * * mon\",\"timezone\":\"Europe/Berlin\",\"after\":\"2026-01-01T00:00:00Z\",\"count\":3}\n";
    let output = run(&["next", "-"], line.repeat(100_000));
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 100_000);
}

#[test]
fn a_dialogue_is_answered_line_by_line() {
    let mut child = carillon(&["next", "-"]).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for _ in 0..3 {
        stdin.write_all(b"{\"schedule\":\"@daily\",\"count\":1}\n").unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert!(answer.contains("\"next\""));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_pipe_that_closes_early_is_no_failure() {
    let closed = |arguments: &[&str], input: &[u8]| {
        let mut child: Child = carillon(arguments).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        // The command may be gone before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input);
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    };
    closed(&["next", "* * * * * *", "--count", "10000"], b"");
    closed(&["explain", "* * * * *", "--count", "10000"], b"");
    closed(&["next", "-", "--count", "1000"], "{\"schedule\":\"* * * * *\"}\n".repeat(50).as_bytes());
}
