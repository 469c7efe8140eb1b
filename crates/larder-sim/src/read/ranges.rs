//! The used pages of a file, which are removed when the file is removed.

use std::collections::BTreeMap;

/// Sets of numbers, as ranges.
#[derive(Debug, Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Approximate bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        match self.0.len() as u64 {
            0 => 0,
            // The first node of a tree has room for eleven.
            ranges => 160 + 32 * ranges,
        }
    }

    /// Adds `first..end`.
    pub(crate) fn add(&mut self, mut first: u64, mut end: u64) {
        if first >= end {
            return;
        }
        while let Some((&from, &to)) = self.0.range(..=end).next_back() {
            if to < first {
                break;
            }
            self.0.remove(&from);
            first = first.min(from);
            end = end.max(to);
        }
        self.0.insert(first, end);
    }

    /// Takes out what is at `from` and beyond, in order.
    pub(crate) fn cut(&mut self, from: u64) -> Vec<(u64, u64)> {
        let mut tail = self.0.split_off(&from);
        if let Some((_, end)) = self.0.iter_mut().next_back()
            && *end > from
        {
            tail.insert(from, *end);
            *end = from;
        }
        tail.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_are_cut() {
        let mut set = Ranges::default();
        for (first, end) in [(5, 7), (1, 2), (7, 9), (20, 30), (2, 4), (25, 26), (3, 3)] {
            set.add(first, end);
        }
        assert_eq!(
            set.0.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>(),
            [(1, 4), (5, 9), (20, 30)]
        );
        assert_eq!(set.cut(8), [(8, 9), (20, 30)]);
        assert_eq!(set.cut(0), [(1, 4), (5, 8)]);
        assert_eq!(set.cut(0), []);
    }
}
