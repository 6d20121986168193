//! The receiver of `docs/alert-receivers.md`, run as it stands there.

use std::time::{SystemTime, UNIX_EPOCH};

use carillon_alerts::Sender;
use carillon_domain::alert::Answer;
use carillon_domain::time::Timestamp;

use super::sample::{config, failed, webhook};
use super::script::{Script, file, python_with, repository};

#[tokio::test]
async fn the_receiver_takes_what_is_signed_and_nothing_else() {
    let Some(python) = python_with("http.server") else {
        return super::skip("the documented receiver: there is no python3");
    };
    let page = std::fs::read_to_string(repository("docs/alert-receivers.md")).unwrap();
    let (_, program) = page.split_once("```python\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let (_, secret) = program.split_once("SECRET = b\"").unwrap();
    let (secret, _) = secret.split_once('"').unwrap();
    let file = file(program);

    let mut receiver = Script::start(python, &[file.path().to_str().unwrap(), "0"]);
    let port = receiver.line().rsplit_once(' ').unwrap().1.to_owned();
    let sender = Sender::new(&config(), None).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let at = |seconds: u64| Timestamp::from_secs(i64::try_from(seconds).unwrap());
    let url = format!("http://127.0.0.1:{port}/");

    let taken = sender.post(&webhook(&url, Some(secret)), at(now)).await;
    assert!(matches!(taken.answer, Answer::Delivered { .. }), "{}", taken.words());
    assert_eq!(receiver.line(), failed().sentence);
    for (secret, time) in [(Some("another secret"), now), (None, now), (Some(secret), now - 3_600)] {
        let refused = sender.post(&webhook(&url, secret), at(time)).await;
        assert!(!matches!(refused.answer, Answer::Delivered { .. }), "{}", refused.words());
    }
}
