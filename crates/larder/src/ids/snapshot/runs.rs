//! The runs of a snapshot.

use core::iter::FusedIterator;

use super::body::Decoder;
use crate::ids::IdRange;

/// The allocated identifiers as ranges, from [`Snapshot::runs`](super::Snapshot::runs).
#[derive(Debug, Clone)]
pub struct SnapshotRuns<'a> {
    decoder: Decoder<'a>,
    range: IdRange,
    /// Read, and perhaps only the beginning of a longer run.
    pending: Option<(u64, u64)>,
}

impl<'a> SnapshotRuns<'a> {
    pub(super) fn new(decoder: Decoder<'a>, range: IdRange) -> Self {
        Self {
            decoder,
            range,
            pending: None,
        }
    }

    /// The bytes were checked when the snapshot was made, so an error is as good as the end.
    fn read(&mut self) -> Option<(u64, u64)> {
        self.decoder.run().ok().flatten()
    }
}

impl Iterator for SnapshotRuns<'_> {
    type Item = IdRange;

    fn next(&mut self) -> Option<IdRange> {
        let (first, mut last) = match self.pending.take() {
            Some(run) => run,
            None => self.read()?,
        };
        while let Some((next, end)) = self.read() {
            if last.checked_add(1) != Some(next) {
                self.pending = Some((next, end));
                break;
            }
            last = end;
        }
        let base = self.range.first();
        IdRange::new(base + first, base + last).ok()
    }
}

impl FusedIterator for SnapshotRuns<'_> {}
