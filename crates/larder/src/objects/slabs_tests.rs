//! Which slabs objects come from, and which slabs go.

use core::alloc::Layout;
use std::sync::Arc;

use super::*;
use crate::os::testing::system;
use crate::os::{MetaRegion, System, page_size};

/// Slabs of a cache that does not exist, over pages that are not there.
struct Fixture {
    meta: Meta,
    map: PageMap,
    shape: Shape,
    constructs: bool,
    slabs: Slabs,
    _pages: MetaRegion,
}

impl Fixture {
    fn new(slabs: usize, constructs: bool) -> Self {
        Self::of(64, slabs, constructs)
    }

    /// Of objects of so many bytes.
    fn of(size: usize, slabs: usize, constructs: bool) -> Self {
        let system: Arc<dyn System> = system();
        let shape = Shape::new(Layout::from_size_align(size, 8).unwrap(), 1).unwrap();
        let pages = slabs * shape.pages;
        let pages = MetaRegion::new(system.clone(), pages * page_size(), page_size()).unwrap();
        let mut this = Self {
            meta: Meta::new(system.clone(), 1 << 20).unwrap(),
            map: PageMap::new(&system, pages.span(), None).unwrap(),
            shape,
            constructs,
            slabs: Slabs::default(),
            _pages: pages,
        };
        for slab in 0..slabs {
            let number = this.meta.take(slab_bytes(this.ground())).unwrap();
            let page = (slab * shape.pages) as u32;
            // SAFETY: taken for it.
            unsafe { this.ground().set_up(number, page, 0, true) };
            this.map.set(page, shape.pages, 1, number);
            this.with(|slabs, ground| slabs.add(ground, number));
        }
        this
    }

    fn ground(&self) -> Ground<'_> {
        Ground {
            meta: &self.meta,
            map: &self.map,
            shape: &self.shape,
            constructs: self.constructs,
        }
    }

    fn with<T>(&mut self, f: impl FnOnce(&mut Slabs, Ground<'_>) -> T) -> T {
        let mut slabs = core::mem::take(&mut self.slabs);
        let result = f(&mut slabs, self.ground());
        self.slabs = slabs;
        result
    }

    /// Takes up to `n` objects and says how many were constructed already.
    fn take(&mut self, n: usize, fresh: usize) -> (Vec<usize>, usize) {
        self.take_batch(Batch::new(n, n), fresh)
    }

    fn take_batch(&mut self, batch: Batch, fresh: usize) -> (Vec<usize>, usize) {
        let (mut out, mut ready) = (Vec::new(), 0);
        self.with(|slabs, ground| {
            slabs.take(ground, batch, fresh, |addr, constructed| {
                out.push(addr);
                ready += usize::from(constructed);
            })
        });
        (out, ready)
    }

    fn put(&mut self, addr: usize, constructed: bool) -> bool {
        let number = self.map.entry(addr);
        let index = self.shape.index(addr % page_size()).unwrap();
        self.with(|slabs, ground| slabs.put(ground, number, index, constructed))
    }

    fn page(&self, addr: usize) -> u32 {
        self.map.page(addr)
    }
}

#[test]
fn the_fullest_slab_is_filled_first_and_a_whole_one_last() {
    let mut f = Fixture::new(4, false);
    let (all, _) = f.take(256, 0);
    assert_eq!(all.len(), 256);
    assert!(f.take(1, 0).0.is_empty(), "there is no more");
    let of = |f: &Fixture, page: u32| {
        let mut v = all.clone();
        v.retain(|&a| f.page(a) == page);
        v
    };
    // Page 0 whole, page 1 with one in use, page 2 with half of them, page 3 with all but one.
    for (page, free) in [(0, 64), (1, 63), (2, 32), (3, 1)] {
        for addr in of(&f, page).into_iter().take(free) {
            assert!(f.put(addr, true));
            assert!(!f.put(addr, true), "put twice");
        }
    }
    assert_eq!((f.slabs.free(), f.slabs.slabs()), (160, 4));
    let (order, _) = f.take(160, 0);
    let pages: Vec<u32> = order.iter().map(|&a| f.page(a)).collect();
    let expected: Vec<u32> = [(3, 1), (2, 32), (1, 63), (0, 64)]
        .into_iter()
        .flat_map(|(page, n)| core::iter::repeat_n(page, n))
        .collect();
    assert_eq!(pages, expected);
    assert_eq!(f.slabs.free(), 0);
}

#[test]
fn the_working_set_is_the_fewest_whole_slabs_of_the_interval() {
    let mut f = Fixture::new(5, false);
    f.slabs.end_interval();
    let (two, _) = f.take(100, 0);
    for addr in two {
        f.put(addr, true);
    }
    assert_eq!(f.slabs.end_interval(), 3, "two of five were used");
    assert_eq!(f.slabs.end_interval(), 5, "nothing was used since");
    let mut out = [0; 3];
    assert_eq!(
        f.with(|slabs, ground| slabs.take_whole(ground, &mut out)),
        3
    );
    assert_eq!((f.slabs.slabs(), f.slabs.free()), (2, 128));
    assert_eq!(f.slabs.end_interval(), 2);
}

#[test]
fn constructed_objects_of_any_slab_come_before_others() {
    let mut f = Fixture::new(3, true);
    let (made, ready) = f.take(150, 150);
    assert_eq!((made.len(), ready), (150, 0));
    for &addr in &made {
        f.put(addr, true);
    }
    let (taken, ready) = f.take(192, 0);
    assert_eq!((taken.len(), ready), (150, 150), "no more than there are");
    let (taken, ready) = f.take(192, 7);
    assert_eq!(
        (taken.len(), ready),
        (7, 0),
        "as many new ones as are allowed"
    );
    for addr in taken {
        f.put(addr, false);
    }
    assert_eq!(f.slabs.unmade, 42);
    let mut all = [0; 4];
    assert_eq!(f.with(|slabs, ground| slabs.take_any(ground, &mut all)), 3);
    assert_eq!((f.slabs.slabs(), f.slabs.free(), f.slabs.unmade), (0, 0, 0));
}

#[test]
fn takers_get_no_objects_whose_marks_share_a_line() {
    for size in [16, 48, 112, 1008, 3072] {
        let mut f = Fixture::of(size, 8, false);
        let mut takers = Vec::new();
        // Of the first line there is a hole, so its batch ends in the middle of a line, if only by number.
        let (mut all, _) = f.take(5, 0);
        assert!(f.put(all.remove(0), true));
        while f.slabs.free() > 0 {
            let (enough, most) = (7, 128);
            let free = f.slabs.free();
            let (objects, _) = f.take_batch(Batch::new(enough, most), 0);
            assert!(objects.len() >= enough.min(free) && objects.len() <= most);
            takers.push(objects);
        }
        assert!(takers.len() > 1, "{size}");
        let lines = takers.iter().map(|objects| {
            let lines = objects.iter().map(|addr| addr / MARK_LINE);
            lines.collect::<std::collections::BTreeSet<_>>()
        });
        let lines: Vec<_> = lines.collect();
        for (i, line) in lines.iter().enumerate() {
            assert!(
                lines[..i].iter().all(|other| other.is_disjoint(line)),
                "{size}"
            );
        }
    }
    // Never more than there is room for.
    let mut f = Fixture::of(16, 1, false);
    assert_eq!(f.take_batch(Batch::new(3, 10), 0).0.len(), 10);
}
