//! An object can be made smaller whatever memory is left and whatever its heap may take.

use std::alloc::Layout;
use std::ptr::NonNull;

use larder::heap::{AllocError, Classes, Heap};
use larder::internal::heap::class_of_layout;
use larder::objects::Family;
use larder::pages::PagePool;

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

/// A heap over a pool that has given away all it may: runs of pages, and objects of 100000 and of 1000 bytes.
fn full(classes: &Classes) -> (Heap, Vec<(NonNull<u8>, Layout)>) {
    let heap = Heap::new(classes);
    let mut objects = Vec::new();
    for (size, most) in [(4_300_000, 1000), (100_000, 5), (1000, 100_000)] {
        for _ in 0..most {
            let Ok(object) = heap.alloc(layout(size)) else {
                break;
            };
            // SAFETY: the object has this many bytes.
            unsafe { object.write_bytes(objects.len() as u8, size) };
            objects.push((object, layout(size)));
        }
    }
    (heap, objects)
}

#[test]
fn an_object_can_be_made_smaller_without_memory() {
    let pages = PagePool::builder()
        .ignore_environment()
        .limit_bytes(32 << 20)
        .reserve_bytes(128 << 20);
    let family = Family::builder().pages(pages).build().unwrap();
    let classes = Classes::new(&family);
    let (heap, mut objects) = full(&classes);
    assert!(objects.len() > 100);
    let mut kept = 0;
    // The last first: runs of pages that go would make room.
    for (i, (object, old)) in objects.iter_mut().enumerate().rev() {
        // Classes without any object yet, sizes that divide by more than their blocks, and runs of pages.
        let size = [60, 512, 500, 4_200_000, 90_000, 601, 0][i % 7].min(old.size());
        // SAFETY: each object has one layout, the last it was given.
        let to = unsafe { heap.realloc(*object, *old, layout(size)) }.unwrap();
        let another = class_of_layout(*old) != class_of_layout(layout(size));
        kept += usize::from(to == *object && another);
        // SAFETY: it has as many bytes as both.
        let bytes = unsafe { std::slice::from_raw_parts(to.as_ptr(), size) };
        assert!(bytes.iter().all(|&b| b == i as u8), "{size} bytes moved");
        (*object, *old) = (to, layout(size));
    }
    assert!(kept > 10, "{kept} stayed where they were");
    // They are given back by their new layouts, to the heap, to another one, and to the classes.
    let other = Heap::new(&classes);
    for (i, (object, layout)) in objects.drain(..).enumerate() {
        // SAFETY: given up with its layout.
        unsafe {
            match i % 3 {
                0 => heap.dealloc(object, layout),
                1 => other.dealloc(object, layout),
                _ => classes.dealloc(object, layout),
            }
        }
    }
    // What serves now as an object of a smaller class is as aligned as those are.
    for align in [64, 256, 512] {
        let aligned = Layout::from_size_align(512, align).unwrap();
        let taken: Vec<_> = (0..300)
            .filter_map(|i| match i % 3 {
                0 => heap.alloc(aligned).ok(),
                1 => other.alloc(aligned).ok(),
                _ => classes.alloc(aligned).ok(),
            })
            .collect();
        assert!(taken.len() > 100, "{} came", taken.len());
        for object in taken {
            assert_eq!(object.as_ptr() as usize % align, 0);
            // SAFETY: taken above, put once.
            unsafe { heap.dealloc(object, aligned) };
        }
    }
    drop((heap, other));
    family.trim();
    // Some came back to caches that had been drained before.
    family.trim();
    assert_eq!(family.large_held_bytes(), 0, "runs of pages came home");
    assert_eq!(family.pool().stats().out_bytes, 0, "and objects did");
}

#[test]
fn an_object_that_is_not_as_aligned_as_its_class_is_charged_no_more() {
    let heap = Heap::new(&Classes::new(&Family::new().unwrap()));
    let objects: Vec<_> = (0..8).map(|_| heap.alloc(layout(640)).unwrap()).collect();
    let aligned = Layout::from_size_align(512, 512).unwrap();
    // SAFETY: each has the layout that it was given last, and is put once.
    unsafe {
        for &object in &objects {
            heap.set_limit(heap.stats().charged_bytes);
            let smaller = heap.realloc(object, layout(640), layout(500));
            assert_eq!(smaller, Ok(object), "it may not move");
        }
        for object in objects {
            heap.dealloc(object, layout(500));
        }
        heap.set_limit(usize::MAX);
        let object = heap.alloc(aligned).unwrap();
        assert!((object.as_ptr() as usize).is_multiple_of(512));
        heap.dealloc(object, aligned);
    }
    let stats = heap.stats();
    assert_eq!(stats.charged_bytes, stats.stocked_bytes);
}

#[test]
fn an_object_can_be_made_smaller_at_the_heaps_limit() {
    let heap = Heap::new(&Classes::new(&Family::new().unwrap()));
    let large = heap.alloc(layout(8_000_000)).unwrap();
    heap.set_limit(heap.stats().charged_bytes);
    assert!(heap.alloc(layout(16)).is_err());
    // SAFETY: one object, with the layout that it was given last.
    unsafe {
        let smaller = heap.realloc(large, layout(8_000_000), layout(4_400_000));
        assert_eq!(smaller, Ok(large), "a run of pages stays");
        assert_eq!(
            heap.realloc(large, layout(4_400_000), layout(100)),
            Ok(large)
        );
        assert_eq!(heap.stats().large_bytes, 0);
        assert!(heap.stats().charged_bytes <= 112, "what it knows of");
        heap.dealloc(large, layout(100));
    }
    let again = heap.alloc(layout(100)).unwrap();
    assert_eq!(again, large, "it serves as an object of that size");
    // SAFETY: as above.
    unsafe { heap.dealloc(again, layout(100)) };
    let family = heap.classes().family().clone();
    drop(heap);
    assert_eq!(
        family.large_held_bytes(),
        0,
        "the run went with the classes"
    );
}

#[test]
fn an_object_that_stayed_is_as_aligned_as_is_asked_for() {
    let pages = PagePool::builder()
        .ignore_environment()
        .limit_bytes(8 << 20)
        .reserve_bytes(64 << 20);
    let family = Family::builder().pages(pages).build().unwrap();
    let classes = Classes::new(&family);
    let heap = Heap::new(&classes);
    let (old, small) = (layout(896), layout(512));
    let aligned = Layout::from_size_align(512, 512).unwrap();
    let mut objects = Vec::new();
    while let Ok(object) = heap.alloc(old) {
        objects.push(object);
    }
    let (mut crooked, mut refused) = (0, 0);
    for (i, object) in objects.into_iter().enumerate() {
        // SAFETY: each object has one layout, the last it was given.
        unsafe {
            let stayed = if i % 2 == 0 {
                heap.realloc(object, old, small).unwrap()
            } else {
                classes.realloc(object, old, small).unwrap()
            };
            crooked += usize::from(!(stayed.as_ptr() as usize).is_multiple_of(512));
            // The size stays, so the class does; but not every place will do.
            let to = match i % 4 {
                0 => heap.realloc(stayed, small, aligned),
                1 => classes.realloc(stayed, small, aligned),
                2 => heap.realloc_by_address(stayed, aligned),
                _ => classes.realloc_by_address(stayed, aligned),
            };
            let Ok(to) = to else {
                refused += 1;
                heap.dealloc(stayed, small);
                continue;
            };
            assert_eq!(to.as_ptr() as usize % 512, 0, "object {i}");
            heap.dealloc(to, aligned);
        }
    }
    assert!(crooked > 100 && refused < crooked, "{crooked}, {refused}");
    drop(heap);
    family.trim();
    family.trim();
    assert_eq!(family.pool().stats().out_bytes, 0);
}

#[test]
fn what_is_no_object_cannot_be_resized() {
    fn nothing(_: &larder::objects::Misuse) {}
    let family = Family::builder().on_misuse(nothing).build().unwrap();
    let classes = Classes::new(&family);
    let heap = Heap::new(&classes);
    let mut word = 0_u64;
    let at = NonNull::from(&mut word).cast::<u8>();
    // SAFETY: it is refused, which is what is looked at.
    unsafe {
        assert!(matches!(
            heap.realloc_by_address(at, layout(100)),
            Err(AllocError::Foreign { size: 100, .. })
        ));
        assert!(classes.realloc_by_address(at, layout(100)).is_err());
        // The same object, by its address alone: larger, smaller, and where it is.
        let object = heap.alloc(layout(100)).unwrap();
        object.write_bytes(3, 100);
        let large = classes
            .realloc_by_address(object, layout(2_000_000))
            .unwrap();
        assert_eq!(large.add(99).read(), 3);
        assert_eq!(heap.realloc_by_address(large, layout(1_900_000)), Ok(large));
        let small = heap.realloc_by_address(large, layout(100)).unwrap();
        assert_eq!(small.add(99).read(), 3);
        heap.dealloc_by_address(small);
    }
    heap.trim();
    assert_eq!(family.large_held_bytes(), 0);
}
