//! The text format of Prometheus: families, samples, histograms.

use std::fmt::Write;

use crate::engine::Histogram;

/// A gauge without labels.
pub(super) fn gauge(text: &mut String, name: &str, help: &str, value: impl std::fmt::Display) {
    family(text, name, "gauge", help);
    line(text, format_args!("{name} {value}"));
}

/// A counter without labels.
pub(super) fn counter(text: &mut String, name: &str, help: &str, value: u64) {
    family(text, name, "counter", help);
    line(text, format_args!("{name} {value}"));
}

/// A family whose samples differ by the value of one label.
pub(super) fn labelled<L: std::fmt::Display, V: std::fmt::Display>(
    text: &mut String,
    (name, kind, help): (&str, &str, &str),
    label: &str,
    samples: impl IntoIterator<Item = (L, V)>,
) {
    family(text, name, kind, help);
    for (value, sample) in samples {
        line(text, format_args!("{name}{{{label}=\"{value}\"}} {sample}"));
    }
}

/// The engine counts each duration in one bucket; Prometheus wants each bucket to hold those below it too.
pub(super) fn histogram(text: &mut String, name: &str, help: &str, counted: &Histogram) {
    family(text, name, "histogram", help);
    let mut below = 0;
    for (bound_ms, count) in &counted.buckets {
        below += count;
        line(text, format_args!("{name}_bucket{{le=\"{}\"}} {below}", seconds(*bound_ms)));
    }
    line(text, format_args!("{name}_bucket{{le=\"+Inf\"}} {}", counted.count));
    line(text, format_args!("{name}_sum {}", seconds(counted.sum_ms)));
    line(text, format_args!("{name}_count {}", counted.count));
}

/// The lines that begin a family.
pub(super) fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    line(text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
}

/// One line.
pub(super) fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

/// Values of labels may hold anything.
pub(super) fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The base unit, without digits that say nothing.
pub(super) fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}
