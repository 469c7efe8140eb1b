//! An array that grows and never moves, so that it can be read while it grows.
//!
//! Each chunk is as large as all before it together and one more, straight from the system. A chunk stays where it is
//! until the array is dropped, so a reference into it never dangles and readers need no lock.

use core::marker::PhantomData;
use core::ops::Index;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use rustix::io::Errno;

use super::{MetaRegion, OsError, Span, System, page_size};

/// Bytes of the first chunk; every later one doubles.
const FIRST_BYTES: usize = 4096;
/// Chunks at most; the 32-bit index ends before.
const CHUNKS: usize = 30;

/// Types that are shared by reference, and for which all bytes zero are a value.
///
/// # Safety
/// Exactly that, the size is a power of two of at most 4096 bytes, the alignment is no more than that, and the type
/// needs no drop.
pub(crate) unsafe trait SharedZero: Sync {}

// SAFETY: a number.
unsafe impl SharedZero for AtomicU32 {}
// SAFETY: eight numbers.
unsafe impl SharedZero for [AtomicU64; 8] {}

/// The array. Elements are zero at first.
#[derive(Debug)]
pub(crate) struct Grown<T> {
    system: Arc<dyn System>,
    /// Elements that are there.
    room: AtomicUsize,
    /// Chunk c holds `FIRST << c` elements; null until it is there.
    chunks: [AtomicPtr<T>; CHUNKS],
    of: PhantomData<T>,
}

impl<T: SharedZero> Grown<T> {
    /// Elements of the first chunk.
    const FIRST: usize = FIRST_BYTES / size_of::<T>();

    /// An array without elements. Asks the system for nothing.
    pub(crate) fn new(system: Arc<dyn System>) -> Self {
        Self {
            system,
            room: AtomicUsize::new(0),
            chunks: [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS],
            of: PhantomData,
        }
    }

    /// Elements that are there.
    pub(crate) fn room(&self) -> usize {
        self.room.load(Ordering::Acquire)
    }

    /// Adds a chunk: about as many elements as there are. Those that nobody touches cost addresses only.
    ///
    /// # Errors
    /// The system's refusal, or `ENOMEM` when a 32-bit index would not reach.
    pub(crate) fn grow(&self) -> Result<(), OsError> {
        let room = self.room();
        let (c, _) = Self::place(room);
        let more = Self::FIRST << c;
        if c >= CHUNKS || room + more > u32::MAX as usize {
            return Err(OsError::new("grow(array)", room, Errno::NOMEM));
        }
        let region = MetaRegion::new(self.system.clone(), Self::bytes(c), FIRST_BYTES)?;
        let at = region.span().at.cast::<T>().as_ptr();
        if self.chunks[c]
            .compare_exchange(
                core::ptr::null_mut(),
                at,
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .is_ok()
        {
            // Released by `drop` below. The loser of a race drops its region at once.
            region.into_span();
            self.room.store(room + more, Ordering::Release);
        }
        Ok(())
    }

    /// Element `index`, if it is there. About 8 instructions.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (c, offset) = Self::place(index as usize);
        let base = NonNull::new(self.chunks.get(c)?.load(Ordering::Acquire))?;
        // SAFETY: chunk c has `FIRST << c` elements, `offset` is below that, and the chunk lives as long as `self`.
        // Its bytes were zero, which is a value; from then on it is only used through shared references.
        Some(unsafe { base.add(offset).as_ref() })
    }

    /// Chunk and place within it of element `index`.
    #[inline]
    fn place(index: usize) -> (usize, usize) {
        let n = index + Self::FIRST;
        let c = (n.ilog2() - Self::FIRST.ilog2()) as usize;
        (c, n - (Self::FIRST << c))
    }

    fn bytes(c: usize) -> usize {
        ((Self::FIRST << c) * size_of::<T>()).next_multiple_of(page_size())
    }
}

impl<T: SharedZero> Index<u32> for Grown<T> {
    type Output = T;
    /// # Panics
    /// As a slice does.
    #[inline]
    fn index(&self, index: u32) -> &T {
        match self.get(index) {
            Some(element) => element,
            None => beyond(index),
        }
    }
}

#[cold]
#[inline(never)]
fn beyond(index: u32) -> ! {
    panic!("element {index} is not there");
}

impl<T> Drop for Grown<T> {
    fn drop(&mut self) {
        for (c, base) in self.chunks.iter_mut().enumerate() {
            if let Some(at) = NonNull::new(base.get_mut().cast::<u8>()) {
                let len = (FIRST_BYTES << c).next_multiple_of(page_size());
                // SAFETY: exactly the region that `grow` mapped, and with its owner gone nobody refers to it. A refusal
                // leaks addresses, and there is nobody to tell.
                let _ = unsafe { self.system.release(Span { at, len }) };
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::os::testing::{Base, Call, Counting, Failing, Hooked, system};

    #[test]
    fn elements_stay_where_they_are() {
        let array = Grown::<AtomicU32>::new(system());
        assert!(array.get(0).is_none());
        array.grow().unwrap();
        let first = &array[0];
        first.store(7, Ordering::Relaxed);
        while array.room() < 10_000 {
            array.grow().unwrap();
        }
        for i in 0..array.room() as u32 {
            assert_eq!(array[i].load(Ordering::Relaxed), if i == 0 { 7 } else { i });
            if i + 1 < array.room() as u32 {
                array[i + 1].store(i + 1, Ordering::Relaxed);
            }
        }
        assert!(core::ptr::eq(first, &array[0]));
        assert!(array.get(array.room() as u32).is_none());
        assert!(array.get(u32::MAX).is_none());
    }

    #[test]
    fn what_was_mapped_is_released() {
        let system = Arc::new(Hooked::new(Base::default(), Counting::default()));
        let array = Grown::<[AtomicU64; 8]>::new(system.clone());
        for _ in 0..4 {
            array.grow().unwrap();
        }
        assert_eq!(array.room(), 64 * 15);
        drop(array);
        assert_eq!(system.hook().count(Call::Reserve), 4);
        assert_eq!(system.hook().count(Call::Release), 4);
    }

    #[test]
    fn a_refusal_leaves_it_as_it_was() {
        let system = Arc::new(Hooked::new(
            Base::default(),
            Failing::only(Call::Commit, 1, 1),
        ));
        let array = Grown::<[AtomicU64; 8]>::new(system);
        array.grow().unwrap();
        assert!(array.grow().is_err());
        assert_eq!(array.room(), 64);
        array.grow().unwrap();
        assert_eq!(array.room(), 192);
    }
}
