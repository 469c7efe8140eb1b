//! A plain hierarchical bitmap: van Emde Boas cut off at a word.

use anyhow::Context;

use super::{IdSource, Start, bits};

/// A bitmap of free identifiers (1 = free) under summaries of 64 to 1; a summary's bit is set while the word below it is
/// not zero, and is touched only when that changes. The lowest free one, or with `CYCLIC` the next after the last.
#[derive(Debug)]
pub struct Tree<const CYCLIC: bool> {
    /// Leaves first; the last level is one word.
    levels: Vec<Vec<u64>>,
    next: u64,
}

impl<const CYCLIC: bool> Tree<CYCLIC> {
    fn of(leaves: Vec<u64>) -> Self {
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|l| l.len() > 1) {
            let mut summary = vec![0; bits::words(below.len() as u64)];
            for (index, _) in below.iter().enumerate().filter(|(_, word)| **word != 0) {
                summary[index / 64] |= 1 << (index % 64);
            }
            levels.push(summary);
        }
        Self { levels, next: 0 }
    }

    /// From a set bit of `level` down to the lowest free identifier under it.
    #[inline(always)]
    fn descend(&self, level: usize, mut index: u64) -> u64 {
        for words in self.levels[..level].iter().rev() {
            index = index * 64 + u64::from(words[index as usize].trailing_zeros());
        }
        index
    }

    #[inline(always)]
    fn lowest(&self) -> Option<u64> {
        let top = self.levels.len() - 1;
        let word = self.levels[top][0];
        (word != 0).then(|| self.descend(top, u64::from(word.trailing_zeros())))
    }

    /// The lowest free identifier at or after `from`.
    #[inline(always)]
    fn at_or_after(&self, from: u64) -> Option<u64> {
        let mut from = from;
        for (level, words) in self.levels.iter().enumerate() {
            let (word, bit) = bits::at(from);
            let found = words.get(word)? & (u64::MAX << bit);
            if found != 0 {
                let index = word as u64 * 64 + u64::from(found.trailing_zeros());
                return Some(self.descend(level, index));
            }
            from = word as u64 + 1;
        }
        None
    }

    #[inline(always)]
    fn claim(&mut self, id: u64) {
        let mut index = id;
        for words in &mut self.levels {
            let (word, bit) = bits::at(index);
            words[word] &= !(1 << bit);
            if words[word] != 0 {
                break;
            }
            index = word as u64;
        }
    }
}

impl<const CYCLIC: bool> IdSource for Tree<CYCLIC> {
    const ABOUT: &'static str = "a plain hierarchical bitmap, 64 to 1, by the rule of the group";

    fn start(start: &Start) -> anyhow::Result<Self> {
        let count = start.count();
        usize::try_from(count).context("so many bits do not fit into this machine's memory")?;
        let mut leaves = if start.mostly_free() {
            bits::all_set(count)
        } else {
            vec![0; bits::words(count)]
        };
        for &id in start.listed() {
            let (word, bit) = bits::at(u64::from(id));
            leaves[word] ^= 1 << bit;
        }
        Ok(Self::of(leaves))
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        let next = CYCLIC.then(|| self.at_or_after(self.next));
        let id = next.flatten().or_else(|| self.lowest())?;
        self.claim(id);
        self.next = id + 1;
        Some(id)
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        let mut index = id;
        for (level, words) in self.levels.iter_mut().enumerate() {
            let (at, bit) = bits::at(index);
            let Some(word) = words.get_mut(at) else {
                return false;
            };
            let before = *word;
            if level == 0 && before & 1 << bit != 0 {
                return false;
            }
            *word = before | 1 << bit;
            if before != 0 {
                break;
            }
            index = at as u64;
        }
        true
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.levels.iter().map(|l| 8 * l.capacity()).sum())
    }
}
