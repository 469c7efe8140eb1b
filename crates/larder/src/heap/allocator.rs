//! Heaps as allocators of collections: `hashbrown`, `bumpalo` and others take them.

use core::alloc::Layout;
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};

use super::{Classes, Heap};

/// The three functions that both kinds have.
trait Blocks {
    fn take(&self, layout: Layout) -> Result<NonNull<u8>, super::AllocError>;
    fn take_zeroed(&self, layout: Layout) -> Result<NonNull<u8>, super::AllocError>;
    /// # Safety
    /// As for [`Allocator::deallocate`].
    unsafe fn give(&self, at: NonNull<u8>, layout: Layout);
}

/// What is had for no bytes: an address and nothing behind it.
fn nothing(layout: Layout) -> NonNull<[u8]> {
    let at = core::num::NonZero::new(layout.align()).unwrap_or(core::num::NonZero::<usize>::MIN);
    NonNull::slice_from_raw_parts(NonNull::without_provenance(at), 0)
}

/// A block as the trait wants it.
fn block(
    layout: Layout,
    take: impl FnOnce(Layout) -> Result<NonNull<u8>, super::AllocError>,
) -> Result<NonNull<[u8]>, AllocError> {
    if layout.size() == 0 {
        return Ok(nothing(layout));
    }
    let at = take(layout).map_err(|_| AllocError)?;
    Ok(NonNull::slice_from_raw_parts(at, layout.size()))
}

macro_rules! allocator {
    ($type:ty) => {
        impl Blocks for $type {
            #[inline]
            fn take(&self, layout: Layout) -> Result<NonNull<u8>, super::AllocError> {
                self.alloc(layout)
            }
            fn take_zeroed(&self, layout: Layout) -> Result<NonNull<u8>, super::AllocError> {
                self.alloc_zeroed(layout)
            }
            #[inline]
            unsafe fn give(&self, at: NonNull<u8>, layout: Layout) {
                // SAFETY: the caller's promise.
                unsafe { self.dealloc(at, layout) }
            }
        }

        // SAFETY: blocks are disjoint and stay until they are given back; a reference that is copied or moved is the same
        // heap, and objects may be freed through any heap of the same classes.
        unsafe impl Allocator for &$type {
            #[inline]
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                block(layout, |layout| Blocks::take(*self, layout))
            }
            #[inline]
            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                block(layout, |layout| Blocks::take_zeroed(*self, layout))
            }
            #[inline]
            unsafe fn deallocate(&self, at: NonNull<u8>, layout: Layout) {
                if layout.size() != 0 {
                    // SAFETY: the caller's promise.
                    unsafe { Blocks::give(*self, at, layout) };
                }
            }
        }
    };
}

allocator!(Heap);
allocator!(Classes);

#[cfg(test)]
mod tests {
    use allocator_api2::boxed::Box;
    use allocator_api2::vec::Vec;

    use super::*;
    use crate::objects::Family;

    #[test]
    fn collections_live_in_a_heap() {
        let classes = Classes::new(&Family::new().unwrap());
        let heap = Heap::new(&classes);
        {
            let mut numbers = Vec::new_in(&heap);
            numbers.extend(0..10_000_u32);
            let mut map =
                hashbrown::HashMap::<_, _, hashbrown::DefaultHashBuilder, _>::new_in(&classes);
            for &n in &numbers {
                map.insert(n, Box::new_in(u64::from(n) * 2, &heap));
            }
            assert!(heap.stats().charged_bytes > 10_000 * 16);
            assert!(numbers.iter().all(|n| *map[n] == u64::from(*n) * 2));
            let zeroed = (&heap).allocate_zeroed(Layout::new::<[u8; 500]>()).unwrap();
            // SAFETY: just taken, and put once.
            unsafe {
                assert!(zeroed.as_ref().iter().all(|&b| b == 0));
                (&heap).deallocate(zeroed.cast(), Layout::new::<[u8; 500]>());
            }
            let empty: Box<[u8; 0], &Heap> = Box::new_in([], &heap);
            assert_eq!(empty.len(), 0);
        }
        heap.trim();
        assert_eq!(heap.stats().charged_bytes, 0);
        heap.set_limit(1000);
        assert!((&heap).allocate(Layout::new::<[u8; 2000]>()).is_err());
    }
}
