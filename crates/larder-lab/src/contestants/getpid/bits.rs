//! The map of ids that a sweep marks: words of 32 bits as on the i386 of 2002, marked by plain or by locked stores.

use std::sync::atomic::{AtomicU32, Ordering};

use super::PID_MAX;

/// Words of the map: 4096 bytes.
pub(super) const WORDS: usize = (PID_MAX / 32) as usize;

/// One bit for each id.
pub trait Bits {
    /// A map without a mark.
    fn new() -> Self;
    /// Marks an id. Ids out of range are ignored.
    fn mark(&mut self, id: u32);
    /// The word of ids `32 i` to `32 i + 31`; all marked past the end.
    fn word(&self, i: usize) -> u32;
    /// Takes every mark away.
    fn clear(&mut self);

    /// The first id from `from` on that is marked, or that is not.
    #[inline]
    fn find(&self, from: u32, marked: bool) -> Option<u32> {
        let pick = |word: u32| if marked { word } else { !word };
        let first = (from >> 5) as usize;
        let mut mask = u32::MAX << (from & 31);
        for i in first..WORDS {
            let word = pick(self.word(i)) & mask;
            if word != 0 {
                return Some(i as u32 * 32 + word.trailing_zeros());
            }
            mask = u32::MAX;
        }
        None
    }
}

/// Plain read, or, write: what Franke's `mark_pid` did, in the harness and in the patch.
#[derive(Debug, Clone)]
pub struct Plain(Vec<u32>);

impl Bits for Plain {
    fn new() -> Self {
        Self(vec![0; WORDS])
    }

    #[inline(always)]
    fn mark(&mut self, id: u32) {
        if let Some(word) = self.0.get_mut((id >> 5) as usize) {
            *word |= 1 << (id & 31);
        }
    }

    #[inline(always)]
    fn word(&self, i: usize) -> u32 {
        self.0.get(i).copied().unwrap_or(u32::MAX)
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }
}

impl Plain {
    /// Marks all ids that another map marks.
    pub fn mark_all(&mut self, other: &Self) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// Takes the mark of an id away; `false` where it has none.
    pub fn unmark(&mut self, id: u32) -> bool {
        let word = self.0.get_mut((id >> 5) as usize);
        word.is_some_and(|word| {
            let before = *word;
            *word &= !(1 << (id & 31));
            before != *word
        })
    }
}

/// An atomic or: what the kernel's `set_bit` is on machines with several CPUs, and what Andrea's patch used.
#[derive(Debug)]
pub struct Locked(Vec<AtomicU32>);

impl Bits for Locked {
    fn new() -> Self {
        Self((0..WORDS).map(|_| AtomicU32::new(0)).collect())
    }

    #[inline(always)]
    fn mark(&mut self, id: u32) {
        if let Some(word) = self.0.get((id >> 5) as usize) {
            word.fetch_or(1 << (id & 31), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn word(&self, i: usize) -> u32 {
        self.0
            .get(i)
            .map_or(u32::MAX, |word| word.load(Ordering::Relaxed))
    }

    fn clear(&mut self) {
        for word in &mut self.0 {
            *word.get_mut() = 0;
        }
    }
}
