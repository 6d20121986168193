//! Receivers of alerts that hang, refuse, close without a word and lose their answers; and the routes to them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::caller::Caller;
use super::load::Made;
use crate::chaos::Dice;
use crate::ear::Heard;

/// After the last run a watch step judges it within a second or two.
const JUDGED_WITHIN: Duration = Duration::from_secs(20);
/// So many jobs have a route of their own, told of every failure.
const ROUTES: usize = 12;
/// A route is put so often until it is taken.
const TRIES: usize = 10;
/// A node waits so long for an answer; `[alerts]` of each node says so.
pub const CONFIG: &str = "\n[alerts]\ntimeout = \"2s\"\nconnect_timeout = \"2s\"\n";

/// One receiver for all routes; the path of a call is the name of its route.
pub struct Receivers {
    url: String,
    shared: Arc<Shared>,
}

struct Shared {
    heard: Mutex<Vec<Value>>,
    dice: Mutex<Dice>,
    /// Nothing goes wrong any more.
    calm: AtomicBool,
}

/// The way in which a receiver takes a call.
#[derive(Clone, Copy)]
enum Fate {
    Takes,
    /// It hears the call and never answers.
    Hangs,
    Refuses,
    /// It closes the connection and has heard nothing.
    Closes,
    /// It hears the call and closes the connection.
    LosesItsAnswer,
}

const FATES: [Fate; 8] = [
    Fate::Takes,
    Fate::Takes,
    Fate::Takes,
    Fate::Takes,
    Fate::Hangs,
    Fate::Refuses,
    Fate::Closes,
    Fate::LosesItsAnswer,
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receivers {
    /// On a free port, with faults that follow from the seed.
    pub fn open(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (heard, dice, calm) = (Mutex::default(), Mutex::new(Dice::new(seed ^ 0xa1e7)), AtomicBool::new(false));
        let shared = Arc::new(Shared { heard, dice, calm });
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = of_thread.clone();
                // A caller that goes away in the middle has not been heard.
                std::thread::spawn(move || _ = shared.answer(stream));
            }
        });
        Self { url, shared }
    }

    /// A route of its own for each of some jobs, those that fail by themselves first. They are answered in the order of their names.
    pub fn put_routes(&self, caller: &Caller, made: &[Made]) -> Value {
        let fails = |made: &&Made| !made.definition["retry"].is_null() || !made.definition["timeout"].is_null();
        let (failing, others): (Vec<&Made>, Vec<&Made>) = made.iter().partition(fails);
        let mut routes = json!({});
        for made in failing.into_iter().chain(others).take(ROUTES) {
            let (job, name) = (&made.job.name, format!("of-{}", made.job.name));
            let route = json!({
                "when": ["failed", "timed_out", "lost", "recovered"], "match": {"jobs": [job]},
                "to": [{"type": "webhook", "url": format!("{}/{name}", self.url)}],
            });
            let put = |n| caller.call(n, "PUT", &format!("/v1/alerts/{name}"), Some(&route));
            let is_taken = |answer: &Option<(u16, Value)>| answer.as_ref().is_some_and(|(status, _)| *status < 300);
            // A machine that still starts other things is slow.
            let answer = (0..TRIES).map(put).find(is_taken);
            assert!(answer.is_some(), "a route is not taken: {:?}", put(0));
            routes[&name] = json!(job);
        }
        routes
    }

    /// From now on everything is taken.
    pub fn calm_down(&self) {
        self.shared.calm.store(true, Ordering::Relaxed);
    }

    /// The evidence for the checker. It waits until each failure has its message, and then until none is on its way, but no longer than
    /// `patience`.
    pub fn alerts(&self, caller: &Caller, routes: Value, runs: &[Value], made: &[Made], patience: Duration) -> Value {
        let is_last = |run: &&Value| {
            let job = made.iter().find(|made| run["job"] == *made.job.name);
            let most = job.map_or(1, |made| made.job.max_attempts);
            let ended_badly = run["status"] == "failed" || run["status"] == "timed_out";
            run["status"] == "lost" || ended_badly && run["attempt"].as_u64().is_some_and(|attempt| attempt >= most)
        };
        let told =
            |run: &&Value| routes.as_object().is_some_and(|routes| routes.values().any(|job| *job == run["job"]));
        let failures: Vec<&Value> = runs.iter().filter(told).filter(is_last).map(|run| &run["id"]).collect();
        let begun = Instant::now();
        loop {
            let mut deliveries = caller.all("/v1/deliveries?").unwrap_or_default();
            let has_message = |run: &&Value| deliveries.iter().any(|one| one["notice"]["run"] == **run);
            let all_are_made = failures.iter().all(has_message) || begun.elapsed() >= JUDGED_WITHIN;
            let under_way = deliveries.iter().any(|one| one["state"] == "waiting" || one["state"] == "sending");
            if all_are_made && (!under_way || begun.elapsed() >= patience) {
                // The listing is newest first.
                deliveries.reverse();
                return json!({"routes": routes, "heard": *lock(&self.shared.heard), "deliveries": deliveries});
            }
            std::thread::park_timeout(Duration::from_millis(500));
        }
    }
}

impl Shared {
    fn fate(&self) -> Fate {
        if self.calm.load(Ordering::Relaxed) { Fate::Takes } else { *lock(&self.dice).pick(&FATES) }
    }

    fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let call = Heard::from(&stream)?;
        let fate = self.fate();
        if matches!(fate, Fate::Takes | Fate::Hangs | Fate::LosesItsAnswer) {
            let mut message: Value = serde_json::from_str(&call.body).ok()?;
            message["route"] = json!(call.path.trim_start_matches('/'));
            lock(&self.heard).push(message);
        }
        match fate {
            Fate::Takes => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok(),
            Fate::Refuses => {
                stream.write_all(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok()
            }
            // Until the caller gives up.
            Fate::Hangs => stream.read(&mut [0]).ok().map(drop),
            Fate::Closes | Fate::LosesItsAnswer => None,
        }
    }
}
