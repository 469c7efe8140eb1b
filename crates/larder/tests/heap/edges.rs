//! Heaps at their edges: limits, warnings, other heaps' objects, private heaps, memory that is refused, threads.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::common::alone;
use crate::common::fork::fork;
use larder::heap::{AllocError, Classes, Heap};
use larder::internal::heap::MAX_SMALL;
use larder::objects::Family;
use larder::os::testing::{Call, Hook, Hooked};
use larder::os::{Linux, OsError, page_size};
use larder::pages::{PagePool, PagePoolBuilder};

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

fn family() -> Family {
    Family::new().unwrap()
}

#[test]
fn a_limit_is_an_error_that_names_it_and_passes() {
    let heap = Heap::new(&Classes::new(&family()));
    heap.set_limit(100 << 10);
    let mut objects = Vec::new();
    let error = loop {
        match heap.alloc(layout(1000)) {
            Ok(object) => objects.push(object),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(
            error,
            AllocError::Limit {
                size: 1024,
                limit: 102_400,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("1024 bytes were asked for"),
        "{error}"
    );
    assert!((50..=100).contains(&objects.len()), "{} fit", objects.len());
    assert!(heap.stats().charged_bytes <= 100 << 10);
    assert!(
        heap.alloc(layout(200 << 10)).is_err(),
        "nor is there room for a large one"
    );
    for object in objects {
        // SAFETY: taken above, put once.
        unsafe { heap.dealloc(object, layout(1000)) };
    }
    heap.trim();
    assert_eq!(heap.stats().charged_bytes, 0);
    heap.set_limit(12 << 20);
    let large = heap.alloc(layout(MAX_SMALL + 1)).unwrap();
    assert_eq!(heap.stats().large_bytes, MAX_SMALL / 4 * 5);
    // SAFETY: as above; a refusal leaves the object as it is.
    unsafe {
        let more = heap.realloc(large, layout(MAX_SMALL + 1), layout(12 << 20));
        assert_eq!(more, Ok(large), "up to the limit");
        let error = heap.realloc(large, layout(12 << 20), layout(16 << 20));
        assert!(matches!(error, Err(AllocError::Limit { .. })), "{error:?}");
        heap.dealloc_by_address(large);
    }
    heap.trim();
    assert_eq!(
        (heap.stats().large_bytes, heap.stats().charged_bytes),
        (0, 0)
    );
}

#[test]
fn a_large_object_grows_and_shrinks_where_it_is() {
    let classes = Classes::new(&family());
    let heap = Heap::new(&classes);
    let page = page_size();
    let sizes = [
        8 << 20,
        (8 << 20) + 1,
        20 << 20,
        (20 << 20) - 3 * page,
        8 << 20,
    ];
    for heap_is_private in [false, true] {
        let heap = match heap_is_private {
            true => Heap::private(classes.family()),
            false => Heap::new(&classes),
        };
        let object = heap.alloc(layout(sizes[0])).unwrap();
        for pair in sizes.windows(2) {
            // SAFETY: the object is this test's; all of it is written.
            unsafe {
                let same = heap.realloc(object, layout(pair[0]), layout(pair[1]));
                assert_eq!(same, Ok(object), "nothing lies behind it: {pair:?}");
                object.write_bytes(0x5a, pair[1]);
            }
        }
        assert!(heap.stats().large_bytes >= 8 << 20 && heap.stats().large_bytes < 20 << 20);
        // The other objects take the pages that it gave up, behind the object, so it moves when it grows.
        let behind: Vec<_> = (0..8)
            .map(|_| heap.alloc(layout(MAX_SMALL + 1)).unwrap())
            .collect();
        // SAFETY: as above; each object is put once, by the size that it was last given.
        unsafe {
            let moved = heap
                .realloc(object, layout(8 << 20), layout(24 << 20))
                .unwrap();
            assert_ne!(moved, object, "its neighbours are in use");
            let bytes = std::slice::from_raw_parts(moved.as_ptr(), 8 << 20);
            assert!(bytes.iter().all(|&byte| byte == 0x5a));
            let same = heap.realloc(moved, layout(24 << 20), layout(36 << 20));
            assert_eq!(same, Ok(moved), "one that moved has room to grow");
            for object in behind {
                heap.dealloc(object, layout(MAX_SMALL + 1));
            }
            heap.dealloc(moved, layout(36 << 20));
        }
        heap.trim();
        assert_eq!(heap.stats().large_bytes, 0);
        drop(heap);
        assert_eq!(classes.family().large_held_bytes(), 0);
    }
    drop(heap);
}

/// One that grows in steps is copied seldom, and leaves no trail of classes behind.
/// Whatever is free before, an object lies where it was asked for, and takes the place of one that was as aligned.
#[test]
fn objects_aligned_beyond_a_page_share_places_one_after_another() {
    let family = family();
    let heap = Heap::new(&Classes::new(&family));
    let sizes = [100, 40_000, 300_000, 5 << 20];
    for align in [2, 16, 64, 512, 2048].map(|pages| pages * page_size()) {
        let before = family.pool().stats().held_bytes;
        for turn in 0..100 {
            let (size, other) = (sizes[turn % 4], sizes[turn / 4 % 4]);
            // The one that is put last is kept, and mostly lies where the next one may not.
            let layouts = [(size, align), (other, 2 * page_size())];
            let layouts = layouts.map(|(n, at)| Layout::from_size_align(n, at).unwrap());
            let both = layouts.map(|layout| heap.alloc(layout).unwrap());
            assert_eq!(both[0].as_ptr() as usize % align, 0, "{size}");
            for (object, layout) in both.into_iter().zip(layouts) {
                // SAFETY: taken above with this layout, written within it, put once.
                unsafe {
                    object.write_bytes(1, layout.size());
                    heap.dealloc(object, layout);
                }
            }
        }
        let grown = family.pool().stats().held_bytes.saturating_sub(before);
        assert!(grown < 24 << 20, "{grown} bytes for one of each size");
    }
}

#[test]
fn an_object_that_grows_in_steps_stays_where_it_is() {
    let classes = Classes::new(&family());
    let heap = Heap::new(&classes);
    const MOST: usize = 1 << 20;
    let step = 4096;
    // SAFETY: one object, resized and put by the layout that it was given last, by the heap and by the classes.
    unsafe {
        let mut object = heap.alloc(layout(step)).unwrap();
        let (mut at_first, mut moves) = (object, 0);
        for size in (2 * step..=MOST).step_by(step) {
            let (old, new) = (layout(size - step), layout(size));
            object = match size / step % 2 {
                0 => heap.realloc(object, old, new),
                _ => classes.realloc(object, old, new),
            }
            .unwrap();
            moves += usize::from(size > 64 << 10 && object != at_first);
            at_first = object;
        }
        assert!(moves <= 5, "{moves} moves beyond 64 KiB");
        let held = classes.family().pool().stats().out_bytes;
        assert!(held < 2 * MOST, "{held} bytes");
        assert_eq!(
            classes.realloc(object, layout(MOST), layout(700_000)),
            Ok(object)
        );
        heap.dealloc_many(&[object], layout(700_000));
    }
    heap.trim();
    assert_eq!(classes.family().large_held_bytes(), 0);
}

/// Pages of a range that are backed.
fn backed(at: NonNull<u8>, bytes: usize) -> usize {
    let mut pages = vec![0_u8; bytes.div_ceil(page_size())];
    // SAFETY: the range is mapped, and there is a byte for each of its pages.
    let error = unsafe { libc::mincore(at.as_ptr().cast(), bytes, pages.as_mut_ptr()) };
    assert_eq!(error, 0);
    pages.iter().filter(|&&page| page & 1 != 0).count()
}

#[test]
fn zeroed_memory_is_written_only_where_most_of_it_was_in_use() {
    let heap = Heap::private(&family());
    let size = 20 << 20;
    let layout = layout(size);
    let pages = size / page_size();
    for (written, backed_then) in [(3, 0), (pages / 20, 0), (pages, pages)] {
        let object = heap.alloc(layout).unwrap();
        for page in 0..written {
            // SAFETY: inside the object.
            unsafe { object.add(page * page_size()).write(7) };
        }
        // SAFETY: taken above, put once.
        unsafe { heap.dealloc(object, layout) };
        let zeroed = heap.alloc_zeroed(layout).unwrap();
        assert_eq!(zeroed, object, "the same pages, or the test shows nothing");
        assert_eq!(backed(zeroed, size), backed_then, "{written} pages written");
        // The pages that were written, and no other: to read a page backs it.
        // SAFETY: the object has this many bytes; it is put once.
        unsafe {
            let bytes = std::slice::from_raw_parts(zeroed.as_ptr(), written * page_size());
            assert!(bytes.iter().all(|&byte| byte == 0), "{written}");
            heap.dealloc(zeroed, layout);
        }
    }
}

#[test]
fn zeroed_memory_that_is_new_is_not_written() {
    // A slab of a private heap has several objects of 100 KiB.
    let heap = Heap::private(&family());
    for size in [100 << 10, 1 << 20, 3 << 20] {
        let layout = layout(size);
        let is_zero = |at: NonNull<u8>| {
            // SAFETY: the object has this many bytes.
            unsafe { std::slice::from_raw_parts(at.as_ptr(), size) }
                .iter()
                .all(|&byte| byte == 0)
        };
        let fresh = heap.alloc_zeroed(layout).unwrap();
        assert_eq!(backed(fresh, size), 0, "{size}: nothing was written");
        assert!(is_zero(fresh));
        // What was used is zeroed, wherever it lay in between: in a magazine, in the depot, in a slab that another object of
        // it keeps, in the pool.
        let neighbour = heap.alloc(layout).unwrap();
        for reaps in 0..5 {
            // SAFETY: the object has this many bytes; each is put once.
            unsafe {
                let object = heap.alloc(layout).unwrap();
                object.write_bytes(0x77, size);
                heap.dealloc(object, layout);
            }
            if reaps > 0 {
                heap.trim();
                for _ in 0..reaps {
                    heap.classes().family().maintain();
                }
            }
            let object = heap.alloc_zeroed(layout).unwrap();
            assert!(is_zero(object), "{size}, {reaps}");
            // SAFETY: as above.
            unsafe { heap.dealloc(object, layout) };
        }
        // SAFETY: as above.
        unsafe { heap.dealloc(neighbour, layout) };
        // SAFETY: as above.
        unsafe { heap.dealloc(fresh, layout) };
    }
}

#[test]
fn free_objects_of_the_heap_itself_are_had_at_the_limit() {
    let heap = Heap::new(&Classes::new(&family()));
    heap.set_limit(32 << 10);
    let mut objects = Vec::new();
    while let Ok(object) = heap.alloc(layout(1024)) {
        objects.push(object);
    }
    let most = objects.len();
    for _ in 0..3 {
        for object in objects.drain(..) {
            // SAFETY: taken above, put once.
            unsafe { heap.dealloc(object, layout(1024)) };
        }
        while let Ok(object) = heap.alloc(layout(1024)) {
            objects.push(object);
        }
        assert_eq!(objects.len(), most, "as many as the first time");
    }
}

#[test]
fn a_warning_may_set_another_and_its_end_too() {
    struct Ends(std::rc::Rc<Heap>);
    // SAFETY: this test has one thread.
    unsafe impl Send for Ends {}
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.set_warning(3, |_| {});
        }
    }
    let heap = std::rc::Rc::new(Heap::new(&Classes::new(&family())));
    let ends = Ends(heap.clone());
    heap.set_warning(1, move |_| ends.0.set_warning(2, |_| {}));
    let object = heap.alloc(layout(64)).unwrap();
    // SAFETY: taken above, put once.
    unsafe { heap.dealloc(object, layout(64)) };
    let ends = Ends(heap.clone());
    heap.set_warning(1, move |_| {
        let _ = &ends;
    });
    heap.set_warning(2, |_| {});
}

#[test]
fn a_warning_comes_once_until_the_heap_is_small_again() {
    static WARNED: AtomicUsize = AtomicUsize::new(0);
    let heap = Heap::new(&Classes::new(&family()));
    // More than its magazines keep.
    heap.set_warning(4 << 20, |stats| {
        assert!(stats.charged_bytes > 4 << 20);
        WARNED.fetch_add(1, Ordering::Relaxed);
    });
    for turn in 1..=2 {
        let large: Vec<_> = (0..12)
            .map(|_| heap.alloc(layout(500 << 10)).unwrap())
            .collect();
        assert_eq!(WARNED.load(Ordering::Relaxed), turn);
        for object in large {
            // SAFETY: taken above, put once.
            unsafe { heap.dealloc(object, layout(500 << 10)) };
        }
    }
}

#[test]
fn what_one_heap_allocates_another_may_free() {
    let classes = Classes::new(&family());
    let (send, receive) = mpsc::channel::<usize>();
    std::thread::scope(|s| {
        s.spawn(|| {
            let heap = Heap::new(&classes);
            for i in 0..100_000_usize {
                let object = heap.alloc(layout(64)).unwrap();
                // SAFETY: an object of 64 bytes, aligned to 8.
                unsafe { object.cast::<usize>().write(i) };
                send.send(object.as_ptr() as usize).unwrap();
            }
            drop(send);
        });
        let heap = Heap::new(&classes);
        for (i, at) in receive.iter().enumerate() {
            let object = NonNull::new(at as *mut u8).unwrap();
            // SAFETY: the other thread gave it up, with a number in it.
            unsafe {
                assert_eq!(object.cast::<usize>().read(), i);
                heap.dealloc(object, layout(64));
            }
        }
    });
    assert!(
        classes.family().pool().stats().held_bytes < 32 << 20,
        "objects flow back through the depot"
    );
    classes.family().trim();
}

#[test]
fn a_private_heap_takes_all_its_objects_with_it() {
    let family = family();
    let shared = Heap::new(&Classes::new(&family));
    let outlives = shared.alloc(layout(64)).unwrap();
    for _ in 0..3 {
        let heap = Heap::private(&family);
        let mut some = Vec::new();
        for size in [8, 64, 100, 3000, 30_000] {
            for i in 0..2000 {
                let object = heap.alloc(layout(size)).unwrap();
                if i % 3 == 0 {
                    some.push((object, layout(size)));
                }
            }
        }
        for (object, layout) in some {
            // SAFETY: taken above, put once.
            unsafe { heap.dealloc(object, layout) };
        }
        drop(heap);
        assert!(
            family.pool().stats().out_bytes <= 64 * page_size(),
            "only the shared heap's slab"
        );
    }
    assert_eq!(shared.classes().usable_size(outlives), Some(64));
}

#[test]
fn a_private_heap_takes_its_large_objects_with_it() {
    let family = family();
    let shared = Heap::new(&Classes::new(&family));
    let outlives = shared.alloc(layout(MAX_SMALL + 1)).unwrap();
    let held = family.large_held_bytes();
    for known in [false, true] {
        let heap = Heap::private(&family);
        // Large whatever their size.
        let aligned = |bytes| Layout::from_size_align(bytes, 2 * page_size()).unwrap();
        let layouts = [aligned(300_000), aligned(10), aligned(500_000), layout(64)];
        let mut some = Vec::new();
        // More than go back together.
        for i in 0..400 {
            let layout = layouts[i % 4];
            let object = match i % 3 {
                0 => heap.alloc_zeroed(layout),
                1 => heap.classes().alloc(layout),
                _ => heap.alloc(layout),
            }
            .unwrap();
            // SAFETY: the object has this many bytes.
            unsafe { object.write_bytes(0xa5, layout.size()) };
            if i % 5 < 3 {
                some.push((object, layout));
            }
        }
        // From the list's middle and ends, by every function that frees.
        for (i, (object, layout)) in some.into_iter().enumerate() {
            // SAFETY: taken above, put once.
            unsafe {
                match i % 4 {
                    0 => heap.dealloc(object, layout),
                    1 => heap.classes().dealloc_by_address(object),
                    2 if layout != layouts[3] => family.put_large(object).unwrap(),
                    _ => heap.dealloc_by_address(object),
                }
            }
        }
        let last = heap.alloc(layouts[0]).unwrap();
        assert!(family.large_held_bytes() > held + (10 << 20));
        if known {
            // The objects were overwritten: no link of the heap's lists lies in them.
            let classes = heap.classes().clone();
            drop(heap);
            assert!(
                family.large_held_bytes() > held,
                "the classes are still owned"
            );
            drop(classes);
        } else {
            drop(heap);
        }
        assert_eq!(family.large_held_bytes(), held);
        assert_eq!(family.owner(last.as_ptr()), None, "it is nobody's");
        family.trim();
        assert!(
            family.pool().stats().out_bytes <= held + 64 * page_size(),
            "only what is the shared heap's"
        );
    }
    // SAFETY: taken above, put once.
    unsafe { shared.dealloc_by_address(outlives) };
    shared.trim();
    assert_eq!(family.large_held_bytes(), 0);
    let live = family.metadata_bytes();
    for _ in 0..3 {
        let heap = Heap::private(&family);
        heap.alloc(layout(5 << 20)).unwrap();
        drop(heap);
        assert_eq!(family.metadata_bytes(), live, "nodes and lists go, too");
    }
}

#[test]
fn what_a_private_heap_charges_for_large_objects_it_gives_back() {
    let heap = Heap::private(&family());
    let aligned = Layout::from_size_align(10, 2 * page_size()).unwrap();
    let object = heap.alloc(aligned).unwrap();
    assert_eq!(heap.stats().large_bytes, 2 * page_size());
    // SAFETY: taken above, put once.
    unsafe { heap.dealloc(object, aligned) };
    assert_eq!(
        (heap.stats().large_bytes, heap.stats().charged_bytes),
        (0, 0)
    );
}

#[test]
fn heaps_move_between_threads() {
    let heap = Heap::new(&Classes::new(&family()));
    let object = heap.alloc(layout(10)).unwrap().as_ptr() as usize;
    let heap = std::thread::spawn(move || {
        // SAFETY: taken above, put once.
        unsafe { heap.dealloc(NonNull::new(object as *mut u8).unwrap(), layout(10)) };
        heap
    })
    .join()
    .unwrap();
    assert_eq!(heap.alloc(layout(10)).unwrap().as_ptr() as usize, object);
}

/// Refuses some calls, counted from the moment when the test arms it.
#[derive(Debug)]
struct Late {
    first: usize,
    many: usize,
    armed: AtomicBool,
    seen: AtomicUsize,
    refused: AtomicUsize,
}

impl Hook for Late {
    fn before(&self, call: Call, bytes: usize) -> Result<(), OsError> {
        if !self.armed.load(Ordering::Relaxed) || call == Call::Release {
            return Ok(());
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed);
        if (self.first..self.first.saturating_add(self.many)).contains(&number) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(OsError::new("refused", bytes, rustix::io::Errno::NOMEM));
        }
        Ok(())
    }
}

/// Objects that are asked for.
const ASKED: usize = 1000;

/// One heap whose system refuses calls `first` and the next ones, `many` in all. Says how many it refused, and how many
/// objects came.
fn with_refusals(first: usize, many: usize, private: bool) -> (usize, usize) {
    let system = Arc::new(Hooked::new(
        Linux,
        Late {
            first,
            many,
            armed: AtomicBool::new(false),
            seen: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        },
    ));
    let pages = PagePool::builder()
        .ignore_environment()
        .system(system.clone())
        .reserve_bytes(64 << 20);
    let family = Family::builder().pages(pages).build().unwrap();
    let heap = if private {
        Heap::private(&family)
    } else {
        Heap::new(&Classes::new(&family))
    };
    system.hook().armed.store(true, Ordering::Relaxed);
    let mut objects = Vec::new();
    for size in [16, 5000, 7000, 8 << 10, 60_000].repeat(ASKED / 5) {
        match heap.alloc(layout(size)) {
            Ok(object) => {
                let stamp = objects.len() as u8;
                // SAFETY: the object has this many bytes.
                unsafe { object.write_bytes(stamp, size) };
                objects.push((object, size, stamp));
            }
            Err(error) => assert!(error.to_string().contains("refused"), "{error}"),
        }
    }
    let came = objects.len();
    for (object, size, stamp) in objects {
        // SAFETY: taken above, put once.
        unsafe {
            let bytes = std::slice::from_raw_parts(object.as_ptr(), size);
            assert!(
                bytes.iter().all(|&b| b == stamp),
                "an object has two owners"
            );
            heap.dealloc(object, layout(size));
        }
    }
    drop(heap);
    family.trim();
    assert_eq!(family.pool().stats().out_bytes, 0, "pages were lost");
    (system.hook().refused.load(Ordering::Relaxed), came)
}

#[test]
fn refusals_are_errors_and_pass() {
    for many in [1, 3] {
        let mut cases = 0;
        for first in 0.. {
            let (refused, came) = with_refusals(first, many, false);
            if refused == 0 {
                assert_eq!(came, ASKED, "nothing was refused");
                break;
            }
            cases += 1;
            assert!(
                came >= ASKED - 10,
                "{refused} calls failed, and {came} objects came"
            );
        }
        assert!(cases > 20, "only {cases} calls to refuse");
    }
}

#[test]
fn a_private_heap_loses_nothing_to_refusals() {
    for first in 0.. {
        let (refused, came) = with_refusals(first, 2, true);
        if refused == 0 {
            assert_eq!(came, ASKED, "nothing was refused");
            break;
        }
    }
}

#[test]
fn a_lasting_refusal_is_an_error_for_each_object() {
    let (refused, came) = with_refusals(0, usize::MAX, false);
    assert!(refused > 20 && came == 0, "{refused} refused, {came} came");
    let (_, came) = with_refusals(20, usize::MAX, false);
    assert!((1..ASKED).contains(&came), "{came} came");
}

#[test]
fn nothing_is_reclaimed_for_more_than_is_needed_or_could_be_had() {
    static SHORT: AtomicUsize = AtomicUsize::new(0);
    let family = |pages: PagePoolBuilder| {
        Family::builder()
            .pages(pages.ignore_environment().decay(Duration::MAX))
            .interval(Duration::MAX)
            .on_shortage(|| {
                SHORT.fetch_add(1, Ordering::Relaxed);
                false
            })
            .build()
            .unwrap()
    };
    let limited = || family(PagePool::builder().limit_bytes(100 << 20));
    let reserved = || family(PagePool::builder().reserve_bytes(64 << 20));
    let mib = |n: usize| layout(n << 20);
    // A run gets one of few lengths, here 80 MiB, where there is so much.
    let heap = Heap::new(&Classes::new(&limited()));
    for n in [25, 66] {
        heap.alloc(mib(n)).unwrap();
    }
    assert_eq!(SHORT.load(Ordering::Relaxed), 0, "66 MiB fit");
    // One that moves to grow gets half as much again.
    for by_heap in [true, false] {
        let classes = Classes::new(&limited());
        let heap = Heap::new(&classes);
        let [object, _behind] = [30, 5].map(|n| match by_heap {
            true => heap.alloc(mib(n)).unwrap(),
            false => classes.alloc(mib(n)).unwrap(),
        });
        // SAFETY: taken above with this layout, and not used afterwards.
        let moved = unsafe {
            match by_heap {
                true => heap.realloc(object, mib(30), mib(50)),
                false => classes.realloc(object, mib(30), mib(50)),
            }
        };
        assert_ne!(moved.unwrap(), object, "its neighbour is in use");
        assert_eq!(SHORT.load(Ordering::Relaxed), 0, "50 MiB fit");
    }
    // What is more than the limit, or the reservation, would fit in no case.
    for (family, n) in [(limited(), 101), (reserved(), 65)] {
        let heap = Heap::new(&Classes::new(&family));
        let object = heap.alloc(mib(10)).unwrap();
        // SAFETY: taken above with this layout, put once.
        unsafe { heap.dealloc(object, mib(10)) };
        let held = family.pool().stats().held_bytes;
        assert!(heap.alloc(mib(n)).is_err());
        assert!(heap.classes().alloc(mib(n)).is_err());
        assert_eq!(family.pool().stats().held_bytes, held, "{n} MiB");
        assert_eq!(SHORT.load(Ordering::Relaxed), 0, "{n} MiB");
    }
}

/// The room that the family lends to its heaps: those of the parent's other threads return none in the child of a fork.
#[test]
fn a_child_lends_what_its_parents_threads_had() {
    alone("a_child_lends_what_its_parents_threads_had", |mode| {
        let family = Family::builder()
            .mode(mode)
            .interval(Duration::MAX)
            .cached_bytes(16 << 20)
            .build()
            .unwrap();
        let classes = Classes::new(&family);
        let (others, mine) = (Heap::new(&classes), Heap::new(&classes));
        // MiB that a heap keeps of a run that it frees.
        let kept = |heap: &Heap, mib: usize| {
            let object = heap.alloc(layout(mib << 20)).unwrap();
            // SAFETY: taken above with this layout, put once.
            unsafe { heap.dealloc(object, layout(mib << 20)) };
            heap.stats().stocked_bytes >> 20
        };
        assert_eq!(kept(&others, 16), 16);
        assert_eq!(kept(&mine, 8), 0, "all room is lent");
        // A process of one thread loses no heap.
        let (end, ended) = mpsc::channel::<()>();
        let other = std::thread::spawn(move || ended.recv());
        let status = fork(|| {
            assert_eq!(kept(&mine, 8), 8);
            // A heap that the child does have returns what it was lent before.
            others.trim();
            mine.trim();
            assert_eq!(kept(&mine, 16), 16);
        });
        drop(end);
        assert!(other.join().unwrap().is_err(), "nothing was sent");
        assert_eq!(status, 0, "mode {mode}");
        assert_eq!(kept(&mine, 8), 0, "the parent's heap has it still");
    });
}

#[test]
fn impossible_sizes_are_errors() {
    let heap = Heap::new(&Classes::new(&family()));
    for size in [isize::MAX as usize - 4096, 1 << 60, 1 << 46] {
        let error = heap
            .alloc(Layout::from_size_align(size, 16).unwrap())
            .unwrap_err();
        assert!(matches!(error, AllocError::Memory(_)), "{error}");
    }
    assert_eq!(heap.stats().charged_bytes, 0);
    let nothing = heap.alloc(Layout::from_size_align(0, 1).unwrap()).unwrap();
    // SAFETY: taken above, put once.
    unsafe { heap.dealloc(nothing, Layout::from_size_align(0, 1).unwrap()) };
}

#[test]
fn many_come_and_go_together() {
    let heap = Heap::new(&Classes::new(&family()));
    let mut out = [NonNull::dangling(); 500];
    heap.alloc_many(layout(48), &mut out).unwrap();
    let mut sorted = out.map(|o| o.as_ptr() as usize);
    sorted.sort_unstable();
    assert!(sorted.windows(2).all(|w| w[0] + 48 <= w[1]));
    // SAFETY: taken above, put once.
    unsafe { heap.dealloc_many(&out, layout(48)) };
    heap.set_limit(heap.stats().charged_bytes + 2000);
    let mut more = [NonNull::dangling(); 5000];
    assert!(heap.alloc_many(layout(48), &mut more).is_err());
    heap.set_limit(usize::MAX);
    heap.alloc_many(layout(48), &mut out).unwrap();
    // Aligned to more than all classes are, and runs of pages.
    for (size, align) in [(64, 64), (100, 4096), (5 << 20, 8)] {
        let layout = Layout::from_size_align(size, align).unwrap();
        let before = heap.stats().charged_bytes - heap.stats().stocked_bytes;
        for _ in 0..3 {
            let mut out = [NonNull::dangling(); 20];
            heap.alloc_many(layout, &mut out).unwrap();
            let mut sorted = out.map(|o| o.as_ptr() as usize);
            sorted.sort_unstable();
            assert!(sorted.windows(2).all(|w| w[0] + size <= w[1]), "{layout:?}");
            assert!(sorted.iter().all(|at| at % align == 0), "{layout:?}");
            // SAFETY: taken above, put once.
            unsafe { heap.dealloc_many(&out, layout) };
        }
        let after = heap.stats().charged_bytes - heap.stats().stocked_bytes;
        assert_eq!(after, before, "{layout:?}");
    }
}
