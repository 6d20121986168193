//! The kept part of a run's output: the first and the last 32 KiB.

use std::collections::VecDeque;

/// Bytes kept of the beginning, and of the end.
const PART_BYTES: usize = 32 << 10;

/// Output of one run. Memory grows with what was written, up to twice [`PART_BYTES`].
#[derive(Default)]
pub struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    truncated: bool,
}

impl Output {
    /// Adds what the child wrote next.
    pub fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(PART_BYTES - self.head.len()));
        self.head.extend_from_slice(head);
        let newest = &rest[rest.len().saturating_sub(PART_BYTES)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(PART_BYTES);
        self.truncated |= excess > 0;
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(newest);
    }

    /// The head followed by the tail, and whether bytes between them were dropped.
    pub fn finish(self) -> (Vec<u8>, bool) {
        let mut output = self.head;
        let (front, back) = self.tail.as_slices();
        output.extend_from_slice(front);
        output.extend_from_slice(back);
        (output, self.truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(total: usize, chunk: usize) -> (Vec<u8>, Vec<u8>, bool) {
        let all: Vec<u8> = (0..total).map(|i| (i % 251) as u8).collect();
        let mut output = Output::default();
        all.chunks(chunk).for_each(|bytes| output.push(bytes));
        let (kept, truncated) = output.finish();
        (all, kept, truncated)
    }

    #[test]
    fn all_is_kept_up_to_the_bound() {
        for total in [0, 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES] {
            for chunk in [1, 1000, 100_000] {
                let (all, kept, truncated) = pushed(total, chunk);
                assert!(all == kept && !truncated, "{total} bytes in chunks of {chunk}");
            }
        }
    }

    #[test]
    fn beyond_the_bound_the_ends_are_kept() {
        for total in [2 * PART_BYTES + 1, 500_000] {
            for chunk in [1, 7777, 65_536, 1_000_000] {
                let (all, kept, truncated) = pushed(total, chunk);
                assert!(truncated);
                assert!(kept[..PART_BYTES] == all[..PART_BYTES]);
                assert!(kept[PART_BYTES..] == all[total - PART_BYTES..], "{total} bytes in chunks of {chunk}");
            }
        }
    }
}
