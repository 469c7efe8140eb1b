//! The program's heap where memory ends: a block can be made smaller whatever is left.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashSet;

use crate::common::*;
use larder::Larder;
use larder::internal::heap as global;

const OLD: usize = 880;
const LARGE: usize = 100_000;

/// Allows so many bytes beyond what the program has mapped by now: under a sanitizer that is much.
fn limit_data(bytes: u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let data = status.lines().find_map(|l| l.strip_prefix("VmData:"));
    let kib: u64 = data
        .unwrap()
        .trim()
        .strip_suffix(" kB")
        .unwrap()
        .parse()
        .unwrap();
    let limit = libc::rlimit {
        rlim_cur: (kib << 10).saturating_add(bytes),
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: a limit on the stack.
    let done = unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) };
    assert_eq!(done, 0);
}

/// A block full of its own number.
fn write(at: *mut u8, number: usize, size: usize) {
    // SAFETY: the block has this many bytes, and is the caller's.
    unsafe { std::slice::from_raw_parts_mut(at, size) }.fill(number as u8);
}

fn is_written(at: *const u8, number: usize, size: usize) -> bool {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(at, size) }
        .iter()
        .all(|&b| b == number as u8)
}

/// Blocks with even numbers are malloc's, the others those of a Rust program.
fn is_of_malloc(number: usize) -> bool {
    number.is_multiple_of(2)
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

fn alloc(number: usize, size: usize) -> *mut u8 {
    match is_of_malloc(number) {
        true => global::alloc(size, 8),
        // SAFETY: a size that is not 0.
        false => unsafe { Larder.alloc(layout(size)) },
    }
}

/// # Safety
/// The block has this number and size.
unsafe fn realloc(number: usize, at: *mut u8, size: usize, new: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        match is_of_malloc(number) {
            true => global::realloc(at, new, 8),
            false => Larder.realloc(at, layout(size), new),
        }
    }
}

/// # Safety
/// As for [`realloc`].
unsafe fn free(number: usize, at: *mut u8, size: usize, sized: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        match (is_of_malloc(number), sized) {
            (true, false) => global::free(at),
            (true, true) => global::free_sized_as(at, size, 8, global::Call::FreeSized),
            (false, _) => Larder.dealloc(at, layout(size)),
        }
    }
}

#[test]
fn a_block_can_be_made_smaller_without_memory() {
    const NAME: &str = "a_block_can_be_made_smaller_without_memory";
    if role().is_none() {
        print!("{}", run(NAME, "short"));
        return;
    }
    // This program's own allocator is the system's, so its lists do not count.
    let (mut small, mut large) = (Vec::with_capacity(1 << 20), Vec::with_capacity(1 << 20));
    let (mut moved, mut refused) = (0, 0);
    limit_data(160 << 20);
    loop {
        let at = alloc(large.len(), LARGE);
        if at.is_null() {
            break;
        }
        write(at, large.len(), LARGE);
        large.push((at, LARGE));
    }
    loop {
        let at = alloc(small.len(), OLD);
        if at.is_null() {
            break;
        }
        write(at, small.len(), OLD);
        small.push((at, OLD));
    }
    for (i, (at, size)) in small.iter_mut().enumerate() {
        // Classes without any block at first, some of whose blocks this loop itself frees.
        let new = [60, 512, 601][i % 3];
        // SAFETY: each block is used once, with the size it was last given.
        let to = unsafe { realloc(i, *at, *size, new) };
        if to.is_null() {
            refused += 1;
            continue;
        }
        moved += usize::from(to != *at);
        (*at, *size) = (to, new);
    }
    for (i, (at, size)) in large.iter_mut().enumerate() {
        // SAFETY: as above.
        let to = unsafe { realloc(i, *at, *size, 700) };
        if to.is_null() {
            refused += 1;
            continue;
        }
        (*at, *size) = (to, 700);
    }
    limit_data(libc::RLIM_INFINITY);
    // Only now is there memory to say so.
    assert_eq!(refused, 0, "so many blocks could not be made smaller");
    assert!(large.len() > 10, "{} large blocks", large.len());
    assert!(
        !small.is_empty() && moved < small.len(),
        "all {moved} of {} moved: there was memory",
        small.len()
    );
    // Each kept block serves as a block of its new size, for frees and allocations alike.
    for round in 0..3 {
        for list in [&mut small, &mut large] {
            for (i, (at, size)) in list.iter_mut().enumerate() {
                assert!(is_written(*at, i, *size), "block {i} was overwritten");
                // SAFETY: as above.
                unsafe { free(i, *at, *size, i % 4 == round) };
                *at = alloc(i, *size);
                write(*at, i, *size);
            }
        }
        Larder::trim();
    }
    let all: HashSet<_> = small.iter().chain(&large).map(|(at, _)| *at).collect();
    assert_eq!(
        all.len(),
        small.len() + large.len(),
        "a block has two owners"
    );
    for list in [&small, &large] {
        for (i, (at, size)) in list.iter().enumerate() {
            assert!(is_written(*at, i, *size), "block {i} was overwritten");
            // SAFETY: as above.
            unsafe { free(i, *at, *size, true) };
        }
    }
    // A block that serves as a smaller one may have too little alignment: it goes back to its slab, and another one comes.
    let aligned: Vec<_> = (0..2000).map(|_| global::alloc(512, 512)).collect();
    for &at in &aligned {
        assert!(!at.is_null() && (at as usize).is_multiple_of(512));
        // SAFETY: taken above, put once.
        unsafe { global::free_sized_as(at, 512, 512, global::Call::FreeAlignedSized) };
    }
    // Everything goes back, each block to its own slab.
    Larder::trim();
    assert_eq!(Larder::stats().large_bytes, 0);
    let out: usize = Larder::stats()
        .classes
        .iter()
        .map(|class| class.held_bytes)
        .sum();
    assert!(out < 1 << 20, "{out} bytes of slabs stay");
}
