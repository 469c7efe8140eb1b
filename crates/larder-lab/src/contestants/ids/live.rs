//! Which identifiers are taken: drawn from and checked outside of the clock.

use std::collections::HashSet;

use anyhow::bail;

use super::{IdSource, Rng, Start, bits};

/// Above this many identifiers a bitmap of them is no longer cheap.
const MAPPED: u64 = 1 << 26;

/// The taken identifiers: random ones are drawn, freed by the workload, and what it gets instead is checked.
#[derive(Debug)]
pub struct Live {
    count: u64,
    taken: Taken,
    /// The taken identifiers, where drawing by trial would try too often; those that are drawn stand at the end.
    ids: Option<Vec<u64>>,
}

/// Which places are taken.
#[derive(Debug)]
enum Taken {
    Map(Vec<u64>),
    /// The free or the taken places, whichever are few.
    Few {
        set: HashSet<u32>,
        are_taken: bool,
    },
}

impl Taken {
    fn of(start: &Start) -> Self {
        if start.count() > MAPPED {
            // Room for what is drawn and comes back, so that nothing grows while the heap is looked at.
            let mut set = HashSet::with_capacity(2 * start.listed().len() + 1024);
            set.extend(start.listed());
            return Self::Few {
                set,
                are_taken: start.mostly_free(),
            };
        }
        let mut map = vec![0; bits::words(start.count())];
        for id in start.taken_ids() {
            let (word, bit) = bits::at(u64::from(id));
            map[word] |= 1 << bit;
        }
        Self::Map(map)
    }

    /// Marks a place as taken or free; says whether it was not so before.
    fn mark(&mut self, place: u64, taken: bool) -> bool {
        match self {
            Self::Map(map) => {
                let (word, bit) = bits::at(place);
                let before = map[word];
                map[word] = if taken {
                    before | 1 << bit
                } else {
                    before & !(1 << bit)
                };
                before != map[word]
            }
            Self::Few { set, are_taken } if *are_taken == taken => set.insert(place as u32),
            Self::Few { set, .. } => set.remove(&(place as u32)),
        }
    }
}

impl Live {
    /// The state of a start, with the identifiers as `S` names them.
    #[must_use]
    pub fn new<S: IdSource>(start: &Start) -> Self {
        let count = start.count();
        // A generation cannot be guessed, so small spaces are always listed.
        let listed = start.mostly_free() || count <= 1 << 16;
        Self {
            count,
            taken: Taken::of(start),
            ids: listed.then(|| start.taken_ids().map(S::first).collect()),
        }
    }

    /// Draws different taken identifiers; from now on they count as free.
    ///
    /// # Errors
    /// Fewer are taken than should be drawn.
    pub fn draw(&mut self, rng: &mut Rng, out: &mut [u64]) -> anyhow::Result<()> {
        if let Some(ids) = &mut self.ids {
            let len = ids.len();
            if out.len() > len {
                bail!(
                    "{} identifiers were to be freed, {len} are taken",
                    out.len()
                );
            }
            for (done, slot) in out.iter_mut().enumerate() {
                let last = len - 1 - done;
                let index = rng.below(last as u64 + 1) as usize;
                ids.swap(index, last);
                *slot = ids[last];
                self.taken.mark(ids[last] & u64::from(u32::MAX), false);
            }
            return Ok(());
        }
        for slot in out {
            loop {
                let place = rng.below(self.count);
                if self.taken.mark(place, false) {
                    *slot = place;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Checks and keeps what came instead of the identifiers drawn last.
    ///
    /// # Errors
    /// An identifier beyond the range, and one that is taken.
    pub fn give(&mut self, fresh: &[u64]) -> anyhow::Result<()> {
        for &id in fresh {
            let place = id & u64::from(u32::MAX);
            if place >= self.count {
                bail!("identifier {place} is not below {}", self.count);
            }
            if !self.taken.mark(place, true) {
                bail!("identifier {place} was handed out although it is taken");
            }
        }
        if let Some(ids) = &mut self.ids {
            let from = ids.len() - fresh.len();
            ids[from..].copy_from_slice(fresh);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stack;
    use super::*;

    fn live(count: u64, taken: u64) -> (Live, Rng) {
        let mut rng = Rng::new(3);
        let start = Start::random(count, taken, &mut rng).expect("sensible");
        (Live::new::<Stack>(&start), rng)
    }

    #[test]
    fn what_is_drawn_is_taken_and_different() {
        for (count, taken) in [
            (100, 90),
            (100_000, 90_000),
            (100_000, 5000),
            (1 << 32, 500),
        ] {
            let (mut live, mut rng) = live(count, taken);
            let mut out = [0; 64];
            live.draw(&mut rng, &mut out).expect("enough are taken");
            let mut sorted = out.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 64);
            live.give(&out).expect("they are free now");
            assert!(live.give(&out[..1]).is_err(), "it is taken again");
        }
    }

    #[test]
    fn a_full_space_of_32_bits_knows_its_free_ones() {
        let (mut live, mut rng) = live(1 << 32, (1 << 32) - 100);
        let mut out = [0; 64];
        live.draw(&mut rng, &mut out).expect("nearly all are taken");
        assert!(live.give(&out).is_ok());
        assert!(live.give(&out).is_err());
    }

    #[test]
    fn wrong_identifiers_are_found() {
        let (mut live, mut rng) = live(100, 50);
        let mut out = [0; 51];
        assert!(live.draw(&mut rng, &mut out).is_err(), "only 50 are taken");
        live.draw(&mut rng, &mut out[..1]).expect("one is");
        assert!(live.give(&[100]).is_err());
    }
}
