//! Size classes: which sizes a heap hands out.
//!
//! 8 bytes, multiples of 16 up to 128, and from there on four classes for each doubling, as jemalloc has them: at most a
//! fifth of an object is wasted. Each class of a doubling is a multiple of an eighth of its upper end, so a class that
//! is a power of two is aligned to itself, and one is found for any alignment by going up.

use core::alloc::Layout;

/// Largest size of a class in bytes. What is larger is a run of pages by itself.
pub const MAX_SMALL: usize = 32 << 10;

/// Number of classes.
pub const CLASSES: usize = 41;

/// Sizes of all classes in bytes, ascending.
pub const SIZES: [usize; CLASSES] = sizes();

/// Up to this size a table with a step of 8 bytes gives the class; above, one with a step of [`COARSE_STEP`].
const FINE_MOST: usize = 1 << 10;
const FINE: [u8; FINE_MOST / 8 + 1] = table(8);
const COARSE_STEP: usize = 128;
const COARSE: [u8; MAX_SMALL / COARSE_STEP + 1] = table(COARSE_STEP);

const fn sizes() -> [usize; CLASSES] {
    let mut sizes = [0; CLASSES];
    sizes[0] = 8;
    let mut i = 1;
    while i <= 8 {
        sizes[i] = 16 * i;
        i += 1;
    }
    while i < CLASSES {
        let (doubling, quarter) = ((i - 9) / 4, (i - 9) % 4);
        sizes[i] = (128 << doubling) / 4 * (5 + quarter);
        i += 1;
    }
    sizes
}

/// Element `i` is the class of `i * step` bytes.
const fn table<const N: usize>(step: usize) -> [u8; N] {
    let mut table = [0; N];
    let (mut i, mut class) = (0, 0);
    while i < N {
        while SIZES[class] < i * step {
            class += 1;
        }
        table[i] = class as u8;
        i += 1;
    }
    table
}

/// The class of `size` bytes aligned to at most 16 (8 when the size is at most 8); `None` when it is no small size.
///
/// A compare, an add, a shift and a load; nothing when the size is known at compile time.
///
/// ```
/// use larder::heap::{SIZES, class_of};
/// assert_eq!(class_of(100).map(|c| SIZES[c]), Some(112));
/// assert_eq!(class_of(0).map(|c| SIZES[c]), Some(8));
/// assert_eq!(class_of(40_000), None);
/// ```
#[inline(always)]
#[must_use]
pub const fn class_of(size: usize) -> Option<usize> {
    if size <= FINE_MOST {
        Some(FINE[(size + 7) >> 3] as usize)
    } else if size <= MAX_SMALL {
        Some(COARSE[(size + COARSE_STEP - 1) >> COARSE_STEP.ilog2()] as usize)
    } else {
        None
    }
}

/// The class of a layout; `None` when it is too large, or aligned to more than a page.
///
/// ```
/// use std::alloc::Layout;
/// use larder::heap::{SIZES, class_of_layout};
/// let layout = Layout::from_size_align(200, 128)?;
/// assert_eq!(class_of_layout(layout).map(|c| SIZES[c]), Some(256));
/// # Ok::<(), std::alloc::LayoutError>(())
/// ```
#[inline(always)]
#[must_use]
pub fn class_of_layout(layout: Layout) -> Option<usize> {
    if layout.align() <= 8 || (layout.align() <= 16 && layout.size() > 8) {
        class_of(layout.size())
    } else {
        class_of_aligned(layout)
    }
}

/// The first class that is large enough and a multiple of the alignment. Slabs begin at pages, so its objects are aligned.
#[cold]
fn class_of_aligned(layout: Layout) -> Option<usize> {
    if layout.align() > crate::os::page_size() {
        return None;
    }
    let first = class_of(layout.size().max(layout.align()))?;
    (first..CLASSES).find(|&class| SIZES[class].is_multiple_of(layout.align()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_the_smallest_that_is_large_enough() {
        for size in 0..=MAX_SMALL {
            let class = class_of(size).unwrap();
            assert!(SIZES[class] >= size, "{size}");
            assert!(class == 0 || SIZES[class - 1] < size, "{size}");
        }
        assert_eq!(class_of(MAX_SMALL + 1), None);
        assert_eq!(SIZES[CLASSES - 1], MAX_SMALL);
    }

    #[test]
    fn at_most_a_fifth_is_wasted() {
        for size in 129..=MAX_SMALL {
            let class = SIZES[class_of(size).unwrap()];
            assert!((class - size) * 5 < class, "{size} in {class}");
        }
    }

    #[test]
    fn every_alignment_up_to_a_page_is_kept() {
        for align in (0..=12).map(|n| 1 << n) {
            for size in (0..3000).chain((3000..=MAX_SMALL).step_by(61)) {
                let layout = Layout::from_size_align(size, align).unwrap();
                let Some(class) = class_of_layout(layout) else {
                    panic!("{size} aligned to {align} has no class");
                };
                assert!(
                    SIZES[class] >= size && SIZES[class].is_multiple_of(align),
                    "{size} {align}"
                );
                assert!(
                    SIZES[class] <= size.next_power_of_two().max(align).max(8),
                    "{size} {align}"
                );
            }
        }
        let layout = Layout::from_size_align(8, 8192).unwrap();
        assert_eq!(class_of_layout(layout), None);
    }
}
