//! How objects of one size lie in slabs.

use core::alloc::Layout;

use super::error::ObjectError;
use crate::os::page_size;

/// Largest object in bytes. Beyond it a run of pages is what one wants.
pub const MAX_OBJECT: usize = 4 << 20;

/// A smaller object takes this many bytes.
const LEAST_STRIDE: usize = 8;
/// Pages of a slab at most, unless one object needs more: a block of the pool.
const MOST_PAGES: usize = 64;
/// With fewer objects in a slab, less may be left over of it.
const FEW: usize = 8;
/// Objects that make a slab large enough: about a magazine's worth.
const ENOUGH: usize = 64;
/// Bytes that make a slab large enough, whatever the number of objects: a caller that needs one large object should not
/// pay for eight, and the fewer there are in a slab, the sooner it is whole again.
const ENOUGH_BYTES: usize = 8 << 10;
/// Bytes of a slab of one object beyond which the map shows only its first page: to write more takes longer than all else about it.
const SHOWN_BYTES: usize = 1 << 20;
/// Bytes of a cache line.
pub(super) const LINE: usize = 64;
/// Bits behind the point of the reciprocal.
const SHIFT: u32 = 40;

/// The geometry of a slab. All of it follows from the layout and the least number of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bytes from one object to the next.
    pub(super) stride: usize,
    /// Pages of a slab, and bytes of a page.
    pub(super) pages: usize,
    page: usize,
    /// Objects of a slab.
    pub(super) objects: usize,
    /// Places where a slab's first object may begin, and the bytes between them: a cache line, or an object's alignment.
    colours: usize,
    colour_bytes: usize,
    /// 2^40 / stride, rounded up: division by multiplication.
    reciprocal: u64,
    /// 8 * 2^16 / objects, rounded down: how full a slab is, in eighths.
    eighths: u32,
}

impl Shape {
    /// Objects of `layout`, in slabs of at least `least_pages` pages.
    pub(super) fn new(layout: Layout, least_pages: usize) -> Result<Self, ObjectError> {
        Self::with_page(layout, least_pages, page_size())
    }

    /// As [`new`](Self::new), for pages of `page` bytes.
    pub(super) fn with_page(
        layout: Layout,
        least_pages: usize,
        page: usize,
    ) -> Result<Self, ObjectError> {
        let refused = ObjectError::Layout {
            size: layout.size(),
            align: layout.align(),
        };
        if layout.size() == 0 || layout.size() > MAX_OBJECT || layout.align() > page {
            return Err(refused);
        }
        // A layout's size rounded up to its alignment does not overflow.
        let stride = layout.pad_to_align().size().max(LEAST_STRIDE);
        let one = stride.div_ceil(page);
        let bound = MOST_PAGES.max(one);
        let good = |&pages: &usize| {
            let objects = pages * page / stride;
            let waste = pages * page - objects * stride;
            // One that wastes just a sixteenth would do so for ever: five pages hold objects of 5 KiB without a rest.
            let wastes_little = match objects < FEW {
                true => waste * 16 < pages * page,
                false => waste * 8 <= pages * page,
            };
            wastes_little && (objects >= ENOUGH || pages * page >= ENOUGH_BYTES)
        };
        let from = one.max(least_pages).min(bound);
        // An object of several pages may find no such number up to the bound: then the one that wastes least.
        let pages = (from..=bound).find(good).unwrap_or_else(|| {
            (from..=bound)
                .min_by_key(|&pages| (pages * page % stride * 64 / pages, pages))
                .unwrap_or(one)
        });
        let objects = pages * page / stride;
        let left = (pages * page - objects * stride).min(page - 1);
        let colour_bytes = layout.align().max(LINE);
        Ok(Self {
            stride,
            pages,
            page,
            objects,
            colours: left / colour_bytes + 1,
            colour_bytes,
            reciprocal: (1_u64 << SHIFT).div_ceil(stride as u64),
            eighths: (8 << 16) / objects as u32,
        })
    }

    /// Pages of a slab, from its first one on, that the map shows as its own: all, but of a very large object only the one where it begins,
    /// as of a run of pages.
    pub(super) fn shown_pages(&self) -> usize {
        if self.objects == 1 && self.bytes() > SHOWN_BYTES {
            1
        } else {
            self.pages
        }
    }

    /// Bytes of a slab.
    pub(super) fn bytes(&self) -> usize {
        self.pages * self.page
    }

    /// Where the first object of the `n`-th slab begins, in bytes: what is left over goes before it in turn, so that the
    /// objects of different slabs do not all meet in the same sets of the CPU's caches (Bonwick 1994, 4.1). Below a page.
    pub(super) fn colour(&self, n: usize) -> usize {
        n % self.colours * self.colour_bytes
    }

    /// Words of a bit for each object.
    pub(super) fn words(&self) -> usize {
        self.objects.div_ceil(64)
    }

    /// Number of the object that begins `offset` bytes into its slab; `None` when none does.
    ///
    /// The product is exact: an offset is below 2^22 (64 pages of 64 KiB), so the reciprocal's error, below one stride in
    /// 2^40, grows to less than one object's share (Granlund and Montgomery, "Division by invariant integers", 1994).
    pub(super) fn index(&self, offset: usize) -> Option<usize> {
        debug_assert!(offset < self.bytes());
        let index = ((offset as u64 * self.reciprocal) >> SHIFT) as usize;
        (index * self.stride == offset && index < self.objects).then_some(index)
    }

    /// Eighths of a slab that are in use, rounded down, of `used` objects.
    pub(super) fn eighth(&self, used: usize) -> usize {
        ((used as u32 * self.eighths) >> 16) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(size: usize, align: usize) -> Shape {
        Shape::new(Layout::from_size_align(size, align).unwrap(), 1).unwrap()
    }

    #[test]
    fn slabs_waste_at_most_an_eighth_and_are_no_larger_than_that_takes() {
        for size in (1..9000).chain((9000..=MAX_OBJECT).step_by(977)) {
            let s = shape(size, 1);
            let waste = s.bytes() - s.objects * s.stride;
            assert!(s.objects >= 1 && s.stride >= size, "{size}: {s:?}");
            if size <= MOST_PAGES * 4096 / FEW {
                assert!(s.pages <= MOST_PAGES, "{size}: {s:?}");
                assert!(waste * 8 <= s.bytes(), "{size}: {s:?}");
                assert!(s.objects >= FEW || waste * 16 < s.bytes(), "{size}: {s:?}");
            }
        }
        assert_eq!(shape(64, 8).objects, 64);
        assert_eq!(shape(4096, 4096).pages, 2);
        for (size, pages) in [
            (5 << 10, 5),
            (12 << 10, 3),
            (14 << 10, 7),
            (20 << 10, 5),
            (32 << 10, 8),
        ] {
            assert_eq!(shape(size, 512).pages, pages, "{size}");
        }
    }

    #[test]
    fn large_objects_waste_at_most_an_eighth_too() {
        for size in (32 << 10..=MAX_OBJECT).step_by(4096 + 8) {
            let s = shape(size, 8);
            let waste = s.bytes() - s.objects * s.stride;
            assert!(waste * 8 <= s.bytes(), "{size}: {s:?}");
        }
    }

    #[test]
    fn alignment_has_no_slack() {
        for align in (0..=12).map(|n| 1 << n) {
            for size in [1, 7, 8, 24, 100, 1000, 4096, 5000] {
                let s = shape(size, align);
                assert_eq!(s.stride % align, 0);
                assert!(s.stride < size.max(LEAST_STRIDE) + align, "{size} {align}");
            }
        }
    }

    #[test]
    fn the_reciprocal_divides() {
        for size in (1..3000).chain((3000..=MAX_OBJECT).step_by(4999)) {
            let s = shape(size, 1);
            for i in 0..s.objects {
                assert_eq!(s.index(i * s.stride), Some(i));
                assert_eq!(s.index(i * s.stride + 1), None);
                assert_eq!(s.index((i + 1) * s.stride - 1), None);
            }
            let rest = s.objects * s.stride;
            assert!(rest == s.bytes() || s.index(rest).is_none());
        }
    }

    #[test]
    fn eighths_are_below_eight_unless_full() {
        for size in [8, 24, 64, 100, 500, 4096, 40_000, 1 << 20] {
            let s = shape(size, 1);
            for used in 0..s.objects {
                assert!(s.eighth(used) < 8);
                assert!(s.eighth(used) <= s.eighth(used + 1));
            }
        }
    }

    #[test]
    fn colours_are_aligned_and_leave_room_for_all_objects() {
        for align in [1, 8, 64, 512, 4096] {
            for size in (1..9000).step_by(37).chain([40_000, 50_001, 700_001]) {
                let s = shape(size, align);
                let mut seen = std::collections::BTreeSet::new();
                for n in 0..200 {
                    let colour = s.colour(n);
                    assert!(colour.is_multiple_of(align) && colour < 4096);
                    assert!(colour + s.objects * s.stride <= s.bytes(), "{size} {align}");
                    seen.insert(colour);
                }
                assert_eq!(seen.len(), s.colours);
            }
        }
        assert_eq!(shape(64, 8).colours, 1, "nothing is left over");
        assert_eq!(shape(1500, 8).colours, 5);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (size, align) in [(0, 1), (MAX_OBJECT + 1, 1), (8, 8192), (usize::MAX / 4, 1)] {
            let layout = Layout::from_size_align(size, align).unwrap();
            assert!(Shape::new(layout, 1).is_err(), "{size} {align}");
        }
    }

    #[test]
    fn more_pages_may_be_asked_for() {
        let layout = Layout::from_size_align(64, 8).unwrap();
        assert_eq!(Shape::new(layout, 64).unwrap().objects, 4096);
        assert_eq!(Shape::new(layout, 1000).unwrap().pages, MOST_PAGES);
    }
}
