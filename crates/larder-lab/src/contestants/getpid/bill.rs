//! William Irwin's constant-time allocator, "Bill's version", which the post names but did not measure.

use super::{GetPid, Layout, PID_MAX, Tasks};

/// Bits of one level's index.
const SHIFT: u32 = 5;
/// Ids or words that one word stands for.
const FAN: u32 = 1 << SHIFT;

/// A tower of bitmaps: a bit of an upper one says that the 32 bits below it are all set. Andrew Morton posted the code
/// ("He's shy, so.....", linux-kernel, 7 August 2002). It keeps the map up to date at exit, so it never walks a list; what
/// it does not say is when the last user of an id (a group, a session) is gone, which is why Linus Torvalds refused it.
///
/// As posted it is wrong: where the word's first free id lies before the candidate, it takes the candidate itself, in
/// use or not. Here the search goes on instead, which is the least change that keeps its shape.
/// [`as_posted`] does what was posted.
#[derive(Debug, Clone)]
pub struct Bill {
    /// One bit per id; one bit per word of the first; one bit per word of the second.
    maps: [Vec<u32>; 3],
    last: u32,
    posted: bool,
}

/// The tower exactly as posted, which hands out ids that are in use.
#[must_use]
pub fn as_posted() -> Bill {
    Bill {
        posted: true,
        ..Bill::default()
    }
}

impl Default for Bill {
    /// An empty map, in which 0 is taken.
    fn default() -> Self {
        let words = |level: u32| vec![0; (PID_MAX >> (SHIFT * (level + 1))) as usize];
        let mut bill = Self {
            maps: [words(0), words(1), words(2)],
            last: 0,
            posted: false,
        };
        bill.mark(0);
        bill
    }
}

impl Bill {
    fn mark(&mut self, mut at: u32) {
        for map in &mut self.maps {
            let word = &mut map[(at >> SHIFT) as usize];
            *word |= 1 << (at & (FAN - 1));
            if *word != u32::MAX {
                return;
            }
            at >>= SHIFT;
        }
    }

    fn clear(&mut self, mut at: u32) {
        for map in &mut self.maps {
            map[(at >> SHIFT) as usize] &= !(1 << (at & (FAN - 1)));
            at >>= SHIFT;
        }
    }

    /// The first free id not below `from`: up the tower while a word has nothing behind the place, then down.
    fn free_from(&self, from: u32) -> Option<u32> {
        let mut at = from;
        for level in 0..3 {
            let map = &self.maps[level];
            if let Some(word) = map.get((at >> SHIFT) as usize) {
                let free = !word & (u32::MAX << (at & (FAN - 1)));
                if free != 0 {
                    at = (at & !(FAN - 1)) + free.trailing_zeros();
                    for map in self.maps[..level].iter().rev() {
                        let word = map.get(at as usize)?;
                        at = (at << SHIFT) + word.trailing_ones();
                    }
                    return Some(at);
                }
            }
            // The next word's place one level up.
            at = (at >> SHIFT) + 1;
        }
        None
    }

    /// The posted search: digit by digit from the top, the larger of the first free bit and the limit's digit.
    fn free_from_posted(&self, from: u32) -> Option<u32> {
        let mut at = 0u32;
        let mut bounded = true;
        for level in (0..3).rev() {
            let word = self.maps[level].get(at as usize)?;
            let mut bit = word.trailing_ones();
            if bounded {
                let digit = (from >> (SHIFT * level as u32)) & (FAN - 1);
                bit = bit.max(digit);
                bounded = bit <= digit;
            }
            at = (at << SHIFT) + bit;
        }
        (at < PID_MAX).then_some(at)
    }

    fn alloc_from(&self, from: u32) -> Option<u32> {
        if from >= PID_MAX {
            None
        } else if self.posted {
            self.free_from_posted(from)
        } else {
            self.free_from(from)
        }
    }
}

impl GetPid for Bill {
    fn after(mut self, last: u32, _: u32) -> Self {
        self.last = last.min(PID_MAX - 1);
        self
    }

    fn get<L: Layout>(&mut self, _: &Tasks<L>) -> Option<u32> {
        let pid = self
            .alloc_from(self.last + 1)
            .or_else(|| self.alloc_from(1))?;
        self.last = pid;
        self.mark(pid);
        Some(pid)
    }

    fn freed(&mut self, pid: u32) {
        if pid > 0 && pid < PID_MAX {
            self.clear(pid);
        }
    }

    fn taken(&mut self, pid: u32) {
        if pid < PID_MAX {
            self.mark(pid);
        }
    }
}
