//! Size classes: which sizes a heap hands out.
//!
//! Multiples of 16 up to 128, and from there on four classes for each doubling, as jemalloc has them: there at most a
//! fifth of an object is wasted. Each class of a doubling is a multiple of an eighth of its upper end, so a class that is a power
//! of two is aligned to itself, and one is found for any alignment by going up.
//!
//! Three more classes are for a power of two and what a program keeps beside it. SQLite asks for 4,368 bytes for a page in its cache;
//! the next of four classes would make it 5,120.

use core::alloc::Layout;

/// Largest size of a class in bytes. What is larger is a run of pages by itself.
pub const MAX_SMALL: usize = 4 << 20;

/// Largest size of a block that is always of its size's class. A larger one may have grown into a run of pages, or come from one.
pub(crate) const MAX_FIXED: usize = 32 << 10;

/// Largest size whose class the table holds; that of a larger one is computed. Programs that mix sizes around the end of the table
/// pay for a branch that the processor cannot foresee, so it lies where sizes are rare.
pub(crate) const TABLE_END: usize = 256 << 10;

/// Blocks of larger classes are in magazines only as far as the family lends room for them: a thread that rests keeps what it has, and of
/// these that would be much.
pub(crate) const LENT_BEYOND: usize = TABLE_END;

/// What every class is a multiple of, in bytes, and so the alignment that all objects have.
pub const GRAIN: usize = 16;

/// Number of classes.
pub const CLASSES: usize = 68 + AND_EIGHTHS.len();

/// The classes that are not of four for a doubling: a power of two and an eighth of it. What is aligned to more than that eighth has no
/// multiple between the two, so none such is found there.
const AND_EIGHTHS: [usize; 3] = [1152, 4608, 9216];

/// Sizes of all classes in bytes, ascending.
pub const SIZES: [usize; CLASSES] = sizes();

/// Element `i` is the class of `i` grains.
static TABLE: [u8; TABLE_END / GRAIN + 1] = table();

const fn sizes() -> [usize; CLASSES] {
    let mut sizes = [0; CLASSES];
    let (mut i, mut more) = (0, 0);
    while i < CLASSES {
        let n = i - more;
        let size = if n < 8 {
            GRAIN * (n + 1)
        } else {
            let (doubling, quarter) = ((n - 8) / 4, (n - 8) % 4);
            (128 << doubling) / 4 * (5 + quarter)
        };
        sizes[i] = if more < AND_EIGHTHS.len() && AND_EIGHTHS[more] < size {
            more += 1;
            AND_EIGHTHS[more - 1]
        } else {
            size
        };
        i += 1;
    }
    sizes
}

const fn table() -> [u8; TABLE_END / GRAIN + 1] {
    let mut table = [0; TABLE_END / GRAIN + 1];
    let (mut i, mut class) = (0, 0);
    while i < table.len() {
        while SIZES[class] < i * GRAIN {
            class += 1;
        }
        table[i] = class as u8;
        i += 1;
    }
    table
}

/// The class of `size` bytes aligned to at most [`GRAIN`]; `None` when it is no small size.
///
/// A compare, an add, a shift and a load; nothing when the size is known at compile time.
///
/// ```
/// use larder::internal::heap::{SIZES, class_of};
/// assert_eq!(class_of(100).map(|c| SIZES[c]), Some(112));
/// assert_eq!(class_of(0).map(|c| SIZES[c]), Some(16));
/// assert_eq!(class_of(40_000).map(|c| SIZES[c]), Some(40 << 10));
/// assert_eq!(class_of(5 << 20), None);
/// ```
#[inline(always)]
#[must_use]
pub fn class_of(size: usize) -> Option<usize> {
    if size > TABLE_END {
        return class_beyond_table(size);
    }
    tabled_class(size)
}

/// The class of a size whose blocks are all of it: what callers that know a block's size rely on.
#[inline(always)]
pub(crate) fn small_class(size: usize) -> Option<usize> {
    if size > MAX_FIXED {
        return None;
    }
    tabled_class(size)
}

/// The class of a size that the table holds: all that malloc's own code is for.
#[inline(always)]
pub(crate) fn tabled_class(size: usize) -> Option<usize> {
    if size > TABLE_END {
        return None;
    }
    let class = usize::from(TABLE[(size + GRAIN - 1) >> GRAIN.ilog2()]);
    // SAFETY: the table has numbers of classes only (a test looks at each). Code that indexes by it needs no comparison.
    unsafe { core::hint::assert_unchecked(class < CLASSES) };
    Some(class)
}

/// The class of a layout whose blocks are all of its size's class, or which is aligned to more than [`GRAIN`].
#[inline(always)]
#[must_use]
pub fn small_class_of_layout(layout: Layout) -> Option<usize> {
    let class = if layout.align() <= GRAIN {
        small_class(layout.size())
    } else {
        class_of_aligned(layout)
    }?;
    // SAFETY: both give numbers of classes only. Where their ways meet, the compiler knows no more what `small_class` said.
    unsafe { core::hint::assert_unchecked(class < CLASSES) };
    Some(class)
}

/// The same, out of the way of fast paths.
#[cold]
#[inline(never)]
fn class_beyond_table(size: usize) -> Option<usize> {
    computed_class(size)
}

/// The class of a size beyond the table: its doubling, and the quarter of it. `None` for sizes that it holds, and
/// for those without a class.
#[inline(always)]
pub(crate) fn computed_class(size: usize) -> Option<usize> {
    if !(TABLE_END + 1..=MAX_SMALL).contains(&size) {
        return None;
    }
    let below = size - 1;
    let doubling = below.ilog2();
    let quarter = (below >> (doubling - 2)) & 3;
    let class = (doubling - 7) as usize * 4 + 8 + quarter + AND_EIGHTHS.len();
    // SAFETY: the largest size is below the end of the last class's doubling (a test looks at each class).
    unsafe { core::hint::assert_unchecked(class < CLASSES) };
    Some(class)
}

/// Whether a block of a class stays as it is when its size becomes this one, though that has another class: a large one does until it has
/// half, as a run of pages.
#[must_use]
pub fn may_stay(class: usize, size: usize) -> bool {
    let has = SIZES[class];
    has > TABLE_END && size <= has && size > has / 2
}

/// The class of a layout; `None` when it is too large, or aligned to more than a page.
///
/// ```
/// use std::alloc::Layout;
/// use larder::internal::heap::{SIZES, class_of_layout};
/// let layout = Layout::from_size_align(200, 128)?;
/// assert_eq!(class_of_layout(layout).map(|c| SIZES[c]), Some(256));
/// # Ok::<(), std::alloc::LayoutError>(())
/// ```
#[inline(always)]
#[must_use]
pub fn class_of_layout(layout: Layout) -> Option<usize> {
    if layout.align() <= GRAIN {
        class_of(layout.size())
    } else {
        class_of_aligned(layout)
    }
}

/// The first class that is large enough and a multiple of the alignment. Slabs begin at pages, so its objects are aligned.
///
/// That is the class of the next multiple of the alignment: classes of a doubling are a quarter of its lower end apart. Where the
/// alignment is at most that, it divides all of them; where it is more, its multiples are among them. For the few that are not of four,
/// see [`AND_EIGHTHS`].
#[inline]
fn class_of_aligned(layout: Layout) -> Option<usize> {
    if layout.align() > crate::os::page_size() {
        return None;
    }
    class_of(layout.pad_to_align().size().max(layout.align()))
}

/// The class of a size and an alignment, if that is a power of two, a page at most, and the table has the size.
#[inline(always)]
pub(crate) fn tabled_class_of_aligned(size: usize, align: usize) -> Option<usize> {
    let last = align.wrapping_sub(1);
    if size > TABLE_END || last >= crate::os::page_size() || align & last != 0 {
        return None;
    }
    // The table's end is a multiple of a page.
    tabled_class((size.max(1) + last) & !last)
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
            let computed = computed_class(size);
            assert_eq!(tabled_class(size).or(computed), Some(class));
            assert_eq!(small_class(size), (size <= MAX_FIXED).then_some(class));
        }
        assert_eq!(class_of(MAX_SMALL + 1), None);
        assert_eq!(SIZES[CLASSES - 1], MAX_SMALL);
        assert!(SIZES.iter().all(|size| size.is_multiple_of(GRAIN)));
    }

    #[test]
    fn the_table_has_numbers_of_classes_only() {
        assert!(TABLE.iter().all(|&class| usize::from(class) < CLASSES));
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
            for size in (0..3000).chain((3000..=MAX_SMALL).step_by(601)) {
                let layout = Layout::from_size_align(size, align).unwrap();
                let Some(class) = class_of_layout(layout) else {
                    panic!("{size} aligned to {align} has no class");
                };
                let tabled = tabled_class_of_aligned(size, align);
                assert_eq!(tabled, (size <= TABLE_END).then_some(class));
                assert!(
                    SIZES[class] >= size && SIZES[class].is_multiple_of(align),
                    "{size} {align}"
                );
                assert!(
                    SIZES[class] <= size.next_power_of_two().max(align).max(GRAIN),
                    "{size} {align}"
                );
            }
        }
        let layout = Layout::from_size_align(8, 8192).unwrap();
        assert_eq!(class_of_layout(layout), None);
        for (size, align) in [
            (8, 8192),
            (8, 0),
            (8, 24),
            (usize::MAX, 64),
            (TABLE_END + 1, 16),
        ] {
            assert_eq!(tabled_class_of_aligned(size, align), None, "{size} {align}");
        }
    }
}
