//! An array that grows and never moves, so that it can be read while it grows: one reserved range of addresses, of which as much
//! is accessible as is in use.

use core::marker::PhantomData;
use core::ops::Index;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use rustix::io::Errno;

use super::{OsError, Span, System, page_size};

/// Types that are shared by reference, and for which all bytes zero are a value.
///
/// # Safety
/// Exactly that, the size is a power of two of at most a page, the alignment is no more than that, and the type needs no drop.
pub(crate) unsafe trait SharedZero: Sync {}

// SAFETY: a number.
unsafe impl SharedZero for AtomicU32 {}
// SAFETY: 32 bytes of numbers.
unsafe impl SharedZero for ([AtomicU64; 2], [AtomicU32; 4]) {}

const _: () = assert!(size_of::<([AtomicU64; 2], [AtomicU32; 4])>() == 32);

/// The array. Elements are zero at first.
#[derive(Debug)]
pub(crate) struct Grown<T> {
    span: Span,
    /// Elements that are accessible.
    room: AtomicUsize,
    system: Arc<dyn System>,
    of: PhantomData<T>,
}

impl<T: SharedZero> Grown<T> {
    /// An array of a page, with addresses for `most` elements.
    ///
    /// # Errors
    /// The system's refusal.
    pub(crate) fn new(system: Arc<dyn System>, most: u32) -> Result<Self, OsError> {
        let bytes = (most as usize)
            .checked_mul(size_of::<T>())
            .and_then(|bytes| bytes.max(1).checked_next_multiple_of(page_size()))
            .ok_or(OsError::new("reserve(array)", most as usize, Errno::NOMEM))?;
        let array = Self {
            span: system.reserve(bytes, page_size())?,
            room: AtomicUsize::new(0),
            system,
            of: PhantomData,
        };
        array.grow()?;
        Ok(array)
    }

    /// Elements that are accessible.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.room.load(Ordering::Acquire)
    }

    /// What is accessible now.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: the committed part, which lives as long as `self`. It begins at a page, so elements are aligned. Its bytes
        // were zero, which is a value; from then on it is only used through shared references.
        unsafe { core::slice::from_raw_parts(self.span.at.cast::<T>().as_ptr(), self.room()) }
    }

    /// Doubles the array, as far as its addresses reach.
    ///
    /// # Errors
    /// The system's refusal, or `ENOMEM` when the addresses are used up. Nothing has changed.
    pub(crate) fn grow(&self) -> Result<(), OsError> {
        let from = self.room() * size_of::<T>();
        let to = (2 * from).max(page_size()).min(self.span.len);
        if to <= from {
            return Err(OsError::new("grow(array)", 2 * from, Errno::NOMEM));
        }
        // SAFETY: a part of this array's own reservation. A thread that grows it at the same time commits the same part.
        unsafe { self.system.commit(self.span.part(from, to - from)) }?;
        self.room.fetch_max(to / size_of::<T>(), Ordering::Release);
        Ok(())
    }
}

impl<T: SharedZero> Index<u32> for Grown<T> {
    type Output = T;

    /// Element `index`: 5 instructions.
    ///
    /// # Panics
    /// Where a slice does.
    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.as_slice()[index as usize]
    }
}

impl<T> Drop for Grown<T> {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` reserved, and with its owner gone no reference to it is left. A refusal leaks addresses;
        // `drop` cannot report it.
        let _ = unsafe { self.system.release(self.span) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::os::testing::{Base, Call, Failing, Hooked, Recording, system};

    type Record = ([AtomicU64; 2], [AtomicU32; 4]);

    /// Elements of a page.
    fn first<T>() -> usize {
        page_size() / size_of::<T>()
    }

    #[test]
    fn elements_stay_where_they_are() {
        let array = Grown::<AtomicU32>::new(system(), 8 * first::<AtomicU32>() as u32).unwrap();
        let first = &array[0];
        first.store(7, Ordering::Relaxed);
        array[array.room() as u32 - 1].store(8, Ordering::Relaxed);
        let mut rooms = vec![array.room()];
        while array.grow().is_ok() {
            rooms.push(array.room());
        }
        let n = page_size() / 4;
        assert_eq!(rooms, [n, 2 * n, 4 * n, 8 * n]);
        for i in 0..array.room() as u32 {
            let expected = match i as usize {
                0 => 7,
                i if i == n - 1 => 8,
                _ => 0,
            };
            assert_eq!(array[i].load(Ordering::Relaxed), expected);
        }
        assert!(core::ptr::eq(first, &array[0]));
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn what_is_not_there_is_not_read() {
        let array = Grown::<Record>::new(system(), u16::MAX.into()).unwrap();
        let room = array.room() as u32;
        array[room - 1].1[3].store(1, Ordering::Relaxed);
        array[room].1[3].store(1, Ordering::Relaxed);
    }

    #[test]
    fn what_was_reserved_is_released() {
        let system = Arc::new(Hooked::new(Base::default(), Recording::default()));
        let array = Grown::<Record>::new(system.clone(), u16::MAX.into()).unwrap();
        for _ in 0..3 {
            array.grow().unwrap();
        }
        assert_eq!(array.room(), 8 * first::<Record>());
        drop(array);
        assert_eq!(system.hook().count(Call::Reserve), 1);
        assert_eq!(system.hook().count(Call::Commit), 4);
        assert_eq!(system.hook().count(Call::Release), 1);
    }

    #[test]
    fn a_refusal_leaves_it_as_it_was() {
        let system = Arc::new(Hooked::new(
            Base::default(),
            Failing::only(Call::Commit, 1, 1),
        ));
        let array = Grown::<Record>::new(system, u16::MAX.into()).unwrap();
        let room = array.room();
        assert!(array.grow().is_err());
        assert_eq!(array.room(), room);
        array.grow().unwrap();
        assert_eq!(array.room(), 2 * room);
    }

    #[test]
    fn it_ends_with_its_addresses() {
        let most = 3 * first::<Record>();
        let array = Grown::<Record>::new(system(), most as u32).unwrap();
        array.grow().unwrap();
        array.grow().unwrap();
        assert_eq!(array.room(), most);
        assert!(array.grow().is_err());
        assert_eq!(array.room(), most);
    }
}
