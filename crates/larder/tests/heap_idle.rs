//! What a heap has in its magazines goes back when its owner does not need it any more, although nobody asks for it.

#![allow(clippy::unwrap_used)]

use std::alloc::Layout;
use std::time::Duration;

use larder::heap::{Classes, Heap};
use larder::objects::Family;

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

/// A heap whose magazines are full of objects of many sizes, in a family whose intervals end when somebody says so.
fn after_a_burst() -> (Family, Heap) {
    let hour = Duration::from_secs(3600);
    let family = Family::builder().interval(hour).build().unwrap();
    let heap = Heap::new(&Classes::new(&family));
    let sizes = (4..12).map(|n| 1 << n);
    let objects: Vec<_> = sizes
        .flat_map(|size| (0..300).map(move |_| layout(size)))
        .map(|layout| (heap.alloc(layout).unwrap(), layout))
        .collect();
    // Pages for the large object that a test takes: memory that had to grow for it would be looked for in the magazines first.
    let run = heap.alloc(layout(100_000)).unwrap();
    // SAFETY: taken above with this layout, put once.
    unsafe { heap.dealloc(run, layout(100_000)) };
    for (object, layout) in objects {
        // SAFETY: taken above with this layout, put once.
        unsafe { heap.dealloc(object, layout) };
    }
    assert!(heap.stats().stocked_bytes > 200 << 10);
    (family, heap)
}

#[test]
fn the_next_slow_call_after_an_interval_empties_the_magazines() {
    type Call = fn(&Heap, usize);
    let calls: [Call; 3] = [
        // A class that was not used yet.
        |heap, turn| assert!(heap.alloc(layout(5000 + 2000 * turn)).is_ok()),
        // A large object.
        |heap, _| assert!(heap.alloc(layout(100_000)).is_ok()),
        // More objects than two magazines hold.
        |heap, _| {
            let objects: Vec<_> = (0..600).map(|_| heap.alloc(layout(64)).unwrap()).collect();
            for object in objects {
                // SAFETY: taken above, put once.
                unsafe { heap.dealloc(object, layout(64)) };
            }
        },
    ];
    for (i, call) in calls.into_iter().enumerate() {
        let (family, heap) = after_a_burst();
        let before = heap.stats();
        call(&heap, 0);
        let less = before.stocked_bytes - heap.stats().stocked_bytes.min(before.stocked_bytes);
        assert!(less < 64 << 10, "{i}: no interval has ended");
        family.reap();
        call(&heap, 1);
        let after = heap.stats();
        assert!(after.stocked_bytes < 64 << 10, "{i}: {after:?}");
        assert!(after.charged_bytes < before.charged_bytes, "{i}: {after:?}");
        // The rest takes the depot's working set, that of the slabs and the pool's.
        for _ in 0..3 {
            family.reap();
        }
        let out = family.pool().stats().out_bytes;
        assert!(out < 400 << 10, "{i}: {out} bytes stay");
    }
}

#[test]
fn a_heap_without_calls_keeps_what_it_has() {
    let (family, heap) = after_a_burst();
    let before = heap.stats().stocked_bytes;
    for _ in 0..4 {
        family.reap();
    }
    assert_eq!(heap.stats().stocked_bytes, before);
    heap.trim();
    for _ in 0..4 {
        family.reap();
    }
    assert_eq!(heap.stats().stocked_bytes, 0);
    assert_eq!(family.pool().stats().out_bytes, 0, "nothing is in use");
}
