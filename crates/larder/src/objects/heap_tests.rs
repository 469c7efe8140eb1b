//! Caches and heaps over the heap, where tools that watch the allocator or interpret the program see every access:
//! `cargo +nightly miri test -p larder --lib objects::heap_tests`.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use crate::heap::{Classes, Heap};
use crate::os::page_size;
use crate::os::rseq::Mode;
use crate::os::testing::HeapSystem;
use crate::os::zero::Zeroing;
use crate::pages::{ClusterSize, PagePool};

/// A family over a pool of 1024 pages.
fn small() -> (Arc<HeapSystem>, Family) {
    let system = Arc::new(HeapSystem::default());
    let pages = PagePool::builder()
        .ignore_environment()
        .system(system.clone())
        .mode(Mode::Locked("test"))
        .zeroing(Zeroing::Portable)
        .reserve_bytes(1024 * page_size())
        .limit_bytes(900 * page_size())
        .cluster(ClusterSize::pages(16).unwrap())
        .magazine(2, 4)
        .decay(Duration::from_secs(3600));
    let family = Family::builder()
        .pages(pages)
        .mode(Mode::Locked("test"))
        .interval(Duration::from_secs(3600))
        .build()
        .unwrap();
    (system, family)
}

/// A value that owns memory and is counted while it lives.
struct Counted {
    text: String,
    live: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn values_stay_constructed_and_end_once() {
    let (system, family) = small();
    let live = Arc::new(AtomicUsize::new(0));
    let counter = live.clone();
    let cache = ObjectCache::new(&family, move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Counted {
            text: "new".to_owned(),
            live: counter.clone(),
        }
    })
    .unwrap();
    let mut handle = cache.handle();
    let mut values = Vec::new();
    for i in 0..150 {
        let mut value = if i % 2 == 0 {
            cache.get().unwrap()
        } else {
            handle.get().unwrap()
        };
        assert_eq!(value.text, "new");
        value.text = i.to_string();
        values.push(value);
    }
    for (i, value) in values.into_iter().enumerate() {
        assert_eq!(value.text, i.to_string());
        if i % 3 == 0 {
            handle.put(value);
        }
    }
    assert_ne!(cache.get().unwrap().text, "new", "as it was left");
    drop(handle);
    let owned = cache.get_owned().unwrap();
    drop(cache);
    assert!(live.load(Ordering::Relaxed) >= 150);
    family.trim();
    assert!(!owned.text.is_empty());
    drop(owned);
    assert_eq!(live.load(Ordering::Relaxed), 0, "each was dropped");
    drop(family);
    assert_eq!(system.reserved(), 0);
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// # Safety
/// The block has this many bytes.
unsafe fn is_all(at: NonNull<u8>, size: usize, byte: u8) -> bool {
    // SAFETY: the caller's promise.
    let bytes = unsafe { core::slice::from_raw_parts(at.as_ptr(), size) };
    // Both ends: every byte would take an interpreter long.
    let (first, last) = (&bytes[..size.min(50)], &bytes[size.saturating_sub(50)..]);
    first.iter().chain(last).all(|&b| b == byte)
}

#[test]
fn blocks_of_all_kinds_go_round() {
    let (system, family) = small();
    let classes = Classes::new(&family);
    let (a, b) = (Heap::new(&classes), Heap::new(&classes));
    let mut blocks = Vec::new();
    for (i, size) in [1, 16, 100, 100, 700, 5000, 40_000].into_iter().enumerate() {
        for align in [1, 64, 512] {
            let layout = layout(size, align);
            let at = match i % 3 {
                0 => a.alloc(layout),
                1 => b.alloc_zeroed(layout),
                _ => classes.alloc(layout),
            }
            .unwrap();
            assert_eq!(at.as_ptr() as usize % align, 0);
            // SAFETY: as long as it is.
            unsafe {
                assert!(i % 3 != 1 || is_all(at, size, 0));
                at.write_bytes(i as u8, size);
            }
            blocks.push((at, layout, i as u8));
        }
    }
    for (i, (at, old, byte)) in blocks.into_iter().enumerate() {
        let new = layout(old.size() * [3, 1, 2][i % 3] / 2, old.align());
        // SAFETY: with its layout, the last it was given; each once.
        unsafe {
            let at = if i % 2 == 0 {
                a.realloc(at, old, new).unwrap()
            } else {
                classes.realloc_by_address(at, new).unwrap()
            };
            assert!(is_all(at, old.size().min(new.size()), byte));
            match i % 3 {
                0 => b.dealloc(at, new),
                1 => a.dealloc_by_address(at),
                _ => classes.dealloc(at, new),
            }
        }
    }
    drop((a, b));
    family.trim();
    assert_eq!(family.pool().stats().out_bytes, 0);
    drop((classes, family));
    assert_eq!(system.reserved(), 0);
}

#[test]
fn a_private_heap_takes_its_objects_along() {
    let (system, family) = small();
    let heap = Heap::private(&family);
    for i in 0..60 {
        let layout = layout([40, 600, 10_000, 50_000][i % 4] + i, 8);
        let at = heap.alloc(layout).unwrap();
        // SAFETY: as long as it is; it goes once, if at all.
        unsafe {
            at.write_bytes(1, layout.size());
            if i % 5 == 0 {
                heap.dealloc(at, layout);
            }
        }
    }
    drop(heap);
    assert_eq!(family.large_held_bytes(), 0);
    drop(family);
    assert_eq!(system.reserved(), 0);
}

/// A block on its way to another thread.
struct Sent(NonNull<u8>);
// SAFETY: the thread that has the value has the block.
unsafe impl Send for Sent {}

#[test]
fn threads_free_each_others_blocks() {
    let (system, family) = small();
    let classes = Classes::new(&family);
    let turns: u8 = if cfg!(miri) { 40 } else { 200 };
    let layout = layout(300, 8);
    let (sender, receiver) = channel::<Sent>();
    std::thread::scope(|s| {
        for me in 1..3_u8 {
            let (classes, sender) = (&classes, sender.clone());
            s.spawn(move || {
                let heap = Heap::new(classes);
                for turn in 0..turns {
                    let at = heap.alloc(layout).unwrap();
                    // SAFETY: just taken.
                    unsafe { at.write_bytes(me, 300) };
                    if turn % 4 == 3 {
                        // SAFETY: as above, and given up.
                        unsafe { heap.dealloc(at, layout) };
                    } else {
                        sender.send(Sent(at)).unwrap();
                    }
                }
            });
        }
        drop(sender);
        s.spawn(|| {
            let heap = Heap::new(&classes);
            for (i, Sent(at)) in receiver.into_iter().enumerate() {
                // SAFETY: sent by the thread that took it, and given up here.
                unsafe {
                    let me = at.read();
                    assert!((1..3).contains(&me) && is_all(at, 300, me));
                    if i % 2 == 0 {
                        heap.dealloc(at, layout);
                    } else {
                        classes.dealloc(at, layout);
                    }
                }
            }
        });
        s.spawn(|| {
            for _ in 0..4 {
                family.trim();
                std::thread::yield_now();
            }
        });
    });
    family.trim();
    assert_eq!(family.pool().stats().out_bytes, 0);
    drop((classes, family));
    assert_eq!(system.reserved(), 0);
}
