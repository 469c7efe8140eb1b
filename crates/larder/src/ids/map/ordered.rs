//! An ordered map that says when there is no memory.

use alloc::vec::Vec;

use crate::ids::IdError;

/// Most entries of a block.
const WIDTH: usize = 64;

/// A map with keys in order: a sorted array of sorted blocks. The standard library's map cannot say that there is no
/// memory; this one does, and then nothing has changed but the shape. No block is empty; blocks in a row that have become
/// nearly empty are joined.
#[derive(Debug)]
pub(crate) struct Ordered<V> {
    /// Each with a key that is not above any of its keys and above all keys of the block before. That of the first one is of
    /// no account.
    blocks: Vec<(u64, Block<V>)>,
}

type Block<V> = Vec<(u64, V)>;

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self { blocks: Vec::new() }
    }
}

impl<V> Ordered<V> {
    pub(crate) fn bytes(&self) -> usize {
        let own = self.blocks.capacity() * size_of::<(u64, Block<V>)>();
        let entries: usize = self.blocks.iter().map(|block| block.1.capacity()).sum();
        own + entries * size_of::<(u64, V)>()
    }

    /// The block that has the key, if any has.
    fn block(&self, key: u64) -> usize {
        let above = self.blocks.partition_point(|block| block.0 <= key);
        above.saturating_sub(1)
    }

    /// The last entry whose key is at most `key`.
    pub(crate) fn floor(&self, key: u64) -> Option<(u64, &V)> {
        let blocks = self.blocks.get(..=self.block(key))?;
        blocks.iter().rev().find_map(|(_, block)| {
            let place = block.partition_point(|entry| entry.0 <= key);
            let (key, value) = block.get(place.checked_sub(1)?)?;
            Some((*key, value))
        })
    }

    /// The first key that is at least `key`.
    pub(crate) fn ceil(&self, key: u64) -> Option<u64> {
        let blocks = self.blocks.get(self.block(key)..)?;
        blocks.iter().find_map(|(_, block)| {
            let place = block.partition_point(|entry| entry.0 < key);
            block.get(place).map(|entry| entry.0)
        })
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let at = self.block(key);
        let (_, block) = self.blocks.get_mut(at)?;
        let place = block.binary_search_by_key(&key, |entry| entry.0).ok()?;
        block.get_mut(place).map(|entry| &mut entry.1)
    }

    /// Adds an entry with a key that is not there.
    pub(crate) fn insert(&mut self, key: u64, value: V) -> Result<(), IdError> {
        if self.blocks.is_empty() {
            let mut first = Vec::new();
            reserve(&mut first)?;
            reserve(&mut self.blocks)?;
            self.blocks.push((0, first));
        }
        let mut at = self.block(key);
        if self.blocks[at].1.len() == WIDTH {
            reserve(&mut self.blocks)?;
            let mut upper = Vec::new();
            upper
                .try_reserve_exact(WIDTH)
                .map_err(|_| IdError::OutOfMemory)?;
            upper.extend(self.blocks[at].1.drain(WIDTH / 2..));
            let from = upper.first().map_or(u64::MAX, |entry| entry.0);
            self.blocks.insert(at + 1, (from, upper));
            at += usize::from(key >= from);
        }
        let block = &mut self.blocks[at].1;
        reserve(block)?;
        let place = block.partition_point(|entry| entry.0 < key);
        block.insert(place, (key, value));
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<V> {
        let at = self.block(key);
        let (_, block) = self.blocks.get_mut(at)?;
        let place = block.binary_search_by_key(&key, |entry| entry.0).ok()?;
        let (_, value) = block.remove(place);
        if block.is_empty() {
            self.blocks.remove(at);
        } else if block.len() <= WIDTH / 4 {
            self.join(at.min(self.blocks.len().saturating_sub(2)));
        }
        Some(value)
    }

    /// Joins a block with the one behind it, where both are small and there is memory.
    fn join(&mut self, at: usize) {
        if let Some([(_, lower), (_, upper)]) = self.blocks.get_mut(at..at + 2)
            && lower.len() + upper.len() <= WIDTH / 2
            && lower.try_reserve_exact(upper.len()).is_ok()
        {
            lower.append(upper);
            self.blocks.remove(at + 1);
        }
    }

    /// The values in the order of their keys.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.blocks
            .iter()
            .flat_map(|block| &block.1)
            .map(|entry| &entry.1)
    }
}

/// Makes room for one more.
fn reserve<T>(entries: &mut Vec<T>) -> Result<(), IdError> {
    let len = entries.len();
    if len < entries.capacity() {
        return Ok(());
    }
    entries
        .try_reserve_exact(len.clamp(4, len.max(WIDTH) / 2))
        .map_err(|_| IdError::OutOfMemory)
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    impl<V> Ordered<V> {
        /// Checks what the comments say.
        fn check(&self) {
            assert!(
                self.blocks
                    .iter()
                    .all(|block| (1..=WIDTH).contains(&block.1.len()))
            );
            for (n, (from, block)) in self.blocks.iter().enumerate() {
                let below = self.blocks.get(n + 1).map(|next| next.0);
                let within =
                    |key: u64| (n == 0 || key >= *from) && below.is_none_or(|below| key < below);
                assert!(block.is_sorted_by_key(|entry| entry.0));
                assert!(block.iter().all(|entry| within(entry.0)));
            }
        }
    }

    /// Random insertions and removals, growing and shrinking in turn, against the standard library's map.
    #[test]
    fn it_is_an_ordered_map() {
        let mut map = Ordered::default();
        let mut model = BTreeMap::new();
        let mut random = 1u64;
        for turn in 0..120_000u64 {
            random = random
                .wrapping_mul(0x5851_F42D_4C95_7F2D)
                .wrapping_add(0x1405_7B7E_F767_814F);
            let key = (random >> 33) % 20_000;
            let grow = turn / 20_000 % 2 == 0;
            let insert = (random >> 20) % 8 < if grow { 6 } else { 1 };
            if insert && !model.contains_key(&key) {
                map.insert(key, turn).unwrap();
                model.insert(key, turn);
            } else if !insert {
                assert_eq!(map.remove(key), model.remove(&key));
            }
            let floor = model.range(..=key + 7).next_back().map(|(&k, v)| (k, v));
            assert_eq!(map.floor(key + 7), floor);
            let ceil = model.range(key..).next().map(|(&k, _)| k);
            assert_eq!(map.ceil(key), ceil);
            assert_eq!(map.get_mut(key).copied(), model.get(&key).copied());
            if turn % 1000 == 0 {
                map.check();
                assert!(map.values().eq(model.values()));
            }
        }
        for key in 0..20_000 {
            assert_eq!(map.remove(key), model.remove(&key));
        }
        assert!(map.blocks.is_empty() && map.floor(u64::MAX).is_none());
    }

    #[test]
    fn ascending_keys_do_not_waste_blocks() {
        let mut map = Ordered::default();
        (0..10_000u64).for_each(|key| map.insert(key, key).unwrap());
        assert!(map.bytes() <= 10_000 * 16 * 5 / 2, "{}", map.bytes());
        map.check();
        (0..10_000).rev().skip(1).step_by(2).for_each(|key| {
            map.remove(key);
        });
        map.check();
        assert_eq!(map.floor(4998), Some((4997, &4997)));
    }
}
