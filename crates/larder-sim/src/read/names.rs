//! Names (paths, keys) as small numbers, and the bytes of what a reader keeps.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::ranges::Ranges;

/// Numbers for names, in order of arrival.
#[derive(Debug)]
pub(super) struct Names {
    numbers: HashMap<Box<[u8]>, u32>,
    next: u32,
    /// Of the names, and of what is [`Kept`].
    bytes: Arc<AtomicU64>,
    most: u64,
}

/// Approximate bytes of an entry in a table, without its text.
const ENTRY: u64 = 64;

/// What a reader keeps beside the names. Its bytes count until it is dropped, and those of a clone as well.
#[derive(Debug)]
pub(super) struct Kept<T> {
    value: T,
    bytes: u64,
    all: Arc<AtomicU64>,
}

impl<T: Clone> Clone for Kept<T> {
    fn clone(&self) -> Self {
        self.all.fetch_add(self.bytes, Relaxed);
        Self {
            value: self.value.clone(),
            bytes: self.bytes,
            all: Arc::clone(&self.all),
        }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Relaxed);
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Kept<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl Kept<Ranges> {
    /// Counts the ranges that there are now.
    pub(super) fn count(&mut self) {
        let bytes = self.value.bytes() + ENTRY;
        self.all.fetch_add(bytes.wrapping_sub(self.bytes), Relaxed);
        self.bytes = bytes;
    }
}

impl Names {
    /// Names, and what is kept beside them, that take this many bytes at most.
    pub(super) fn within(most: u64) -> Self {
        Self {
            numbers: HashMap::new(),
            next: 0,
            bytes: Arc::default(),
            most,
        }
    }

    /// The number of a name, a new one if it has none.
    pub(super) fn number(&mut self, name: &[u8]) -> Result<u32, String> {
        match self.numbers.get(name) {
            Some(number) => Ok(*number),
            None => {
                let number = self.next;
                self.next = number
                    .checked_add(1)
                    .ok_or("more than 2^32 different names")?;
                self.bytes.fetch_add(ENTRY, Relaxed);
                self.set(name, number)?;
                Ok(number)
            }
        }
    }

    /// The number that a name has.
    pub(super) fn known(&self, name: &[u8]) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// The numbers of the names that begin like this, in the order of the names: that of a hash table is none.
    pub(super) fn beginning(&self, with: &[u8]) -> Vec<u32> {
        let mut found: Vec<_> = self
            .numbers
            .iter()
            .filter(|(name, _)| name.starts_with(with))
            .collect();
        found.sort();
        found.into_iter().map(|(_, number)| *number).collect()
    }

    /// Removes a name. The entry of its number stays counted: the reader keeps what the number stood for.
    pub(super) fn forget(&mut self, name: &[u8]) -> Option<u32> {
        let number = self.numbers.remove(name)?;
        self.bytes.fetch_sub(name.len() as u64, Relaxed);
        Some(number)
    }

    /// Makes a name stand for a number. Returns the one that it stood for.
    pub(super) fn set(&mut self, name: &[u8], number: u32) -> Result<Option<u32>, String> {
        self.bytes.fetch_add(name.len() as u64, Relaxed);
        self.check()?;
        let before = self.numbers.insert(name.into(), number);
        if before.is_some() {
            self.bytes.fetch_sub(name.len() as u64, Relaxed);
        }
        Ok(before)
    }

    /// Renames every name for which `new` has another one. Returns the numbers that lost their names, in their order.
    pub(super) fn rename(
        &mut self,
        new: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<Vec<u32>, String> {
        let names = self.numbers.keys();
        let pairs = names.filter_map(|name| Some((name.clone(), new(name)?)));
        let pairs: Vec<_> = pairs.collect();
        let numbers: Vec<_> = pairs.iter().map(|(old, _)| self.forget(old)).collect();
        let mut lost = Vec::new();
        for ((_, new), number) in pairs.iter().zip(numbers) {
            if let Some(number) = number {
                lost.extend(self.set(new, number)?);
            }
        }
        lost.sort_unstable();
        Ok(lost)
    }

    /// Counts an entry and so many bytes more until the value is dropped.
    pub(super) fn keep<T>(&self, value: T, bytes: u64) -> Result<Kept<T>, String> {
        let bytes = bytes + ENTRY;
        self.bytes.fetch_add(bytes, Relaxed);
        let all = Arc::clone(&self.bytes);
        let kept = Kept { value, bytes, all };
        self.check()?;
        Ok(kept)
    }

    /// To be called also after what is kept was cloned or counted.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.bytes.load(Relaxed) <= self.most {
            return Ok(());
        }
        let also = match Arc::strong_count(&self.bytes) {
            1 => "",
            _ => "what is open, what was used and ",
        };
        Err(format!(
            "{also}the {} different names until here take more than the {} MiB that the trace may take in memory; \
             raise --max-memory, or take a part with --limit",
            self.numbers.len(),
            self.most.div_ceil(1 << 20)
        ))
    }
}
