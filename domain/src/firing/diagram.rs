//! The states of a row as a diagram, generated from the list of transition kinds so that page and code cannot differ.

use std::fmt::Write as _;

use super::TransitionKind;

impl TransitionKind {
    /// Every kind, in the order in which they usually occur.
    pub const ALL: [TransitionKind; 25] = [
        TransitionKind::Claimed,
        TransitionKind::Rearmed,
        TransitionKind::Started,
        TransitionKind::StartedConcurrently,
        TransitionKind::Misfired,
        TransitionKind::Deferred,
        TransitionKind::Finished,
        TransitionKind::Retried,
        TransitionKind::FinishedDeleted,
        TransitionKind::Reset,
        TransitionKind::SweptUnstarted,
        TransitionKind::SweptLost,
        TransitionKind::Paused,
        TransitionKind::Resumed,
        TransitionKind::Updated,
        TransitionKind::Triggered,
        TransitionKind::TriggerSkipped,
        TransitionKind::TriggeredConcurrently,
        TransitionKind::CancelRequested,
        TransitionKind::CancelledUnstarted,
        TransitionKind::Deleted,
        TransitionKind::DeletedLater,
        TransitionKind::GivenUp,
        TransitionKind::WrittenBack,
        TransitionKind::WrittenBackBeside,
    ];

    /// The pairs of states that this kind connects; `"[*]"` means that there is no row.
    pub const fn arcs(self) -> &'static [(&'static str, &'static str)] {
        const STAYS: &[(&str, &str)] =
            &[("Idle", "Idle"), ("Prepared", "Prepared"), ("Prepared", "Idle"), ("Executing", "Executing")];
        match self {
            TransitionKind::Claimed => &[("Idle", "Prepared")],
            TransitionKind::Rearmed => &[("Idle", "Idle")],
            TransitionKind::Started => &[("Prepared", "Executing")],
            TransitionKind::StartedConcurrently
            | TransitionKind::Misfired
            | TransitionKind::Deferred
            | TransitionKind::SweptUnstarted => &[("Prepared", "Idle")],
            TransitionKind::Finished | TransitionKind::Retried | TransitionKind::SweptLost => &[("Executing", "Idle")],
            TransitionKind::FinishedDeleted => &[("Executing", "[*]"), ("Prepared", "[*]")],
            TransitionKind::Reset => &[("Prepared", "Idle"), ("Executing", "Idle")],
            // Operators change the next firing and release a prepared one; an executing run goes on.
            TransitionKind::Paused
            | TransitionKind::Resumed
            | TransitionKind::Updated
            | TransitionKind::Triggered
            | TransitionKind::TriggerSkipped
            | TransitionKind::TriggeredConcurrently => STAYS,
            TransitionKind::CancelRequested | TransitionKind::DeletedLater => &[("Executing", "Executing")],
            TransitionKind::CancelledUnstarted => &[
                ("Prepared", "Idle"),
                ("Idle", "Idle"),
                ("Executing", "Idle"),
                ("Executing", "Executing"),
                ("Prepared", "Prepared"),
            ],
            TransitionKind::GivenUp => &[("Idle", "[*]")],
            TransitionKind::WrittenBack => {
                &[("Idle", "Executing"), ("Prepared", "Executing"), ("Executing", "Executing")]
            }
            TransitionKind::WrittenBackBeside => STAYS,
            TransitionKind::Deleted => &[("Idle", "[*]"), ("Prepared", "[*]")],
        }
    }
}

/// The arcs that change the state, as the Mermaid diagram in docs/firing.md.
pub fn states_as_mermaid() -> String {
    let mut text = String::from("```mermaid\nstateDiagram-v2\n    [*] --> Idle: created\n");
    for kind in TransitionKind::ALL {
        for (from, to) in kind.arcs().iter().filter(|(from, to)| from != to) {
            let _ = writeln!(text, "    {from} --> {to}: {kind:?}");
        }
    }
    text.push_str("```\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diagram_shows_exactly_the_transitions_that_change_the_state() {
        let picture = states_as_mermaid();
        for kind in TransitionKind::ALL {
            for (from, to) in kind.arcs() {
                let arrow = format!("    {from} --> {to}: {kind:?}\n");
                assert_eq!(picture.contains(&arrow), from != to, "{arrow}");
            }
        }
    }
}
