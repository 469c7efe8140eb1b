//! Before memory grows, the free objects in magazines go back and serve other sizes. Demand decides that, not time.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::time::Duration;

use larder::heap::{Classes, Heap};
use larder::objects::Family;

/// A family in which no interval ends.
fn timeless() -> Family {
    let hour = Duration::from_secs(3600);
    Family::builder().interval(hour).build().unwrap()
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

fn held(family: &Family) -> usize {
    family.pool().stats().held_bytes
}

/// Takes objects of a size until they have so many bytes.
fn take(heap: &Heap, size: usize, bytes: usize) -> Vec<NonNull<u8>> {
    let take = |_| heap.alloc(layout(size)).unwrap();
    (0..bytes / size).map(take).collect()
}

fn give(heap: &Heap, size: usize, objects: Vec<NonNull<u8>>) {
    for object in objects {
        // SAFETY: taken with this size from a heap of the same classes, put once.
        unsafe { heap.dealloc(object, layout(size)) };
    }
}

/// Sizes of twelve classes, of which a slab has few objects.
const SIZES: [usize; 12] = [
    1280, 1792, 2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192, 10_240, 16_384,
];
const BURST: usize = 256 << 10;

#[test]
fn sizes_that_are_needed_in_turn_do_not_add_up() {
    let family = timeless();
    let heap = Heap::new(&Classes::new(&family));
    // Of so much memory a collection is worth it.
    let burst = 8 * BURST;
    for size in SIZES {
        give(&heap, size, take(&heap, size, burst));
    }
    assert!(held(&family) < 5 * burst, "{} bytes", held(&family));
}

#[test]
fn what_small_sizes_left_serves_large_ones_too() {
    let family = timeless();
    let heap = Heap::new(&Classes::new(&family));
    let (burst, run) = (16 * BURST, 40 << 10);
    give(&heap, 2048, take(&heap, 2048, burst));
    let before = held(&family);
    assert!((burst..burst + BURST).contains(&before), "{before} bytes");
    let runs = take(&heap, run, burst);
    let more = held(&family) - before;
    assert!(more < 8 * BURST, "{more} bytes more");
    give(&heap, run, runs);
}

#[test]
fn other_heaps_give_back_at_their_next_slow_call() {
    let family = timeless();
    let classes = Classes::new(&family);
    let (idle, busy) = (Heap::new(&classes), Heap::new(&classes));
    let objects = SIZES.map(|size| (size, take(&busy, size, 64 << 10)));
    for (size, objects) in objects {
        give(&idle, size, objects);
    }
    let before = idle.stats().stocked_bytes;
    assert!(before > 256 << 10, "{before} bytes");
    let objects = take(&busy, 512, 8 * before);
    assert_eq!(
        idle.stats().stocked_bytes,
        before,
        "no other heap looks into it"
    );
    // A class that it does not have yet.
    idle.alloc(layout(64)).unwrap();
    let after = idle.stats().stocked_bytes;
    assert!(after < before / 2, "{after} bytes of {before}");
    give(&busy, 512, objects);
}

#[test]
fn a_working_set_of_many_sizes_comes_to_stay() {
    let family = timeless();
    let heap = Heap::new(&Classes::new(&family));
    let turn = || {
        for size in SIZES {
            give(&heap, size, take(&heap, size, 16 << 10));
        }
    };
    for _ in 0..20 {
        turn();
    }
    let (refills, before) = (heap.stats().refills, held(&family));
    for _ in 0..100 {
        turn();
    }
    assert_eq!(heap.stats().refills, refills, "all came from the magazines");
    assert_eq!(held(&family), before);
}

#[test]
fn of_a_size_that_is_little_used_little_is_taken() {
    let heap = Heap::new(&Classes::new(&timeless()));
    for size in [16, 64, 512] {
        heap.alloc(layout(size)).unwrap();
    }
    assert!(heap.stats().stocked_bytes < 3 << 10, "{:?}", heap.stats());
    let many = take(&heap, 512, 512 << 10);
    let before = heap.stats().refills;
    let more = take(&heap, 512, 64 << 10);
    let refills = heap.stats().refills - before;
    assert!(refills <= 64 / 8 + 1, "{refills} times for 64 KiB");
    give(&heap, 512, many);
    give(&heap, 512, more);
}
