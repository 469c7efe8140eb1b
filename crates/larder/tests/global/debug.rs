//! The debug mode of the heap of a Rust program, seen from inside: live blocks, checks and leaks on request.

#![cfg(feature = "debug-heap")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::Output;

use crate::common::{command, ended, role};
use larder::Larder;
use larder::heap::debug::Origin;
use larder::internal::heap as global;

/// Runs one test of this program again, in debug mode.
fn again(test: &str, role: &str, options: &str) -> Output {
    ended(command(test, role).env("LARDER_MALLOC_DEBUG", options))
}

fn is(wanted: &str) -> bool {
    role().is_some_and(|is| is == wanted)
}

fn live() -> BTreeMap<usize, usize> {
    let mut blocks = BTreeMap::new();
    Larder::for_each_live(|block| {
        assert!(
            blocks.insert(block.address, block.size).is_none(),
            "shown twice"
        );
    });
    blocks
}

#[test]
fn live_blocks_are_shown_as_they_are() {
    if !is("live") {
        let ended = again("live_blocks_are_shown_as_they_are", "live", "on");
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(live(), BTreeMap::new(), "none without debug mode");
        assert_eq!(Larder::debug_options(), None);
        return;
    }
    assert_eq!(Larder::debug_options().unwrap().redzone, 32);
    let before = live();
    let vectors: Vec<Vec<u8>> = (1..200).map(|n| vec![1; n * 7]).collect();
    let after = live();
    for vector in &vectors {
        assert_eq!(after.get(&(vector.as_ptr() as usize)), Some(&vector.len()));
        assert!(!before.contains_key(&(vector.as_ptr() as usize)));
    }
    let at = vectors[50].as_ptr() as usize;
    drop(vectors);
    assert!(!live().contains_key(&at));
    // Numbers go up, and the alignment is what was asked for.
    let aligned = global::alloc_as(100, 512, Origin::NewArray);
    let mut found = None;
    Larder::for_each_live(|block| {
        if block.address == aligned as usize {
            found = Some(block);
        }
    });
    let found = found.unwrap();
    assert_eq!(
        (found.size, found.align, found.origin),
        (100, 512, Origin::NewArray)
    );
    assert_eq!(Larder::check(), 0);
    // SAFETY: as it was allocated.
    unsafe {
        global::free_aligned_as(aligned, 512, global::Call::DeleteArray);
    }
}

#[test]
fn a_check_on_request_finds_each_damage_once() {
    if !is("check") {
        let ended = again(
            "a_check_on_request_finds_each_damage_once",
            "check",
            "keep-going",
        );
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        assert_eq!(said.matches("larder: overflow: byte 2 after").count(), 1);
        assert_eq!(said.matches("larder: use after free: byte 9 of").count(), 1);
        return;
    }
    let (a, b) = (global::alloc(50, 1), global::alloc(50, 1));
    // SAFETY: not at all. Both are memory of the heap, which is what the test is about.
    unsafe {
        black_box(a).add(52).write(1);
        global::free(b);
        black_box(b).add(9).write(1);
    }
    assert_eq!(Larder::check(), 2);
    assert_eq!(Larder::check(), 0);
    // SAFETY: allocated above.
    unsafe { global::free(a) };
}

#[test]
fn a_wrong_layout_is_told() {
    if !is("layout") {
        for (role, needle) in [
            ("size", "larder: mismatched size: dealloc(0x"),
            ("align", "larder: mismatched alignment: dealloc(0x"),
        ] {
            let ended = again(
                "a_wrong_layout_is_told",
                "layout",
                &format!("on,seed={}", role.len()),
            );
            let said = String::from_utf8_lossy(&ended.stderr);
            assert!(!ended.status.success(), "{said}");
            assert!(said.contains(needle), "{said}");
        }
        return;
    }
    let at = global::alloc(64, 8);
    // SAFETY: not at all, as above.
    unsafe {
        match Larder::debug_options().unwrap().seed {
            4 => global::free_sized_as(at, 65, 8, global::Call::Dealloc),
            _ => global::free_sized_as(at, 64, 16, global::Call::Dealloc),
        }
    }
}

#[inline(never)]
fn lose(bytes: usize) {
    std::mem::forget(black_box(vec![7_u8; bytes]));
}

/// Stale words of calls that returned lie below the stack's top, which is where a later call's frame begins.
#[inline(never)]
fn scrub() {
    black_box([0_u8; 16 << 10]);
}

#[test]
fn leaks_are_found_while_the_program_runs() {
    if std::env::var_os("ASAN_OPTIONS").is_some() {
        eprintln!(
            "skipped: under AddressSanitizer old frames stay, in which a lost block is found"
        );
        return;
    }
    if !is("leaks") {
        let ended = again("leaks_are_found_while_the_program_runs", "leaks", "on");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        assert!(
            said.contains("larder: leak: 54321 bytes in 1 block, by malloc"),
            "{said}"
        );
        assert!(!said.contains("12345 bytes"), "{said}");
        return;
    }
    let kept = black_box(vec![7_u8; 12345]);
    let before = Larder::leaks().unwrap();
    lose(54321);
    scrub();
    let after = Larder::leaks().unwrap();
    assert!(after.bytes >= before.bytes + 54321, "{before:?} {after:?}");
    assert!(after.live > after.blocks);
    drop(kept);
}
