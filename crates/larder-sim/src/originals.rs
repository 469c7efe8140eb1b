//! The trace's own block numbers, by dense number.

use std::sync::Arc;

/// Numbers of a segment.
const SEGMENT: usize = 1 << 16;

/// The trace's own number of a dense block, for rules that hash: a cache that recorded the trace gave its rule the same number.
/// 8 bytes a block, shared by all copies.
///
/// ```
/// use larder_sim::{Loaded, Record};
/// let record = Record { block: 1 << 40, ..Record::default() };
/// let trace = Loaded::from_records("one", &[record])?;
/// for chunk in trace.chunks() {
///     assert_eq!(chunk?.originals.of(0), 1 << 40);
/// }
/// # Ok::<(), larder_sim::SimError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Originals {
    whole: Vec<Arc<[u64]>>,
    rest: Arc<[u64]>,
}

impl Originals {
    /// The trace's number for a block; a block that it does not know keeps its own. Two loads.
    #[inline]
    #[must_use]
    pub fn of(&self, dense: u32) -> u64 {
        let segment = self
            .whole
            .get(dense as usize / SEGMENT)
            .unwrap_or(&self.rest);
        let found = segment.get(dense as usize % SEGMENT);
        found.copied().unwrap_or(u64::from(dense))
    }
}

/// Collects them while a trace is read.
#[derive(Debug, Default)]
pub(super) struct Collector {
    whole: Vec<Arc<[u64]>>,
    rest: Vec<u64>,
    /// A beginning of `rest`, which was given away last.
    given: Arc<[u64]>,
    len: u32,
}

impl Collector {
    /// The block of this dense number is called `original`. Numbers come in order when they are new.
    #[inline]
    pub(super) fn see(&mut self, dense: u32, original: u64) {
        if dense == self.len {
            self.add(original);
        }
    }

    fn add(&mut self, original: u64) {
        self.rest.push(original);
        self.len += 1;
        if self.rest.len() == SEGMENT {
            self.whole.push(self.rest.as_slice().into());
            self.rest.clear();
            self.given = Arc::default();
        }
    }

    /// Bytes of the numbers.
    pub(super) fn bytes(&self) -> u64 {
        8 * u64::from(self.len)
    }

    /// All so far.
    pub(super) fn so_far(&mut self) -> Originals {
        if self.given.len() < self.rest.len() {
            self.given = self.rest.as_slice().into();
        }
        Originals {
            whole: self.whole.clone(),
            rest: Arc::clone(&self.given),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_found_across_segments_and_a_copy_stays_as_it_was() {
        let mut collector = Collector::default();
        let original = |dense: u32| u64::from(dense).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut early = None;
        for dense in 0..2 * SEGMENT as u32 + 5 {
            collector.see(dense, original(dense));
            collector.see(dense / 2, 1); // seen before: nothing changes
            if dense == 70_000 {
                early = Some(collector.so_far());
            }
            if dense % 50_000 == 0 {
                let now = collector.so_far();
                assert_eq!(
                    (now.of(dense), now.of(dense + 1)),
                    (original(dense), u64::from(dense) + 1)
                );
            }
        }
        let all = collector.so_far();
        for dense in 0..2 * SEGMENT as u32 + 5 {
            assert_eq!(all.of(dense), original(dense));
        }
        let early = early.unwrap_or_default();
        assert_eq!(
            (early.of(70_000), early.of(70_001)),
            (original(70_000), 70_001)
        );
    }
}
