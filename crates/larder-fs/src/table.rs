//! Shared values under numbers with a generation: inodes under the kernel's node ids, open files under its handles.
//!
//! A number that was given back is never given again, so a late or forged one finds nothing. A look-up takes the lock of its
//! own slot only.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use larder::ids::rule::Any;
use larder::ids::{Handle, IdError, IdSpace, Tagged, Widths};

/// Slots that are made at a time.
const CHUNK: usize = 1024;

/// A value and the number that it has, which may be another than the one that is looked for.
type Slot<T> = RwLock<Option<(u64, Arc<T>)>>;

/// Slots, made when the first is needed.
type Chunk<T> = OnceLock<Box<[Slot<T>]>>;

pub(crate) struct Table<T> {
    numbers: Tagged<IdSpace<Any, u32>>,
    chunks: Box<[Chunk<T>]>,
}

impl<T> Table<T> {
    /// The first number is 1.
    pub(crate) fn new(most: u32) -> Result<Self, IdError> {
        let numbers = Tagged::new(IdSpace::new(1..=most, Any)?, Widths::W64)?;
        let chunks = (0..=most as usize / CHUNK).map(|_| OnceLock::new());
        Ok(Self {
            numbers,
            chunks: chunks.collect(),
        })
    }

    fn slot(&self, number: u64) -> Option<&Slot<T>> {
        let index = number as u32 as usize;
        self.chunks.get(index / CHUNK)?.get()?.get(index % CHUNK)
    }

    fn put(&self, number: u64, value: Arc<T>) {
        let index = number as u32 as usize;
        let chunk = self.chunks[index / CHUNK]
            .get_or_init(|| (0..CHUNK).map(|_| RwLock::new(None)).collect());
        let mut slot = chunk[index % CHUNK]
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *slot = Some((number, value));
    }

    /// A number for the value that `make` makes of it. None if there are no more.
    pub(crate) fn add(&self, make: impl FnOnce(u64) -> Option<Arc<T>>) -> Option<Arc<T>> {
        let number = self.numbers.alloc().ok()?;
        match make(number.raw()) {
            Some(value) => {
                self.put(number.raw(), Arc::clone(&value));
                Some(value)
            }
            None => {
                let _ = self.numbers.free(number);
                None
            }
        }
    }

    /// The value under 1, which must be the first.
    pub(crate) fn add_first(&self, value: Arc<T>) -> Result<(), IdError> {
        self.numbers.alloc_at(1)?;
        self.put(1, value);
        Ok(())
    }

    pub(crate) fn get(&self, number: u64) -> Option<Arc<T>> {
        let slot = self.slot(number)?;
        let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
        let (of, value) = slot.as_ref()?;
        (*of == number).then(|| Arc::clone(value))
    }

    pub(crate) fn remove(&self, number: u64) -> Option<Arc<T>> {
        let slot = self.slot(number)?;
        let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
        let (_, value) = slot.take_if(|(of, _)| *of == number)?;
        drop(slot);
        let _ = self.numbers.free(Handle::from_raw(number));
        Some(value)
    }

    /// The next value whose slot is at or behind this one, and its slot.
    pub(crate) fn next(&self, from: usize) -> Option<(usize, Arc<T>)> {
        let mut at = from;
        while let Some(chunk) = self.chunks.get(at / CHUNK) {
            let Some(chunk) = chunk.get() else {
                at = (at / CHUNK + 1) * CHUNK;
                continue;
            };
            let slot = chunk[at % CHUNK]
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some((_, value)) = slot.as_ref() {
                return Some((at, Arc::clone(value)));
            }
            at += 1;
        }
        None
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.ids().allocated() as usize
    }

    /// Bytes of the table, about.
    pub(crate) fn bytes(&self) -> usize {
        let made = self
            .chunks
            .iter()
            .filter(|chunk| chunk.get().is_some())
            .count();
        self.chunks.len() * size_of::<Chunk<T>>()
            + made * CHUNK * size_of::<Slot<T>>()
            + self.numbers.table_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_given_back_finds_nothing() {
        let table = Table::new(10).unwrap();
        table.add_first(Arc::new(7)).unwrap();
        let mut numbers = Vec::new();
        for value in 0..5 {
            table.add(|number| {
                numbers.push(number);
                Some(Arc::new(value))
            });
        }
        assert_eq!(table.get(1).as_deref(), Some(&7));
        assert_eq!(table.remove(numbers[2]).as_deref(), Some(&2));
        let mut again = 0;
        table.add(|number| {
            again = number;
            Some(Arc::new(9))
        });
        assert_eq!(table.get(numbers[2]), None);
        assert_eq!(table.remove(numbers[2]), None);
        assert_eq!(table.get(again).as_deref(), Some(&9));
        assert_eq!(table.len(), 6);
        let mut seen = 0;
        let mut from = 0;
        while let Some((at, _)) = table.next(from) {
            (seen, from) = (seen + 1, at + 1);
        }
        assert_eq!(seen, 6);
    }
}
