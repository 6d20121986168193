//! The checks at the end: what was told, against the facts; what was heard, against what was told.

use std::collections::{BTreeMap, BTreeSet};

use carillon_domain::alert::{DeliveryState, Notice, PingCall, PingKind, State, When};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::invariants::{self as must, Verdict, Violation};
use carillon_domain::run::Status;
use carillon_store::alerts::{DeliveryView, Message, StoredRoute};

use super::Outbox;
use super::expected::{About, Fact};

/// How many of what were told, sent and heard.
pub(in crate::simulator) type Counts = BTreeMap<&'static str, u64>;

impl Outbox {
    /// S9 and L3 over everything that was told. `node_of` names the node of a session.
    pub fn judge(
        &self,
        routes: &[StoredRoute],
        deliveries: &[DeliveryView],
        node_of: impl Fn(SessionId) -> String,
    ) -> Result<Counts, Violation> {
        let mut counts = Counts::new();
        self.facts.all_are_judged()?;
        self.all_have_arrived(deliveries, &mut counts)?;
        let (facts, last_words) = (self.facts.of_jobs(), self.facts.last_words());
        for stored in routes {
            let told = told(stored, deliveries)?;
            must::recoveries_follow(told.iter().copied())?;
            *counts.entry("a message told").or_default() += told.len() as u64;
            let over = told.iter().filter(|notice| notice.state == State::Recovered).count();
            *counts.entry("a recovery told").or_default() += over as u64;
            if stored.route.when.contains(&When::NodeLost) {
                let lost: Vec<String> = self.facts.silent.iter().map(|session| node_of(*session)).collect();
                nodes_are_told(&told, &lost)?;
                continue;
            }
            let of_route = |fact: &&Fact| {
                stored.route.when.contains(&fact.when)
                    && stored.route.only.covers("default", &fact.name, &BTreeMap::new())
            };
            let facts: Vec<&Fact> = facts.iter().filter(of_route).collect();
            if stored.route.after > 1 {
                all_have_a_reason(&told, &facts)?;
                continue;
            }
            told_once_each(stored, &told, &facts, &mut counts)?;
            if told.iter().all(|notice| notice.folded == 0) && stored.route.when.contains(&When::Recovered) {
                last_word_is_right(&told, &last_words)?;
            }
        }
        self.monitors_are_called(deliveries, &mut counts)?;
        Ok(counts)
    }

    /// L3 of deliveries, and S9 of their content: all that was heard is stored, and repeats are the same.
    fn all_have_arrived(&self, deliveries: &[DeliveryView], counts: &mut Counts) -> Verdict {
        let mut heard: BTreeMap<u64, Vec<&Message>> = BTreeMap::new();
        let newest = deliveries.last().map_or(0, |view| view.id);
        for one in self.heard.iter().filter(|one| one.delivery <= newest) {
            heard.entry(one.delivery).or_default().push(&one.message);
        }
        for view in deliveries {
            let heard = heard.remove(&view.id).unwrap_or_default();
            let refused = self.refused_for_good.get(&view.id).copied().unwrap_or(0);
            must::has_arrived(view.id, view.delivery.state, heard.len(), refused)?;
            let differs = heard.iter().any(|message| **message != view.message);
            must::told_once(&("a delivery whose repeats differ", view.id), 1 + usize::from(differs))?;
            let is_dead = matches!(view.delivery.state, DeliveryState::Dead { .. });
            *counts.entry("a message given up after its refusals").or_default() += u64::from(is_dead);
            *counts.entry("a message heard").or_default() += u64::from(!heard.is_empty());
            *counts.entry("a message heard again").or_default() += heard.len().saturating_sub(1) as u64;
        }
        must::told_once(&("a delivery that nobody stored", heard.keys().next()), if heard.is_empty() { 1 } else { 2 })
    }

    /// Each end of a run calls the job's monitor once, and no attempt does that is followed by another.
    fn monitors_are_called(&self, deliveries: &[DeliveryView], counts: &mut Counts) -> Verdict {
        let mut calls: BTreeMap<(RunId, PingKind), Vec<&PingCall>> = BTreeMap::new();
        for view in deliveries {
            if let Message::Ping(call) = &view.message {
                calls.entry((call.run, call.kind)).or_default().push(call);
                *counts.entry("a call of a monitor").or_default() += 1;
            }
        }
        for (record, lives, is_last) in self.facts.monitored() {
            let kind = match record.status {
                Status::Succeeded => PingKind::Success,
                Status::Failed | Status::TimedOut | Status::Lost => PingKind::Failure,
                Status::Running | Status::Cancelled | Status::Skipped => continue,
            };
            let made = calls.remove(&(record.id, kind)).unwrap_or_default().len();
            must::told_once(&("the end of a run", record), made)?;
            must::is_told(&("the end of a run", record), made == 1 || !lives || !is_last)?;
            let too_soon = made > 0 && lives && !is_last;
            must::told_once(&("the firing of an attempt that another followed", record), 1 + usize::from(too_soon))?;
        }
        must::told_once(&("a call without a run", calls.keys().next()), if calls.is_empty() { 1 } else { 2 })
    }
}

/// The messages of a route in their order. Each has one delivery for each target.
fn told<'a>(stored: &StoredRoute, deliveries: &'a [DeliveryView]) -> Result<Vec<&'a Notice>, Violation> {
    let mut told: Vec<(&Notice, Vec<u32>)> = Vec::new();
    for view in deliveries {
        let Message::Notice(notice) = &view.message else { continue };
        if notice.route != stored.route.name {
            continue;
        }
        match told.last_mut().filter(|(last, _)| last.id == notice.id) {
            Some((_, places)) => places.push(view.place),
            None => told.push((notice, vec![view.place])),
        }
    }
    let places: Vec<u32> = (0..).take(stored.route.to.len()).collect();
    for (notice, found) in &told {
        let distinct: BTreeSet<&u32> = found.iter().collect();
        must::told_once(&(notice, "at one target"), 1 + found.len() - distinct.len())?;
        must::is_told(&(notice, "at each target"), *found == places)?;
    }
    Ok(told.into_iter().map(|(notice, _)| notice).collect())
}

/// Whether a message tells that fact.
fn tells(notice: &Notice, fact: &Fact) -> bool {
    let about = match &fact.about {
        About::Run(run) => notice.run == Some(*run),
        About::Skipped(due_at) => notice.due_at == Some(*due_at),
        About::Dues(dues) => notice.due_at.is_some_and(|due_at| dues.contains(&due_at)),
    };
    about && notice.when == fact.when && notice.job.as_ref() == Some(&fact.name)
}

fn all_have_a_reason(told: &[&Notice], facts: &[&Fact]) -> Verdict {
    let alerts = told.iter().filter(|notice| notice.state == State::Open && notice.folded == 0);
    for notice in alerts {
        must::told_with_reason(notice, facts.iter().any(|fact| tells(notice, fact)))?;
    }
    Ok(())
}

/// Each fact is told once: by itself, or counted by a message that stands for many.
fn told_once_each(stored: &StoredRoute, told: &[&Notice], facts: &[&Fact], counts: &mut Counts) -> Verdict {
    all_have_a_reason(told, facts)?;
    let folded: u64 = told.iter().map(|notice| notice.folded).sum();
    let (mut missing, mut perhaps) = (Vec::new(), 0);
    for fact in facts {
        let alerts = told.iter().filter(|notice| notice.state == State::Open && notice.folded == 0);
        let of_fact: Vec<&&Notice> = alerts.filter(|notice| tells(notice, fact)).collect();
        let times = of_fact.len();
        let sure = fact.sure && fact.at >= stored.created_at;
        let in_parts = matches!(&fact.about, About::Dues(dues) if dues.len() > 1) && !fact.sure;
        if !in_parts {
            // The name of a deleted job may have come again, with the same due time.
            let alike = facts.iter().filter(|other| (&other.name, &other.about) == (&fact.name, &fact.about));
            let alike = alike.filter(|other| other.when == fact.when).count();
            must::told_once(&(fact, of_fact), if times <= alike { times.min(1) } else { times })?;
        }
        match (times, sure) {
            (0, true) => missing.push(*fact),
            (0, false) => perhaps += 1,
            _ => {}
        }
        *counts.entry("a fact that a route asks for").or_default() += 1;
    }
    *counts.entry("a fact told with others").or_default() += folded;
    // A fact without a message of its own is counted by that of a storm.
    let counted = missing.len() as u64 <= folded;
    must::is_told(&(stored.route.name.as_str(), missing.first(), missing.len(), folded), counted)?;
    // Where recoveries are not asked for, nothing else is counted.
    let no_more = stored.route.when.contains(&When::Recovered) || folded <= missing.len() as u64 + perhaps;
    let what = (stored.route.name.as_str(), "counts more than there were", folded, missing.len());
    must::told_once(&what, if no_more { 1 } else { 2 })
}

/// The last message about a job's runs is a recovery exactly if its last run ended well.
fn last_word_is_right(told: &[&Notice], last_words: &BTreeMap<String, bool>) -> Verdict {
    for (name, ended_well) in last_words {
        let of_runs = |notice: &&&Notice| {
            notice.job.as_ref() == Some(name) && matches!(notice.when, When::Failed | When::TimedOut | When::Lost)
        };
        if let Some(last) = told.iter().rfind(of_runs) {
            must::is_told(&("how it ended", last), (last.state == State::Recovered) == *ended_well)?;
        }
    }
    Ok(())
}

/// A node that went silent is told, and that one of its name is back. In a storm both may be counted by a message for many.
fn nodes_are_told(told: &[&Notice], lost: &[String]) -> Verdict {
    for notice in told {
        let about = notice.part.as_ref().is_some_and(|part| lost.iter().any(|node| *part == format!("node {node}")));
        must::told_with_reason(notice, about || notice.folded > 0)?;
    }
    let folded: u64 = told.iter().map(|notice| notice.folded).sum();
    let mut missing = 0;
    for node in lost.iter().collect::<BTreeSet<_>>() {
        let part = format!("node {node}");
        let mut of_node = told.iter().filter(|notice| notice.part.as_ref() == Some(&part));
        let is_lost = of_node.clone().any(|notice| notice.state == State::Open);
        let is_back = of_node.next_back().is_some_and(|notice| notice.state == State::Recovered);
        missing += u64::from(!is_lost) + u64::from(!is_back);
        must::is_told(&(&part, "is lost and back", is_lost, is_back), missing <= folded)?;
    }
    Ok(())
}
