//! An ordered map that says when there is no memory.

use alloc::vec::Vec;
use core::mem;

use crate::ids::IdError;

/// Entries of a node.
const WIDTH: usize = 32;

/// A map with keys in order, as a B+ tree: Bayer and McCreight's of 1972, with all values in the leaves. The standard
/// library's cannot say that there is no memory for a node; this one does, and then nothing has changed.
///
/// A node on the way to a new key is split when it is full, so that there is always room above; so a split that succeeds
/// before another fails has changed the shape and not the contents. Nodes in a row that have become nearly empty are
/// joined.
#[derive(Debug)]
pub(crate) struct Ordered<V> {
    root: Node<V>,
}

#[derive(Debug)]
enum Node<V> {
    Leaf(Vec<(u64, V)>),
    /// Each child with a key that is not above any of its keys and above all keys of the child before. That of the
    /// first one is of no account. No child is empty.
    Inner(Vec<(u64, Node<V>)>),
}

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self {
            root: Node::Leaf(Vec::new()),
        }
    }
}

impl<V> Ordered<V> {
    /// Bytes of the nodes.
    pub(crate) fn bytes(&self) -> usize {
        self.root.bytes()
    }

    /// The entry with the largest key that is not above `key`.
    pub(crate) fn floor(&self, key: u64) -> Option<(u64, &V)> {
        self.root.floor(key)
    }

    /// The smallest key that is not below `key`.
    pub(crate) fn ceil(&self, key: u64) -> Option<u64> {
        self.root.ceil(key)
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let mut node = &mut self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let place = entries.binary_search_by_key(&key, |entry| entry.0).ok()?;
                    return entries.get_mut(place).map(|entry| &mut entry.1);
                }
                Node::Inner(children) => {
                    let place = child(children, key);
                    node = &mut children.get_mut(place)?.1;
                }
            }
        }
    }

    /// Adds an entry; its key is not there.
    pub(crate) fn insert(&mut self, key: u64, value: V) -> Result<(), IdError> {
        if self.root.is_full() {
            let mut children = Vec::new();
            reserve(&mut children)?;
            children.push((0, mem::replace(&mut self.root, Node::Leaf(Vec::new()))));
            self.root = Node::Inner(children);
        }
        let mut node = &mut self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    reserve(entries)?;
                    let place = entries.partition_point(|entry| entry.0 < key);
                    entries.insert(place, (key, value));
                    return Ok(());
                }
                Node::Inner(children) => {
                    let mut place = child(children, key);
                    if children[place].1.is_full() {
                        reserve(children)?;
                        let upper = children[place].1.split()?;
                        let above = key >= upper.0;
                        children.insert(place + 1, upper);
                        place += usize::from(above);
                    }
                    node = &mut children[place].1;
                }
            }
        }
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, key: u64) -> Option<V> {
        let value = self.root.remove(key)?;
        while let Node::Inner(children) = &mut self.root
            && children.len() <= 1
        {
            self.root = match children.pop() {
                Some((_, only)) => only,
                None => Node::Leaf(Vec::new()),
            };
        }
        Some(value)
    }

    /// Calls `visit` for each entry, in the order of the keys, until it returns something.
    pub(crate) fn find_map<T>(&self, mut visit: impl FnMut(u64, &V) -> Option<T>) -> Option<T> {
        let mut found = None;
        self.root.each(&mut |key, value| {
            found = visit(key, value);
            found.is_none()
        });
        found
    }
}

/// The index of the child to which the key belongs.
fn child<V>(children: &[(u64, Node<V>)], key: u64) -> usize {
    children
        .partition_point(|child| child.0 <= key)
        .saturating_sub(1)
}

/// Makes room for one more entry of a node that is not full.
fn reserve<T>(entries: &mut Vec<T>) -> Result<(), IdError> {
    let len = entries.len();
    if len < entries.capacity() {
        return Ok(());
    }
    let more = len.clamp(4, WIDTH);
    entries
        .try_reserve_exact(more)
        .map_err(|_| IdError::OutOfMemory)
}

/// The upper half of the entries.
fn halve<T>(entries: &mut Vec<T>) -> Result<Vec<T>, IdError> {
    let half = entries.len() / 2;
    let mut upper = Vec::new();
    upper
        .try_reserve_exact(WIDTH)
        .map_err(|_| IdError::OutOfMemory)?;
    upper.extend(entries.drain(half..));
    Ok(upper)
}

/// Appends the entries of another node if both are nearly empty and there is memory; false when they stay.
fn append<T>(entries: &mut Vec<T>, other: &mut Vec<T>) -> bool {
    let all = entries.len() + other.len();
    if all > WIDTH / 2 || entries.try_reserve_exact(other.len()).is_err() {
        return false;
    }
    entries.append(other);
    true
}

impl<V> Node<V> {
    fn len(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(children) => children.len(),
        }
    }

    fn is_full(&self) -> bool {
        self.len() >= WIDTH
    }

    /// The upper half as a node of its own, with a key for it.
    fn split(&mut self) -> Result<(u64, Self), IdError> {
        let (key, upper) = match self {
            Self::Leaf(entries) => {
                let upper = halve(entries)?;
                (upper.first().map(|entry| entry.0), Self::Leaf(upper))
            }
            Self::Inner(children) => {
                let upper = halve(children)?;
                (upper.first().map(|child| child.0), Self::Inner(upper))
            }
        };
        Ok((key.unwrap_or(u64::MAX), upper))
    }

    fn floor(&self, key: u64) -> Option<(u64, &V)> {
        match self {
            Self::Leaf(entries) => {
                let place = entries.partition_point(|entry| entry.0 <= key);
                let (key, value) = entries.get(place.checked_sub(1)?)?;
                Some((*key, value))
            }
            // When all keys of its child are above, it is the last one of the child before.
            Self::Inner(children) => children[..=child(children, key)]
                .iter()
                .rev()
                .find_map(|child| child.1.floor(key)),
        }
    }

    fn ceil(&self, key: u64) -> Option<u64> {
        match self {
            Self::Leaf(entries) => {
                let place = entries.partition_point(|entry| entry.0 < key);
                entries.get(place).map(|entry| entry.0)
            }
            Self::Inner(children) => children[child(children, key)..]
                .iter()
                .find_map(|child| child.1.ceil(key)),
        }
    }

    fn remove(&mut self, key: u64) -> Option<V> {
        match self {
            Self::Leaf(entries) => {
                let place = entries.binary_search_by_key(&key, |entry| entry.0).ok()?;
                Some(entries.remove(place).1)
            }
            Self::Inner(children) => {
                let place = child(children, key);
                let value = children.get_mut(place)?.1.remove(key)?;
                let len = children[place].1.len();
                if len == 0 {
                    children.remove(place);
                } else if len <= WIDTH / 4 && children.len() > 1 {
                    let left = place.min(children.len() - 2);
                    join(children, left);
                }
                Some(value)
            }
        }
    }

    /// False once `visit` has said so.
    fn each(&self, visit: &mut dyn FnMut(u64, &V) -> bool) -> bool {
        match self {
            Self::Leaf(entries) => entries.iter().all(|(key, value)| visit(*key, value)),
            Self::Inner(children) => children.iter().all(|child| child.1.each(visit)),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.capacity() * size_of::<(u64, V)>(),
            Self::Inner(children) => {
                let own = children.capacity() * size_of::<(u64, Self)>();
                own + children.iter().map(|child| child.1.bytes()).sum::<usize>()
            }
        }
    }
}

/// Joins a child with the next one, if both are nearly empty.
fn join<V>(children: &mut Vec<(u64, Node<V>)>, left: usize) {
    let [(_, first), (key, second)] = &mut children[left..left + 2] else {
        return;
    };
    let joined = match (first, second) {
        (Node::Leaf(first), Node::Leaf(second)) => append(first, second),
        (Node::Inner(first), Node::Inner(second)) => {
            // What was of no account is now.
            if let Some(child) = second.first_mut() {
                child.0 = *key;
            }
            append(first, second)
        }
        _ => false,
    };
    if joined {
        children.remove(left + 1);
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    impl<V> Node<V> {
        /// Checks what the comments say; returns the depth.
        fn check(&self, from: u64, below: Option<u64>, top: bool) -> usize {
            assert!(self.len() <= WIDTH && (top || self.len() > 0));
            let within = |key: u64| key >= from && below.is_none_or(|below| key < below);
            match self {
                Node::Leaf(entries) => {
                    assert!(entries.is_sorted_by_key(|entry| entry.0));
                    assert!(entries.iter().all(|entry| within(entry.0)));
                    1
                }
                Node::Inner(children) => {
                    let mut depth = None;
                    for (n, child) in children.iter().enumerate() {
                        let from = if n == 0 { from } else { child.0 };
                        let below = children.get(n + 1).map(|next| next.0).or(below);
                        let found = child.1.check(from, below, false);
                        assert!(depth.is_none_or(|depth| depth == found));
                        depth = Some(found);
                    }
                    depth.map_or(1, |depth| depth + 1)
                }
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
                map.root.check(0, None, true);
                let mut all = model.iter();
                let none = map.find_map(|key, value| {
                    assert_eq!(all.next(), Some((&key, value)));
                    None::<()>
                });
                assert!(none.is_none() && all.next().is_none());
            }
        }
        for key in 0..20_000 {
            assert_eq!(map.remove(key), model.remove(&key));
        }
        assert!(map.bytes() <= WIDTH * 16 && map.floor(u64::MAX).is_none());
    }

    #[test]
    fn ascending_keys_do_not_waste_nodes() {
        let mut map = Ordered::default();
        (0..10_000u64).for_each(|key| map.insert(key, key).unwrap());
        assert!(map.bytes() <= 10_000 * 16 * 5 / 2, "{}", map.bytes());
        assert!(map.root.check(0, None, true) <= 4);
        (0..10_000).rev().skip(1).step_by(2).for_each(|key| {
            map.remove(key);
        });
        map.root.check(0, None, true);
        assert_eq!(map.floor(4998), Some((4997, &4997)));
    }
}
