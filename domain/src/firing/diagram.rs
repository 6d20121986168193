//! The states of a row as a picture, made from the same list that names every transition.

use std::fmt::Write as _;

use super::Why;

impl Why {
    /// Every transition, in the order in which a row's life meets them.
    pub const ALL: [Why; 23] = [
        Why::Claimed,
        Why::Rearmed,
        Why::Started,
        Why::StartedBeside,
        Why::Misfired,
        Why::HeldBack,
        Why::Finished,
        Why::Retried,
        Why::FinishedDeleted,
        Why::Reset,
        Why::SweptUnstarted,
        Why::SweptLost,
        Why::Paused,
        Why::Resumed,
        Why::Updated,
        Why::Triggered,
        Why::TriggerSkipped,
        Why::TriggeredBeside,
        Why::CancelRequested,
        Why::CancelledUnstarted,
        Why::Deleted,
        Why::DeletedLater,
        Why::GivenUp,
    ];

    /// The states between which it leads; `"[*]"` is no row.
    pub const fn arcs(self) -> &'static [(&'static str, &'static str)] {
        const STAYS: &[(&str, &str)] =
            &[("Idle", "Idle"), ("Prepared", "Prepared"), ("Prepared", "Idle"), ("Executing", "Executing")];
        match self {
            Why::Claimed => &[("Idle", "Prepared")],
            Why::Rearmed => &[("Idle", "Idle")],
            Why::Started => &[("Prepared", "Executing")],
            Why::StartedBeside | Why::Misfired | Why::HeldBack | Why::SweptUnstarted => &[("Prepared", "Idle")],
            Why::Finished | Why::Retried | Why::SweptLost => &[("Executing", "Idle")],
            Why::FinishedDeleted => &[("Executing", "[*]"), ("Prepared", "[*]")],
            Why::Reset => &[("Prepared", "Idle"), ("Executing", "Idle")],
            // What people do changes what comes next, and takes a prepared firing back; a running run goes on.
            Why::Paused | Why::Resumed | Why::Updated | Why::Triggered | Why::TriggerSkipped | Why::TriggeredBeside => {
                STAYS
            }
            Why::CancelRequested | Why::DeletedLater => &[("Executing", "Executing")],
            Why::CancelledUnstarted => &[
                ("Prepared", "Idle"),
                ("Idle", "Idle"),
                ("Executing", "Idle"),
                ("Executing", "Executing"),
                ("Prepared", "Prepared"),
            ],
            Why::GivenUp => &[("Idle", "[*]")],
            Why::Deleted => &[("Idle", "[*]"), ("Prepared", "[*]")],
        }
    }
}

/// The arcs that change the state, as a Mermaid diagram for ARCHITECTURE.md.
pub fn states_as_mermaid() -> String {
    let mut text = String::from("```mermaid\nstateDiagram-v2\n    [*] --> Idle: created\n");
    for why in Why::ALL {
        for (from, to) in why.arcs().iter().filter(|(from, to)| from != to) {
            let _ = writeln!(text, "    {from} --> {to}: {why:?}");
        }
    }
    text.push_str("```\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_shows_every_change_of_state_and_nothing_that_stays() {
        let picture = states_as_mermaid();
        for why in Why::ALL {
            for (from, to) in why.arcs() {
                let arrow = format!("    {from} --> {to}: {why:?}\n");
                assert_eq!(picture.contains(&arrow), from != to, "{arrow}");
            }
        }
    }
}
