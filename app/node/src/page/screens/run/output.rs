//! The output of a run: its first and last 32 KiB, in the colours of a terminal.

use std::time::Duration;

use carillon_domain::run::Reason;
use carillon_store::{RunStage, RunView};
use maud::{Markup, PreEscaped, html};
use tokio::time::timeout;

use crate::http::routes::output::live;
use crate::page::screens::run::ansi::Ansi;
use crate::page::visit::{Fault, Visit};

/// How much of the beginning and of the end is shown, in bytes.
const SHOWN: usize = 32 * 1024;
/// How long a run at another node is waited for; the page is more than its output.
const LIVE_WITHIN: Duration = Duration::from_millis(1_200);

/// The output with its tools.
pub(super) async fn section(visit: &Visit, view: &RunView) -> Result<Markup, Fault> {
    let (bytes, truncated) = match &view.stage {
        RunStage::Waiting { .. } => (Vec::new(), false),
        RunStage::Running { .. } => match timeout(LIVE_WITHIN, live(&visit.api, view.clone())).await {
            Ok(Ok(Some(part))) => (part.tail.clone(), part.is_truncated()),
            _ => (Vec::new(), false),
        },
        RunStage::Recorded { record, .. } if record.started_at.is_none() => return Ok(html! {}),
        stage if is_lost_with_its_node(stage) => {
            return Ok(html! {
                section.group #output-section {
                    h2 { "Output" }
                    p.muted { "Its node ended before it could keep what the run printed." }
                }
            });
        }
        RunStage::Recorded { .. } => {
            let kept = visit.api.store.output(view.id).await?.unwrap_or_default();
            (kept.bytes, kept.truncated)
        }
    };
    let moves = matches!(view.stage, RunStage::Running { .. } | RunStage::Waiting { .. });
    let follow = moves.then(|| format!("{}/follow", visit.links.run(view.id)));
    let raw = visit.links.to(&format!("/v1/runs/{}/output", view.id));
    Ok(html! {
        section.group #output-section {
            div.spread {
                h2 { "Output" }
                div.row {
                    input #find type="search" placeholder="Find in output" aria-label="Find in output" hidden data-keep;
                    output #found .small aria-live="polite" data-keep {}
                    @if moves { label.small { input #following type="checkbox" checked data-keep; " follow" } }
                    a.button href=(raw) download=(format!("{}.txt", view.id)) { "Download" }
                }
            }
            @if truncated { p.note { "Only the beginning and the end were kept." } }
            @if bytes.is_empty() && !moves { p.muted { "It printed nothing." } }
            @else {
                pre #output .output tabindex="0" aria-label="Output" data-follow=[follow] data-keep[moves] { (shown(&bytes)) }
            }
        }
    })
}

/// Whether nobody told how it ended: another node did away with its row, and its output is gone.
pub(super) fn is_lost_with_its_node(stage: &RunStage) -> bool {
    matches!(stage, RunStage::Recorded { record, .. } if record.reason == Some(Reason::SessionEnded))
}

fn shown(bytes: &[u8]) -> Markup {
    let mut ansi = Ansi::default();
    if bytes.len() <= 2 * SHOWN {
        return PreEscaped(ansi.html(bytes));
    }
    let (first, last) = (&bytes[..SHOWN], &bytes[bytes.len() - SHOWN..]);
    let left_out = bytes.len() - 2 * SHOWN;
    html! {
        (PreEscaped(ansi.html(first)))
        span.gap { "\n… " (left_out) " bytes are left out here; the download has them …\n" }
        (PreEscaped(Ansi::default().html(last)))
    }
}
