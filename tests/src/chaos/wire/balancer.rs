//! A balancer before the members of a cluster: it leads new connections to the member that takes writes, or to each in turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use tokio::sync::{oneshot, watch};

use crate::chaos::outcome::now_us;
use crate::databases::Servers;

/// Each member is asked so often whether it takes writes.
const ASK_EVERY: Duration = Duration::from_millis(300);
/// It has so long for its answer.
const ANSWER: Duration = Duration::from_millis(800);
/// A member is given up after so many questions without a yes.
const MISSES: usize = 2;

/// The member that all balancers lead to: the first one that takes writes, and then the same for as long as it does.
pub struct Choice {
    chosen: watch::Receiver<Option<usize>>,
    asked: Arc<Asked>,
    over: Option<oneshot::Sender<()>>,
    asking: Option<JoinHandle<()>>,
}

impl Choice {
    /// Asks the members from now on.
    pub fn among(servers: &Servers) -> Self {
        let members = servers.members().iter().map(|member| Opts::from_url(&member.root_url()).expect("a URL"));
        let (members, question) = (members.collect::<Vec<_>>(), servers.question_for_writer());
        let (choose, chosen) = watch::channel(None);
        let (over, is_over) = oneshot::channel();
        let misses = members.iter().map(|_| AtomicUsize::new(MISSES)).collect();
        let asked = Arc::new(Asked { misses, choose, choices: Mutex::default() });
        let of_thread = Arc::clone(&asked);
        let asking = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            for (number, member) in members.into_iter().enumerate() {
                runtime.spawn(ask(number, member, question, Arc::clone(&of_thread)));
            }
            let _ever = runtime.block_on(is_over);
        });
        Self { chosen, asked, over: Some(over), asking: Some(asking) }
    }

    /// When it led to a member so far, in microseconds since 1970.
    pub fn led_to(&self, member: usize) -> Vec<(u64, u64)> {
        let choices = self.asked.choices.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = choices.iter().skip(1).map(|(at_us, _)| *at_us).chain([now_us()]);
        choices.iter().zip(ends).filter(|((_, to), _)| *to == Some(member)).map(|((from, _), to)| (*from, to)).collect()
    }
}

impl Drop for Choice {
    fn drop(&mut self) {
        drop(self.over.take());
        let _ended = self.asking.take().map(JoinHandle::join);
    }
}

/// The answers of the members, and the choice that follows from them.
struct Asked {
    misses: Vec<AtomicUsize>,
    choose: watch::Sender<Option<usize>>,
    /// All choices so far, each with its time.
    choices: Mutex<Vec<(u64, Option<usize>)>>,
}

async fn ask(number: usize, member: Opts, question: &'static str, asked: Arc<Asked>) {
    let mut conn = None;
    loop {
        let answer = tokio::time::timeout(ANSWER, takes_writes(conn.take(), &member, question));
        conn = answer.await.ok().flatten();
        let misses = if conn.is_some() { 0 } else { asked.misses[number].load(Ordering::SeqCst) + 1 };
        asked.misses[number].store(misses, Ordering::SeqCst);
        asked.choose();
        tokio::time::sleep(ASK_EVERY).await;
    }
}

/// The connection, if the member takes writes.
async fn takes_writes(conn: Option<Conn>, member: &Opts, question: &str) -> Option<Conn> {
    let mut conn = match conn {
        Some(conn) => conn,
        None => Conn::new(member.clone()).await.ok()?,
    };
    let answer = conn.query_first::<u8, _>(question).await.ok()?;
    (answer == Some(1)).then_some(conn)
}

impl Asked {
    fn choose(&self) {
        let is_fit = |number: &usize| self.misses[*number].load(Ordering::SeqCst) < MISSES;
        self.choose.send_if_modified(|chosen| {
            let next = chosen.filter(is_fit).or_else(|| (0..self.misses.len()).find(is_fit));
            let is_other = std::mem::replace(chosen, next) != next;
            if is_other {
                self.choices.lock().unwrap_or_else(PoisonError::into_inner).push((now_us(), next));
            }
            is_other
        });
    }
}

/// The fate of the connections that stand to a member which is not the chosen one any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// They stay, as behind HAProxy.
    Kept,
    /// They are hung up on, as behind a router.
    Dropped,
}

/// Where the connections of one wire go.
pub(super) struct Balancer {
    servers: Vec<(String, u16)>,
    chosen: watch::Receiver<Option<usize>>,
    standing: Standing,
    rule: watch::Sender<Rule>,
    next: AtomicUsize,
    /// How many connections were led to each.
    led: Vec<AtomicUsize>,
}

/// How it leads.
#[derive(Debug, Clone, Copy, Default)]
struct Rule {
    /// To each in turn.
    in_turn: bool,
    /// How often all connections were hung up on.
    hung_up: usize,
}

impl Balancer {
    pub fn new(servers: Vec<(String, u16)>, choice: &Choice, standing: Standing) -> Self {
        let led = servers.iter().map(|_| AtomicUsize::new(0)).collect();
        let (chosen, rule) = (choice.chosen.clone(), watch::Sender::new(Rule::default()));
        Self { servers, chosen, standing, rule, next: AtomicUsize::new(0), led }
    }

    /// Hangs up on all, and leads to each in turn from now on.
    pub fn turn(&self) {
        self.rule.send_modify(|rule| *rule = Rule { in_turn: true, hung_up: rule.hung_up + 1 });
    }

    /// Leads to the chosen one again.
    pub fn turn_no_more(&self) {
        self.rule.send_modify(|rule| rule.in_turn = false);
    }

    /// How many connections were led to each member so far.
    pub fn led(&self) -> Vec<usize> {
        self.led.iter().map(|led| led.load(Ordering::SeqCst)).collect()
    }

    /// Where the next connection goes; `None` where no member is fit.
    pub fn next(&self) -> Option<(usize, &(String, u16))> {
        let number = if self.rule.borrow().in_turn {
            self.next.fetch_add(1, Ordering::SeqCst) % self.servers.len()
        } else {
            (*self.chosen.borrow())?
        };
        self.led[number].fetch_add(1, Ordering::SeqCst);
        Some((number, &self.servers[number]))
    }

    /// Waits until a connection to a member has to end.
    pub async fn ends(&self, number: usize) {
        let (mut rule, mut chosen) = (self.rule.subscribe(), self.chosen.clone());
        let begun = rule.borrow().hung_up;
        loop {
            let now = *rule.borrow_and_update();
            let is_chosen = *chosen.borrow_and_update() == Some(number);
            if now.hung_up != begun || (self.standing == Standing::Dropped && !now.in_turn && !is_chosen) {
                return;
            }
            tokio::select! {
                changed = rule.changed() => if changed.is_err() { return },
                changed = chosen.changed() => if changed.is_err() { return },
            }
        }
    }
}
