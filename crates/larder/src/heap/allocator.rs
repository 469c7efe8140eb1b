//! Heaps as allocators of collections: `hashbrown` takes them, and what else takes an `allocator_api2` allocator.

use core::alloc::Layout;
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};

use super::{Classes, Heap};

/// What both kinds have.
trait Blocks {
    fn take(&self, layout: Layout) -> Result<NonNull<u8>, super::AllocError>;
    fn take_zeroed(&self, layout: Layout) -> Result<NonNull<u8>, super::AllocError>;
    /// # Safety
    /// As for [`Allocator::deallocate`].
    unsafe fn give(&self, at: NonNull<u8>, layout: Layout);
    /// # Safety
    /// As for [`Allocator::shrink`] and [`Allocator::grow`].
    unsafe fn resize(
        &self,
        at: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<u8>, super::AllocError>;
}

/// What is had for no bytes: an address and nothing behind it.
fn nothing(layout: Layout) -> NonNull<[u8]> {
    let at = core::num::NonZero::new(layout.align()).unwrap_or(core::num::NonZero::<usize>::MIN);
    NonNull::slice_from_raw_parts(NonNull::without_provenance(at), 0)
}

/// A block of another size; one of no bytes has no memory.
///
/// # Safety
/// As for [`Allocator::shrink`] and [`Allocator::grow`].
unsafe fn resized(
    blocks: &impl Blocks,
    at: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Result<NonNull<[u8]>, AllocError> {
    if old.size() == 0 {
        return block(new, |layout| blocks.take(layout));
    }
    if new.size() == 0 {
        // SAFETY: the caller's promise.
        unsafe { blocks.give(at, old) };
        return Ok(nothing(new));
    }
    // SAFETY: as above.
    block(new, |new| unsafe { blocks.resize(at, old, new) })
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
            unsafe fn resize(
                &self,
                at: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<u8>, super::AllocError> {
                // SAFETY: the caller's promise.
                unsafe { self.realloc(at, old, new) }
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
            unsafe fn grow(
                &self,
                at: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the caller's promise.
                unsafe { resized(*self, at, old, new) }
            }
            unsafe fn grow_zeroed(
                &self,
                at: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: as above; it has the new size, and the bytes behind the old one are not in use.
                unsafe {
                    let grown = resized(*self, at, old, new)?;
                    let more = new.size() - old.size();
                    grown.cast::<u8>().add(old.size()).write_bytes(0, more);
                    Ok(grown)
                }
            }
            /// Fails only where the block is to be more aligned: without memory it stays where it is.
            unsafe fn shrink(
                &self,
                at: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: as for `grow`.
                unsafe { resized(*self, at, old, new) }
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

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    /// Takes blocks until there is no memory, and makes each smaller.
    fn shrinks_without_memory(allocator: impl Allocator) {
        let mut blocks = std::vec::Vec::new();
        for old in [layout(100_000, 8), layout(600, 64)] {
            while let Ok(block) = allocator.allocate(old) {
                // SAFETY: the block's own bytes.
                unsafe {
                    block
                        .cast::<u8>()
                        .write_bytes(blocks.len() as u8, old.size())
                };
                blocks.push((block.cast::<u8>(), old));
            }
        }
        assert!(blocks.len() > 100);
        let mut stayed = 0;
        for (i, (at, old)) in blocks.into_iter().enumerate().rev() {
            let new = [layout(60, 8), layout(500, 64), layout(0, 8)][i % 3];
            // SAFETY: each block has one layout, the last it was given.
            unsafe {
                let block = allocator.shrink(at, old, new).unwrap();
                assert_eq!(block.len(), new.size());
                assert!(block.as_ref().iter().all(|&b| b == i as u8));
                stayed += usize::from(new.size() > 0 && block.cast() == at);
                allocator.deallocate(block.cast(), new);
            }
        }
        assert!(stayed > 0, "all moved: there was memory");
    }

    #[test]
    fn to_make_a_block_smaller_never_fails() {
        let classes = || {
            let pages = crate::pages::PagePool::builder()
                .ignore_environment()
                .limit_bytes(4 << 20)
                .reserve_bytes(64 << 20);
            Classes::new(&Family::builder().pages(pages).build().unwrap())
        };
        shrinks_without_memory(&Heap::new(&classes()));
        shrinks_without_memory(&classes());
    }

    #[test]
    fn a_block_that_grows_keeps_its_bytes_and_zeroes_the_rest() {
        let classes = Classes::new(&Family::new().unwrap());
        // SAFETY: each block is used with the layout that it has.
        unsafe {
            let mut block = (&classes).allocate(layout(0, 8)).unwrap();
            let mut old = layout(0, 8);
            for (size, align) in [(5, 8), (7, 8), (200, 64), (40_000, 64), (40_001, 4096)] {
                let new = layout(size, align);
                let to = if size == 7 {
                    (&classes).grow(block.cast(), old, new)
                } else {
                    (&classes).grow_zeroed(block.cast(), old, new)
                };
                block = to.unwrap();
                assert_eq!(block.as_ref().len(), size);
                assert_eq!(block.cast::<u8>().as_ptr() as usize % align, 0);
                let first = if size == 7 { size } else { old.size() };
                assert!(block.as_ref()[..old.size()].iter().all(|&b| b == 9));
                assert!(block.as_ref()[first..].iter().all(|&b| b == 0), "{size}");
                block.cast::<u8>().write_bytes(9, size);
                old = new;
            }
            (&classes).deallocate(block.cast(), old);
        }
    }
}
