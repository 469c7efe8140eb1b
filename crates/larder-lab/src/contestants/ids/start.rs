//! The state in which a run begins: how many identifiers there are and which of them are taken.

use anyhow::ensure;

use super::Rng;

/// Identifiers `0..count`, some of them taken. The rarer kind is listed, so that a space of 2^32 is described by what is
/// unusual about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    count: u64,
    /// Ascending.
    listed: Vec<u32>,
    listed_are_taken: bool,
}

impl Start {
    /// `taken` random identifiers of `count` are taken.
    ///
    /// # Errors
    /// More than 2^32 identifiers, none, or more taken than there are.
    pub fn random(count: u64, taken: u64, rng: &mut Rng) -> anyhow::Result<Self> {
        ensure!(
            count > 0 && count <= 1 << 32,
            "{count} identifiers were asked for; give 1 to 2^32"
        );
        ensure!(
            taken <= count,
            "{taken} of {count} identifiers cannot be taken"
        );
        let free = count - taken;
        let listed_are_taken = taken <= free;
        let listed = choose(count, taken.min(free), rng);
        Ok(Self {
            count,
            listed,
            listed_are_taken,
        })
    }

    /// Identifiers in all.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Identifiers that are taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        let listed = self.listed.len() as u64;
        if self.listed_are_taken {
            listed
        } else {
            self.count - listed
        }
    }

    /// Whether the taken ones are the rarer kind.
    #[must_use]
    pub fn mostly_free(&self) -> bool {
        self.listed_are_taken
    }

    /// The rarer kind, ascending.
    #[must_use]
    pub fn listed(&self) -> &[u32] {
        &self.listed
    }

    /// Every free identifier, ascending.
    pub fn free_ids(&self) -> impl Iterator<Item = u32> {
        self.ids(!self.listed_are_taken)
    }

    /// Every taken identifier, ascending.
    pub fn taken_ids(&self) -> impl Iterator<Item = u32> {
        self.ids(self.listed_are_taken)
    }

    /// The listed ones, or all others.
    fn ids(&self, listed: bool) -> impl Iterator<Item = u32> {
        let (own, others) = if listed {
            (self.listed.as_slice(), None)
        } else {
            (&[][..], Some(self.gaps()))
        };
        own.iter()
            .copied()
            .chain(others.into_iter().flatten().flat_map(|(from, to)| {
                // Both ends lie below 2^32.
                (from..to).map(|id| id as u32)
            }))
    }

    /// What lies between the listed ones, as `from..to`.
    fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = std::iter::once(0).chain(self.listed.iter().map(|&id| u64::from(id) + 1));
        let ends = self
            .listed
            .iter()
            .map(|&id| u64::from(id))
            .chain(std::iter::once(self.count));
        starts.zip(ends)
    }
}

/// `wanted` different numbers below `count`, ascending; `wanted` is at most half of `count`, or all of it.
fn choose(count: u64, wanted: u64, rng: &mut Rng) -> Vec<u32> {
    if wanted > count / 64 {
        // Knuth's algorithm S: each number in turn, with the chance that keeps the rest possible. Every number is written
        // and only the chosen ones stay, because no CPU foretells which those are.
        let mut ids = vec![0; wanted as usize + 1];
        let mut len = 0;
        for id in 0..count {
            ids[len] = id as u32;
            len += usize::from(rng.below(count - id) < wanted - len as u64);
        }
        ids.truncate(len);
        return ids;
    }
    let mut ids = Vec::with_capacity(wanted as usize);
    while (ids.len() as u64) < wanted {
        ids.extend((ids.len() as u64..wanted).map(|_| rng.below(count) as u32));
        ids.sort_unstable();
        ids.dedup();
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_asked_are_taken_and_the_rest_is_free() {
        let mut rng = Rng::new(7);
        for taken in [0, 1, 10, 50, 51, 99, 100] {
            let start = Start::random(100, taken, &mut rng).expect("sensible");
            let used: Vec<u32> = start.taken_ids().collect();
            let free: Vec<u32> = start.free_ids().collect();
            assert_eq!(used.len() as u64, taken);
            assert_eq!(start.taken(), taken);
            assert!(used.is_sorted() && free.is_sorted());
            let mut all = [used, free].concat();
            all.sort_unstable();
            assert_eq!(all, (0..100).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn a_large_space_is_described_by_what_is_rare() {
        let mut rng = Rng::new(7);
        let full = Start::random(1 << 32, (1 << 32) - 1000, &mut rng).expect("sensible");
        assert!(!full.mostly_free());
        assert_eq!(full.free_ids().count(), 1000);
        assert_eq!(full.listed().len(), 1000);
        let empty = Start::random(1 << 32, 1000, &mut rng).expect("sensible");
        assert_eq!(empty.taken_ids().count(), 1000);
    }

    #[test]
    fn absurd_counts_are_errors() {
        let mut rng = Rng::new(7);
        assert!(Start::random(0, 0, &mut rng).is_err());
        assert!(Start::random(1 << 33, 0, &mut rng).is_err());
        assert!(Start::random(10, 11, &mut rng).is_err());
    }
}
