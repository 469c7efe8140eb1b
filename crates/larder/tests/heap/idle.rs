//! The objects in a heap's magazines go back when the owner no longer needs them, although no call asks for that.

use std::alloc::Layout;
use std::time::Duration;

use larder::heap::{Classes, Heap};
use larder::objects::Family;

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

/// A heap whose magazines are full of objects of many sizes, in a family whose intervals end only when the test ends them.
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
    // Not by the heap, which would keep it.
    let run = heap.classes().alloc(layout(5 << 20)).unwrap();
    // SAFETY: taken above with this layout, put once.
    unsafe { heap.classes().dealloc(run, layout(5 << 20)) };
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
        |heap, _| assert!(heap.alloc(layout(5 << 20)).is_ok()),
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
        family.maintain();
        call(&heap, 1);
        let after = heap.stats();
        assert!(after.stocked_bytes < 64 << 10, "{i}: {after:?}");
        let small = after.charged_bytes - after.large_bytes;
        assert!(small < before.charged_bytes, "{i}: {after:?}");
        // The rest takes the depot's working set, that of the slabs and the pool's.
        for _ in 0..3 {
            family.maintain();
        }
        let out = family.pool().stats().out_bytes - after.large_bytes;
        assert!(out < 400 << 10, "{i}: {out} bytes stay");
    }
}

#[test]
fn a_heap_without_calls_keeps_what_it_has() {
    let (family, heap) = after_a_burst();
    let before = heap.stats().stocked_bytes;
    for _ in 0..4 {
        family.maintain();
    }
    assert_eq!(heap.stats().stocked_bytes, before);
    heap.trim();
    for _ in 0..4 {
        family.maintain();
    }
    assert_eq!(heap.stats().stocked_bytes, 0);
    assert_eq!(family.pool().stats().out_bytes, 0, "nothing is in use");
}

/// A heap that takes an object, puts it, and ends.
fn live_shortly(classes: &Classes) {
    let heap = Heap::new(classes);
    let object = heap.alloc(layout(64)).unwrap();
    // SAFETY: taken above, put once.
    unsafe { heap.dealloc(object, layout(64)) };
}

#[test]
fn a_heap_begins_with_what_the_last_one_of_its_thread_left() {
    let (_family, first) = after_a_burst();
    let classes = first.classes().clone();
    let last = first.alloc(layout(64)).unwrap();
    // SAFETY: taken above, put once.
    unsafe { first.dealloc(last, layout(64)) };
    drop(first);
    let second = Heap::new(&classes);
    let object = second.alloc(layout(64)).unwrap();
    assert_eq!(object, last, "what was used last is warm");
    let stats = second.stats();
    assert!(stats.stocked_bytes >= 64, "more than one came: {stats:?}");
    assert_eq!(stats.charged_bytes, stats.stocked_bytes + 64);
    // SAFETY: taken above, put once.
    unsafe { second.dealloc(object, layout(64)) };
    assert_eq!(second.stats().charged_bytes, second.stats().stocked_bytes);
}

/// Heaps that find what they need where the last one left it give back what else is there.
#[test]
fn heaps_that_live_shortly_give_back_what_nobody_uses() {
    let interval = Duration::from_millis(5);
    let family = Family::builder().interval(interval).build().unwrap();
    let classes = Classes::new(&family);
    let burst = Heap::new(&classes);
    let objects: Vec<_> = (0..10_000)
        .map(|_| burst.alloc(layout(256)).unwrap())
        .collect();
    for object in objects {
        // SAFETY: taken above, put once.
        unsafe { burst.dealloc(object, layout(256)) };
    }
    live_shortly(&classes);
    drop(burst);
    let held = || family.pool().stats().out_bytes;
    assert!(held() > 1 << 20, "{} bytes", held());
    for _ in 0..5000 {
        live_shortly(&classes);
        if held() < 256 << 10 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{} bytes stay", held());
}

/// Objects of one size that have so many bytes are taken, and put in the order that `order` says.
fn burst(heap: &Heap, size: usize, bytes: usize, order: fn(&mut Vec<std::ptr::NonNull<u8>>)) {
    let take = |_| heap.alloc(layout(size)).unwrap();
    let mut objects: Vec<_> = (0..bytes / size).map(take).collect();
    order(&mut objects);
    for object in objects {
        // SAFETY: taken above with this layout, put once.
        unsafe { heap.dealloc(object, layout(size)) };
    }
}

#[test]
fn free_memory_is_bounded_though_no_time_passes() {
    const MIB: usize = 1 << 20;
    let hour = Duration::from_secs(3600);
    let family = Family::builder().interval(hour).cached_bytes(2 * MIB);
    let family = family.build().unwrap();
    let classes = Classes::new(&family);
    let orders: [fn(&mut Vec<std::ptr::NonNull<u8>>); 3] = [
        |_| {},
        |objects| objects.reverse(),
        // One in seven, then the next of each seven, and so on: slabs become whole at the end only.
        |objects| {
            let all = std::mem::take(objects);
            objects.extend((0..7).flat_map(|i| all.iter().skip(i).step_by(7)));
        },
    ];
    let all_sizes = || {
        let heap = Heap::new(&classes);
        for size in [64, 1000, 4096, 65_536, 2 * MIB] {
            for order in orders {
                burst(&heap, size, 40 * MIB, order);
            }
        }
    };
    all_sizes();
    // Beside the constant there are two steps of 4 MiB, and what magazines hold.
    let held = || family.pool().stats().held_bytes / MIB;
    assert!(held() <= 2 + 8 + 2, "{} MiB", held());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(all_sizes);
        }
    });
    assert!(held() <= 2 + 8 + 4 * 2, "{} MiB", held());
    // All of it works after it was given back.
    all_sizes();
    drop(classes);
    family.trim();
    assert_eq!(family.pool().stats().out_bytes, 0);
}
