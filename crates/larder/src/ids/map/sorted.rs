//! Offsets of 65536 in ascending order.

/// Questions to an ascending list.
pub(crate) trait Sorted {
    /// Where the first entry at or above `at` is, or would be.
    fn place(&self, at: u64) -> usize;

    fn entries(&self) -> &[u16];

    fn len(&self) -> u64 {
        self.entries().len() as u64
    }

    fn contains(&self, at: u64) -> bool {
        self.next(at) == Some(at)
    }

    /// The offsets of word `w`.
    fn word(&self, w: usize) -> u64 {
        let from = self.place(w as u64 * 64);
        let within = |&&at: &&u16| usize::from(at) / 64 == w;
        let word = self.entries()[from..].iter().take_while(within);
        word.fold(0, |word, &at| word | 1 << (at % 64))
    }

    /// The first offset at or above `from`.
    fn next(&self, from: u64) -> Option<u64> {
        self.nth(self.place(from) as u64)
    }

    /// The first offset at or above `from` that is not in the list.
    fn next_missing(&self, from: u64) -> Option<u64> {
        let ahead = &self.entries()[self.place(from)..];
        let run = ahead
            .iter()
            .zip(from..)
            .take_while(|&(&at, n)| u64::from(at) == n);
        Some(from + run.count() as u64).filter(|&at| at <= u64::from(u16::MAX))
    }

    /// The offset that has `rank` offsets of the list below it.
    fn nth(&self, rank: u64) -> Option<u64> {
        self.entries().get(rank as usize).map(|&at| u64::from(at))
    }

    /// The offset that has `rank` offsets below it that are not in the list.
    fn nth_missing(&self, rank: u64) -> u64 {
        // The entry at index i has i entries and so `entry - i` others below it.
        let before = self
            .entries()
            .iter()
            .zip(0u64..)
            .take_while(|&(&at, i)| u64::from(at) - i <= rank);
        rank + before.count() as u64
    }

    fn each(&self, visit: impl FnMut(u64)) {
        self.entries()
            .iter()
            .map(|&at| u64::from(at))
            .for_each(visit);
    }
}
