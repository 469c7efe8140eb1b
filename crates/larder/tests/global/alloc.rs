//! The program's heap as the allocator of this test program: everything here, the test harness included, runs on it.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::common::fork::fork;
use crate::common::{role, run};
use larder::Larder;
use larder::heap::HeapMode;
use larder::internal::heap as global;

/// As C's `free_sized`.
///
/// # Safety
/// The block is in use, and of this size.
unsafe fn free_sized(at: *mut u8, size: usize, align: usize) {
    // SAFETY: the caller's promise.
    unsafe { global::free_sized_as(at, size, align, global::Call::FreeSized) }
}

#[test]
fn the_program_runs_on_it() {
    let mut map = BTreeMap::new();
    for i in 0..50_000_u64 {
        map.insert(
            i.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            vec![i as u8; (i % 300) as usize],
        );
    }
    for (key, bytes) in &map {
        let i = key.wrapping_mul(0xF1DE_83E1_9937_733D);
        assert!(bytes.iter().all(|&b| b == i as u8) && bytes.len() == (i % 300) as usize);
    }
    let stats = Larder::stats();
    assert_eq!(stats.mode, Some(HeapMode::PerThread));
    assert!(stats.out_bytes > 50_000 * 150, "{}", stats.out_bytes);
    let at = map.values().find(|v| !v.is_empty()).unwrap().as_ptr();
    // SAFETY: the vector's block is in use.
    assert!(unsafe { global::usable_size(at.cast_mut()) } > 0);
}

#[test]
fn blocks_are_as_aligned_as_was_asked_for() {
    for align in (0..=20).map(|n| 1_usize << n) {
        for size in [0, 1, 8, 17, 100, 5000, 40_000, 3 << 20] {
            let at = global::alloc_zeroed(size, align);
            assert!(
                !at.is_null() && (at as usize).is_multiple_of(align),
                "{size} aligned to {align}"
            );
            // SAFETY: taken above, with this size and alignment, put once.
            unsafe {
                assert!(global::usable_size(at) >= size);
                let bytes = std::slice::from_raw_parts_mut(at, size);
                assert!(
                    bytes.iter().all(|&b| b == 0),
                    "{size} aligned to {align} is not zero"
                );
                bytes.fill(0xA5);
                if align > 64 {
                    global::free(at);
                } else {
                    free_sized(at, size, align);
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_is_null() {
    for (size, align) in [
        (usize::MAX, 1),
        (isize::MAX as usize, 8),
        (1 << 62, 1),
        (8, 3),
        (8, 0),
        (1 << 50, 4096),
    ] {
        assert!(global::alloc(size, align).is_null(), "{size} {align}");
        assert!(
            global::alloc_zeroed(size, align).is_null(),
            "{size} {align}"
        );
    }
    let at = global::alloc(100, 8);
    // SAFETY: a failed resize leaves the block as it is.
    unsafe {
        at.write_bytes(7, 100);
        assert!(global::realloc(at, usize::MAX / 2, 8).is_null());
        assert_eq!(at.add(99).read(), 7);
        global::free(at);
    }
}

#[test]
fn a_block_keeps_its_contents_when_it_grows_and_shrinks() {
    let mut at = global::alloc(1, 1);
    let mut size = 1;
    // SAFETY: `at` has `size` bytes at each step.
    unsafe {
        at.write(1);
        for next in [
            5, 50, 51, 500, 5000, 70_000, 2_000_000, 1_500_000, 60_000, 400, 30, 2,
        ] {
            at = global::realloc(at, next, 1);
            let bytes = std::slice::from_raw_parts_mut(at, next);
            for (i, byte) in bytes.iter().enumerate().take(size.min(next)) {
                assert_eq!(*byte, (i % 251 + 1) as u8, "{size} to {next}, byte {i}");
            }
            for (i, byte) in bytes.iter_mut().enumerate() {
                *byte = (i % 251 + 1) as u8;
            }
            size = next;
        }
        global::free(at);
    }
}

/// A free by size would take a block that shrank in place for one of a smaller class.
#[test]
fn a_block_that_shrank_is_what_its_size_says() {
    for (old, new) in [
        (112, 60),
        (1000, 600),
        (1024, 600),
        (40_000, 30_000),
        (40_000, 24_000),
        (3 << 20, 2 << 20),
    ] {
        for _ in 0..200 {
            // SAFETY: each block is used once, with the size it was last given.
            unsafe {
                let layout = |size| Layout::from_size_align(size, 8).unwrap();
                let at = Larder.realloc(Larder.alloc(layout(old)), layout(old), new);
                let plain = Larder.alloc(layout(new));
                if new < 32 << 10 {
                    assert_eq!(
                        global::usable_size(at),
                        global::usable_size(plain),
                        "{old} to {new}"
                    );
                }
                Larder.dealloc(plain, layout(new));
                Larder.dealloc(at, layout(new));
                let at = global::realloc(global::alloc(old, 8), new, 8);
                free_sized(at, new, 8);
            }
        }
        // Everything goes back to its slab, which recognises its own blocks.
        Larder::trim();
        let aligned = global::alloc(64, 64);
        assert!((aligned as usize).is_multiple_of(64));
        // SAFETY: taken above.
        unsafe { free_sized(aligned, 64, 64) };
    }
    let text = "x".repeat(60);
    let mut roomy = String::with_capacity(112);
    roomy.push_str(&text);
    assert_eq!(&*roomy.into_boxed_str(), text);
    Larder::trim();
}

/// A block with more alignment than a page is a run of pages, though it has a class's size.
#[test]
fn a_small_block_aligned_as_large_ones_are_may_be_freed_by_its_new_size() {
    for (align, size) in [(8192, 4000), (32_768, 20_000), (8192, 100)] {
        for _ in 0..200 {
            // SAFETY: each block is used once, with the size it was last given.
            unsafe {
                // So that there are magazines to which it could come.
                free_sized(global::alloc(size, 16), size, 16);
                let at = global::alloc(size + 1, align);
                assert!((at as usize).is_multiple_of(align));
                at.write(7);
                let at = global::realloc(at, size, 16);
                assert_eq!(at.read(), 7);
                free_sized(at, size, 16);
            }
        }
        // A block in the wrong magazine is found on the way back.
        Larder::trim();
    }
}

#[test]
fn a_thousand_threads_come_and_go_with_objects_alive() {
    const NAME: &str = "a_thousand_threads_come_and_go_with_objects_alive";
    if role().is_none() {
        run(NAME, "alone");
        return;
    }
    let (send, receive) = mpsc::channel();
    let total = AtomicUsize::new(0);
    for _ in 0..20 {
        std::thread::scope(|s| {
            for t in 0..50_usize {
                let (send, total) = (send.clone(), &total);
                s.spawn(move || {
                    let kept: Vec<Box<[usize; 20]>> =
                        (0..20).map(|i| Box::new([t * 1000 + i; 20])).collect();
                    total.fetch_add(kept.len(), Ordering::Relaxed);
                    send.send((t, kept)).unwrap();
                });
            }
        });
    }
    drop(send);
    let kept: Vec<_> = receive.iter().collect();
    for (t, boxes) in &kept {
        for (i, b) in boxes.iter().enumerate() {
            assert!(b.iter().all(|&n| n == t * 1000 + i));
        }
    }
    assert_eq!(
        kept.iter().map(|(_, b)| b.len()).sum::<usize>(),
        total.load(Ordering::Relaxed)
    );
    // What threads had in their magazines serves others: at most two magazines for each of the fifty at a time, and
    // what else this program keeps of this size.
    let class = global::class_of(160).unwrap();
    let held = Larder::stats().classes[class].held_bytes;
    let alive = total.load(Ordering::Relaxed) * 160;
    assert!(
        (alive..2 * alive).contains(&held),
        "{held} bytes of slabs for {alive} bytes of objects"
    );
}

#[test]
fn destructors_at_a_threads_end_may_allocate() {
    thread_local! {
        static LATE: std::cell::RefCell<Option<Late>> = const { std::cell::RefCell::new(None) };
    }
    struct Late(mpsc::Sender<String>);
    impl Drop for Late {
        fn drop(&mut self) {
            // After the heap may have been given back.
            let text = (0..100)
                .map(|i| i.to_string())
                .collect::<Vec<_>>()
                .join(",");
            self.0.send(text).unwrap();
        }
    }
    let (send, receive) = mpsc::channel();
    for _ in 0..50 {
        let send = send.clone();
        std::thread::spawn(move || LATE.with_borrow_mut(|late| *late = Some(Late(send))))
            .join()
            .unwrap();
        assert!(receive.recv().unwrap().ends_with("98,99"));
    }
}

/// Rust's destructors run before those of keys, and the heap's key is older than this one: here the heap is gone.
#[test]
fn destructors_after_the_heaps_own_may_allocate_and_free() {
    struct Late {
        early: Box<[u64; 12]>,
        send: mpsc::Sender<(u64, Vec<u64>)>,
    }
    extern "C" fn end(late: *mut libc::c_void) {
        // SAFETY: set below, and given up to this function.
        let Late { early, send } = *unsafe { Box::from_raw(late.cast::<Late>()) };
        let mut late: Vec<Vec<u64>> = (0..200).map(|i| vec![i; 1 + i as usize]).collect();
        let sum = late.iter().map(|v| v.iter().sum::<u64>()).sum();
        assert!(early.iter().all(|&n| n == 7), "it was the thread's");
        drop(early);
        let kept = late.swap_remove(150);
        drop(late);
        // Freed memory can be allocated again, here and by later threads.
        drop(std::hint::black_box(vec![1_u8; 100_000]));
        send.send((sum, kept)).unwrap();
    }
    drop(std::hint::black_box(Box::new(1)));
    let mut key = 0;
    // SAFETY: the destructor has the right form.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(end)) };
    assert_eq!(made, 0);
    let (send, receive) = mpsc::channel();
    for _ in 0..50 {
        let send = send.clone();
        std::thread::spawn(move || {
            let late = Box::new(Late {
                early: Box::new([7; 12]),
                send,
            });
            // SAFETY: the key exists, and its destructor takes the box.
            let set = unsafe { libc::pthread_setspecific(key, Box::into_raw(late).cast()) };
            assert_eq!(set, 0);
        })
        .join()
        .unwrap();
        let (sum, kept) = receive.recv().unwrap();
        assert_eq!(sum, (0..200).map(|i| i * (i + 1)).sum::<u64>());
        assert_eq!(kept, vec![150; 151], "it outlives its thread");
    }
}

/// Blocks of many sizes, each full of its own number.
fn numbered(from: u32, n: u32) -> Vec<Vec<u32>> {
    (from..from + n)
        .map(|i| vec![i; 1 + i as usize * 37 % 3000])
        .collect()
}

fn are_numbered(blocks: &[Vec<u32>], from: u32) -> bool {
    (from..).zip(blocks).all(|(i, block)| {
        block.len() == 1 + i as usize * 37 % 3000 && block.iter().all(|&n| n == i)
    })
}

#[test]
fn the_child_of_a_fork_goes_on() {
    const NAME: &str = "the_child_of_a_fork_goes_on";
    if role().is_none() {
        run(NAME, "alone");
        return;
    }
    let stop = AtomicUsize::new(0);
    let before = numbered(0, 500);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let mut i = 0;
                while stop.load(Ordering::Relaxed) == 0 {
                    i += 1;
                    std::hint::black_box(vec![i; 1 + i % 5000]);
                }
            });
        }
        for _ in 0..30 {
            let status = fork(|| {
                let mut own = numbered(1000, 1000);
                assert!(are_numbered(&own, 1000) && are_numbered(&before, 0));
                own.truncate(500);
                let more = numbered(2000, 500);
                assert!(are_numbered(&own, 1000) && are_numbered(&more, 2000));
                // A thread of the child's own, which gets a heap and frees what another one allocated.
                let thread = std::thread::spawn(move || {
                    let its = numbered(3000, 300);
                    assert!(are_numbered(&own, 1000) && are_numbered(&its, 3000));
                    drop(own);
                    its
                });
                let its = thread.join().unwrap();
                assert!(are_numbered(&its, 3000) && are_numbered(&before, 0));
            });
            assert_eq!(status, 0, "the child failed");
        }
        stop.store(1, Ordering::Relaxed);
    });
    assert!(are_numbered(&before, 0));
}
