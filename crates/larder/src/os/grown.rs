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
    /// Element i is number i + FIRST, and chunk c has the numbers from 2^c on, so that a number's chunk is its logarithm.
    /// What is kept is where number 0 would lie if the chunk went back so far; null while the chunk is not there.
    chunks: [AtomicPtr<T>; usize::BITS as usize],
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
            chunks: [const { AtomicPtr::new(core::ptr::null_mut()) }; usize::BITS as usize],
            of: PhantomData,
        }
    }

    /// Elements that are there.
    pub(crate) fn room(&self) -> usize {
        self.room.load(Ordering::Acquire)
    }

    /// Adds a chunk: about as many elements as there are. Untouched elements cost addresses only.
    ///
    /// # Errors
    /// The system's refusal, or `ENOMEM` when a 32-bit index would not reach.
    pub(crate) fn grow(&self) -> Result<(), OsError> {
        let room = self.room();
        // The chunk's first number, which is also how many it has.
        let first = room + Self::FIRST;
        let refused = OsError::new("grow(array)", room, Errno::NOMEM);
        if room + first > u32::MAX as usize {
            return Err(refused);
        }
        let region = MetaRegion::new(self.system.clone(), first * size_of::<T>(), FIRST_BYTES)?;
        let zeroth = region.span().at.cast::<T>().as_ptr().wrapping_sub(first);
        // No machine of today has chunks so far down.
        if zeroth.is_null() {
            return Err(refused);
        }
        if self.chunks[first.ilog2() as usize]
            .compare_exchange(
                core::ptr::null_mut(),
                zeroth,
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .is_ok()
        {
            // Released by `drop` below. The loser of a race drops its region at once.
            region.into_span();
            self.room.store(room + first, Ordering::Release);
        }
        Ok(())
    }

    /// Number of element `index`, and where number 0 of its chunk would lie, or null.
    #[inline]
    fn place(&self, index: u32) -> (usize, *mut T) {
        let number = index as usize + Self::FIRST;
        (
            number,
            self.chunks[number.ilog2() as usize].load(Ordering::Acquire),
        )
    }
}

impl<T: SharedZero> Index<u32> for Grown<T> {
    type Output = T;

    /// Element `index`: 7 instructions.
    ///
    /// # Panics
    /// Where a slice does.
    #[inline]
    fn index(&self, index: u32) -> &T {
        let (number, zeroth) = self.place(index);
        if zeroth.is_null() {
            beyond(index);
        }
        // SAFETY: the chunk has the numbers from 2^c to 2^(c+1) - 1, of which `number` is one, so this is inside of it; it
        // is aligned, since chunks are aligned to 4096, and lives as long as `self`. Its bytes were zero, which is a
        // value; from then on it is only used through shared references.
        unsafe { &*zeroth.wrapping_add(number) }
    }
}

#[cold]
#[inline(never)]
fn beyond(index: u32) -> ! {
    panic!("element {index} is not there");
}

impl<T> Drop for Grown<T> {
    fn drop(&mut self) {
        for (c, zeroth) in self.chunks.iter_mut().enumerate() {
            let zeroth = *zeroth.get_mut();
            if zeroth.is_null() {
                continue;
            }
            let first = 1 << c;
            let len = (first * size_of::<T>()).next_multiple_of(page_size());
            if let Some(at) = NonNull::new(zeroth.wrapping_add(first).cast::<u8>()) {
                // SAFETY: exactly the region that `grow` mapped, and with its owner gone no reference to it is left. A
                // refusal leaks addresses; `drop` cannot report it.
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
    }

    #[test]
    #[should_panic(expected = "element 64 is not there")]
    fn what_is_not_there_is_not_read() {
        let array = Grown::<[AtomicU64; 8]>::new(system());
        array.grow().unwrap();
        array[63][7].store(1, Ordering::Relaxed);
        array[64][0].store(1, Ordering::Relaxed);
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
