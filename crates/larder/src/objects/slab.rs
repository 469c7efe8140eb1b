//! What is known of one slab: where it is, which of its objects are free, which are constructed.
//!
//! It lies in a block of metadata and is used under its cache's lock. The bits follow the header: one word for each 64
//! objects, set where the object is free; and, where a cache constructs its objects, as many again, set where it is
//! constructed.

use core::ptr::NonNull;

use super::meta::BlockNumber;
use super::shape::Shape;

/// The header.
#[derive(Debug)]
#[repr(C, align(8))]
struct Header {
    /// First page.
    page: u32,
    /// Neighbours on the list that it is on.
    next: BlockNumber,
    previous: BlockNumber,
    /// Free objects: more than 65535 where pages are larger than 4 KiB.
    free: u32,
    /// Lowest word that may have a free object.
    first: u16,
    /// Bytes before the first object, below a page.
    colour: u16,
    /// The list.
    list: u8,
    /// The pages were all zero when the slab was made, and no object of it has come back since.
    untouched: bool,
}

/// Bytes of a slab's block.
pub(super) fn bytes(shape: &Shape, constructs: bool) -> usize {
    size_of::<Header>() + shape.words() * size_of::<u64>() * (1 + usize::from(constructs))
}

/// A slab's block, as long as the lock is held.
#[derive(Debug)]
pub(super) struct Slab<'l> {
    header: &'l mut Header,
    free: &'l mut [u64],
    /// Empty where nothing is constructed.
    constructed: &'l mut [u64],
}

impl<'l> Slab<'l> {
    /// The slab whose block is at `at`.
    ///
    /// # Safety
    /// The block has [`bytes`] of this shape, was set up by [`set_up`], and no other code uses it for `'l`.
    pub(super) unsafe fn at(at: NonNull<u8>, shape: &Shape, constructs: bool) -> Self {
        let words = shape.words();
        // SAFETY: the caller's promise: header and bits lie there, aligned, and belong to this value alone.
        unsafe {
            let bits = at.add(size_of::<Header>()).cast::<u64>();
            Self {
                header: at.cast::<Header>().as_mut(),
                free: core::slice::from_raw_parts_mut(bits.as_ptr(), words),
                constructed: core::slice::from_raw_parts_mut(
                    bits.add(words).as_ptr(),
                    if constructs { words } else { 0 },
                ),
            }
        }
    }

    pub(super) fn page(&self) -> u32 {
        self.header.page
    }

    /// Bytes before the first object.
    pub(super) fn colour(&self) -> usize {
        self.header.colour as usize
    }

    /// Whether every free object is zero, as far as is known.
    pub(super) fn is_untouched(&self) -> bool {
        self.header.untouched
    }

    /// Free objects.
    pub(super) fn free(&self) -> usize {
        self.header.free as usize
    }

    pub(super) fn list(&self) -> usize {
        self.header.list as usize
    }

    pub(super) fn set_list(&mut self, list: usize) {
        self.header.list = list as u8;
    }

    pub(super) fn links(&mut self) -> (&mut BlockNumber, &mut BlockNumber) {
        (&mut self.header.previous, &mut self.header.next)
    }

    /// Takes free objects, the lowest first, as long as `wants` says so of the next one's number, and calls `f` with the number and
    /// whether it is constructed. Of objects that must be constructed first it takes at most `fresh`; they count as not
    /// constructed until [`set_constructed`](Self::set_constructed) says so. Says how many of both kinds it took.
    pub(super) fn take(
        &mut self,
        fresh: usize,
        mut wants: impl FnMut(usize) -> bool,
        mut f: impl FnMut(usize, bool),
    ) -> (usize, usize) {
        let (mut ready, mut made) = (0, 0);
        let tracked = !self.constructed.is_empty();
        // Lowest word that may still have some.
        let mut first = None;
        let mut seen = self.header.first;
        'words: for w in self.header.first as usize..self.free.len() {
            let mut word = self.free[w];
            seen = w as u16;
            while word != 0 {
                let bit = word & word.wrapping_neg();
                let index = w * 64 + bit.trailing_zeros() as usize;
                word ^= bit;
                let constructed = !tracked || self.constructed[w] & bit != 0;
                if !constructed && made == fresh {
                    first = first.or(Some(w as u16));
                    continue;
                }
                if !wants(index) {
                    first = first.or(Some(w as u16));
                    break 'words;
                }
                made += usize::from(!constructed);
                ready += usize::from(constructed);
                self.free[w] ^= bit;
                f(index, constructed);
            }
        }
        self.header.first = first.unwrap_or(seen);
        self.header.free -= (ready + made) as u32;
        (ready, made)
    }

    /// An object that was taken is constructed from now on. Not earlier: a cache that goes ends what is constructed, and
    /// the child of a fork may drop its copy while a thread that it does not have was just constructing.
    pub(super) fn set_constructed(&mut self, index: usize) {
        if let Some(word) = self.constructed.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    /// Free objects that are not constructed.
    pub(super) fn unmade(&self) -> usize {
        self.constructed
            .iter()
            .zip(&*self.free)
            .map(|(made, free)| (free & !made).count_ones() as usize)
            .sum()
    }

    /// Brings an object back; false when it is here already. `constructed` is what it is now.
    pub(super) fn put(&mut self, index: usize, constructed: bool) -> bool {
        let (w, bit) = (index / 64, 1_u64 << (index % 64));
        if self.free[w] & bit != 0 {
            return false;
        }
        self.free[w] |= bit;
        self.header.untouched = false;
        if let Some(word) = self.constructed.get_mut(w) {
            *word = if constructed {
                *word | bit
            } else {
                *word & !bit
            };
        }
        self.header.free += 1;
        self.header.first = self.header.first.min(w as u16);
        true
    }

    /// Calls `f` for each constructed object's number, in use or not, and forgets that they are. Says how many.
    pub(super) fn take_constructed(&mut self, mut f: impl FnMut(usize)) -> usize {
        let mut n = 0;
        for (w, word) in self.constructed.iter_mut().enumerate() {
            let mut bits = core::mem::take(word);
            n += bits.count_ones() as usize;
            while bits != 0 {
                f(w * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
        n
    }
}

/// Writes a slab whose objects are all free and none constructed into a block.
///
/// # Safety
/// The block at `at` has [`bytes`] and is the caller's.
pub(super) unsafe fn set_up(
    at: NonNull<u8>,
    shape: &Shape,
    constructs: bool,
    page: u32,
    colour: usize,
    zero: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        at.cast::<Header>().write(Header {
            page,
            next: 0,
            previous: 0,
            free: shape.objects as u32,
            first: 0,
            colour: colour as u16,
            list: 0,
            untouched: zero,
        });
        let bits = at.add(size_of::<Header>()).cast::<u64>();
        for w in 0..shape.words() {
            let n = (shape.objects - w * 64).min(64);
            bits.add(w).write(u64::MAX >> (64 - n));
        }
        if constructs {
            bits.add(shape.words()).write_bytes(0, shape.words());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::alloc::Layout;

    fn with(size: usize, constructs: bool, f: impl FnOnce(Slab<'_>, &Shape)) {
        let layout = Layout::from_size_align(size, 8).unwrap();
        with_shape(Shape::new(layout, 1).unwrap(), constructs, f);
    }

    /// Wants so many.
    fn first(n: usize) -> impl FnMut(usize) -> bool {
        let mut left = n;
        move |_| {
            let wants = left > 0;
            left -= usize::from(wants);
            wants
        }
    }

    fn with_shape(shape: Shape, constructs: bool, f: impl FnOnce(Slab<'_>, &Shape)) {
        let mut block = vec![u64::MAX; bytes(&shape, constructs).div_ceil(8)];
        let at = NonNull::new(block.as_mut_ptr()).unwrap().cast();
        // SAFETY: the block is long enough and this test's own.
        unsafe {
            set_up(at, &shape, constructs, 7, 64, true);
            f(Slab::at(at, &shape, constructs), &shape);
        }
    }

    #[test]
    fn every_object_is_taken_once_and_comes_back_once() {
        let sizes: &[usize] = match cfg!(miri) {
            true => &[100, 4096],
            false => &[8, 24, 64, 100, 512, 4096],
        };
        for &size in sizes {
            with(size, false, |mut slab, shape| {
                assert_eq!((slab.page(), slab.colour()), (7, 64));
                let mut seen = vec![0; shape.objects];
                while slab.free() > 0 {
                    let (n, fresh) = slab.take(0, first(5), |i, constructed| {
                        seen[i] += 1;
                        assert!(constructed, "nothing to construct here");
                    });
                    assert!(n > 0 && fresh == 0);
                }
                assert_eq!(seen, vec![1; shape.objects]);
                assert_eq!(
                    slab.take(5, first(5), |_, _| panic!("there is none")),
                    (0, 0)
                );
                for i in (0..shape.objects).rev() {
                    assert!(slab.put(i, true));
                    assert!(!slab.put(i, true), "{i} is free already");
                }
                assert_eq!(slab.free(), shape.objects);
            });
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter takes minutes for so many objects")]
    fn slabs_of_large_pages_have_more_objects_than_sixteen_bits_count() {
        let layout = Layout::new::<u64>();
        for page in [16 << 10, 64 << 10] {
            let shape = Shape::with_page(layout, 64, page).unwrap();
            assert_eq!(shape.objects, 64 * page / 8);
            with_shape(shape, true, |mut slab, shape| {
                assert_eq!(slab.free(), shape.objects);
                let mut taken = 0;
                while slab.free() > 0 {
                    taken += slab.take(255, first(255), |_, _| {}).1;
                }
                assert_eq!(taken, shape.objects);
                assert_eq!(
                    slab.take(1, first(1), |_, _| panic!("there is none")),
                    (0, 0)
                );
                for i in (0..shape.objects).rev() {
                    assert_eq!(shape.index(i * 8), Some(i));
                    assert!(shape.eighth(i) < 8);
                    assert!(slab.put(i, i == shape.objects - 1));
                }
                assert_eq!(slab.free(), shape.objects);
                assert_eq!(
                    slab.take(0, first(255), |_, _| {}),
                    (1, 0),
                    "one is constructed"
                );
            });
        }
    }

    #[test]
    fn the_lowest_comes_first_after_any_put() {
        with(8, false, |mut slab, shape| {
            slab.take(0, first(shape.objects), |_, _| {});
            for i in [500, 3, 200] {
                slab.put(i, true);
            }
            let mut order = Vec::new();
            slab.take(0, first(3), |i, _| order.push(i));
            assert_eq!(order, [3, 200, 500]);
        });
    }

    #[test]
    fn what_is_constructed_stays_so_and_is_preferred_to_the_quota() {
        with(64, true, |mut slab, shape| {
            assert_eq!(
                slab.take(3, first(10), |_, constructed| assert!(!constructed)),
                (0, 3)
            );
            assert_eq!(slab.take_constructed(|_| panic!("not yet")), 0);
            for i in 0..3 {
                slab.set_constructed(i);
            }
            for i in 0..3 {
                slab.put(i, i != 1);
            }
            let mut taken = Vec::new();
            assert_eq!(slab.take(0, first(10), |i, _| taken.push(i)), (2, 0));
            assert_eq!(taken, [0, 2]);
            assert_eq!(slab.free(), shape.objects - 2);
            let mut gone = Vec::new();
            assert_eq!(slab.take_constructed(|i| gone.push(i)), 2);
            assert_eq!(gone, [0, 2]);
            assert_eq!(slab.take_constructed(|_| panic!("twice")), 0);
        });
    }
}
