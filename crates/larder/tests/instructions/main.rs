//! How many instructions a warm get and put take, held against ceilings: counts do not depend on noise.
//!
//! Only a release build is worth counting; `cargo test --release -p larder --test instructions -- --nocapture` prints
//! the numbers.

#![allow(clippy::unwrap_used)]

mod arena_cost;
#[path = "../common/mod.rs"]
mod common;
mod disassembly;

use std::alloc::Layout;
use std::hint::black_box;
use std::process::Command;
use std::ptr::NonNull;

use common::*;
use disassembly::{atomics, disassembled, path_takes, read, section, straight_path};
use larder::heap::{Classes, Heap};
use larder::internal::heap as global;
use larder::objects::{Family, RawCache};
use larder::pages::{PageHandle, PagePool};

/// Instructions of a warm pair, with its loop: of a page handle; of a heap whose caller knows the size, and whose caller
/// does not; of the program's heap through malloc and free.
const HANDLE_PAIR: f64 = 19.0;
const HEAP_PAIR: f64 = 18.0;
/// The pair alone: what an empty loop around the same pointer takes is not counted.
const HEAP_PAIR_ALONE: f64 = 14.0;
const HEAP_PAIR_ANY_SIZE: f64 = 33.0;
/// The same for each of 32 objects that are taken and put by one call each.
const HEAP_PAIR_OF_MANY: f64 = 8.0;
const GLOBAL_PAIR: f64 = 60.0;
/// Instructions of functions on the per-CPU path, with call and return: straight path.
const PERCPU_GET: usize = 25;
const PERCPU_PUT: usize = 26;
const CACHE_GET: usize = 21;
const CACHE_PUT: usize = 21;
const CLASSES_ALLOC: usize = 34;
const CLASSES_DEALLOC: usize = 31;
/// Instructions of a heap's functions that are not inlined: straight path, with return.
const HEAP_ALLOC: usize = 12;
const HEAP_DEALLOC: usize = 10;
/// Instructions of the sections themselves, from arming to committing.
const POP: usize = 12;
const PUSH: usize = 14;

const PAIRS: u64 = 1_000_000;
/// What the start and the end of a process make of a pair: runs of the same program differ by so much.
const NOISE: f64 = 0.05;

#[inline(never)]
fn pairs(handle: &mut PageHandle, n: u64) {
    for _ in 0..n {
        let page = handle.get_raw().unwrap();
        // SAFETY: just taken, put once.
        unsafe { handle.put_raw(black_box(page)) };
    }
}

/// # Safety
/// `pool` is a pool.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe extern "C" fn larder_percpu_get(pool: *const PagePool) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { (*pool).get_raw() }.map_or(core::ptr::null_mut(), NonNull::as_ptr)
}

/// # Safety
/// `pool` is a pool, and the page is one of its own in the caller's hands.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe extern "C" fn larder_percpu_put(pool: *const PagePool, page: NonNull<u8>) {
    // SAFETY: the caller's promise.
    unsafe { (*pool).put_raw(page) };
}

/// # Safety
/// `cache` is a cache.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe extern "C" fn larder_cache_get(cache: *const RawCache) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { (*cache).get() }.map_or(core::ptr::null_mut(), NonNull::as_ptr)
}

/// # Safety
/// `cache` is a cache, and the object is one of its own in the caller's hands.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe extern "C" fn larder_cache_put(cache: *const RawCache, object: NonNull<u8>) {
    // SAFETY: the caller's promise.
    unsafe { (*cache).put(object) };
}

/// # Safety
/// `classes` are classes; the size is at most `isize::MAX - 15`.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe extern "C" fn larder_classes_alloc(classes: *const Classes, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    let layout = unsafe { Layout::from_size_align_unchecked(size, 16) };
    // SAFETY: as above.
    unsafe { (*classes).alloc(layout) }.map_or(core::ptr::null_mut(), NonNull::as_ptr)
}

/// # Safety
/// As for `larder_classes_alloc`, and the object came from there with this size.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe extern "C" fn larder_classes_dealloc(
    classes: *const Classes,
    object: NonNull<u8>,
    size: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let layout = Layout::from_size_align_unchecked(size, 16);
        (*classes).dealloc(object, layout);
    }
}

/// # Safety
/// `heap` is a heap, of this thread alone.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe extern "C" fn larder_heap_alloc(heap: *const Heap) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { (*heap).alloc(Layout::new::<[u64; 8]>()) }
        .map_or(core::ptr::null_mut(), NonNull::as_ptr)
}

/// # Safety
/// As for `larder_heap_alloc`, and the object came from there.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe extern "C" fn larder_heap_dealloc(heap: *const Heap, object: NonNull<u8>) {
    // SAFETY: the caller's promise.
    unsafe { (*heap).dealloc(object, Layout::new::<[u64; 8]>()) };
}

/// Whether there is something to count, and with what; says so if not.
pub(crate) fn can_count(tool: &str, package: &str) -> bool {
    if cfg!(debug_assertions) {
        println!("a debug build is not counted; run it with --release");
        return false;
    }
    let there = Command::new(tool).arg("--version").output().is_ok();
    if !there {
        println!("{tool} is not installed, so nothing was counted; `apt-get install {package}`");
    }
    there
}

/// Instructions of a process that runs a test in a role.
#[track_caller]
pub(crate) fn collected(test: &str, role: &str) -> u64 {
    let options = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let mut callgrind = under("valgrind", &options, &command(test, role));
    let out = callgrind.output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{text}");
    // `==pid== Collected : 123`
    text.lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
        .unwrap_or_else(|| panic!("no count in {text}"))
}

/// Counts what `run` does in a process of its own and holds a pair against a ceiling.
fn pair_takes(test: &str, what: &str, ceiling: f64, run: impl Fn(u64)) {
    if let Some(role) = role() {
        return run(role.parse().unwrap());
    }
    if !can_count("valgrind", "valgrind") {
        return;
    }
    hold(what, turn_takes(test, ""), ceiling);
}

/// Instructions of one turn of a loop of a test's child, whose role is the word and the number of turns.
fn turn_takes(test: &str, word: &str) -> f64 {
    let count = |n: u64| collected(test, &format!("{word}{n}"));
    (count(2 * PAIRS) - count(PAIRS)) as f64 / PAIRS as f64
}

fn hold(what: &str, per_pair: f64, ceiling: f64) {
    println!("{what}: {per_pair:.2} instructions a pair (ceiling {ceiling})");
    assert!(per_pair > 4.0, "the compiler removed the loop");
    assert!(
        per_pair <= ceiling + NOISE,
        "{what}: {per_pair:.2} instructions a pair"
    );
}

#[test]
fn a_warm_pair_of_a_handle() {
    pair_takes(
        "a_warm_pair_of_a_handle",
        "page handle, warm get_raw + put_raw",
        HANDLE_PAIR,
        |n| {
            let pool = builder(modes()[0]).build().unwrap();
            let mut handle = pool.handle().unwrap();
            pairs(&mut handle, n);
        },
    );
}

fn heap() -> Heap {
    Heap::new(&Classes::new(&Family::new().unwrap()))
}

#[test]
fn a_warm_pair_of_a_heap() {
    const TEST: &str = "a_warm_pair_of_a_heap";
    if let Some(role) = role() {
        let heap = heap();
        let layout = Layout::new::<[u64; 8]>();
        if let Some(n) = role.strip_prefix("empty") {
            let object = heap.alloc(layout).unwrap();
            for _ in 0..n.parse().unwrap() {
                let _: NonNull<u8> = black_box(object);
            }
            // SAFETY: taken above, put once.
            return unsafe { heap.dealloc(object, layout) };
        }
        for _ in 0..role.parse().unwrap() {
            let object = heap.alloc(layout).unwrap();
            // SAFETY: just taken, put once.
            unsafe { heap.dealloc(black_box(object), layout) };
        }
        return;
    }
    if !can_count("valgrind", "valgrind") {
        return;
    }
    let what = "heap, warm alloc + dealloc of 64 bytes";
    let (pair, empty) = (turn_takes(TEST, ""), turn_takes(TEST, "empty"));
    hold(what, pair, HEAP_PAIR);
    println!("{empty:.2} of them are an empty loop's");
    assert!(empty >= 2.0, "the compiler removed the empty loop");
    hold(
        &format!("{what}, without the loop"),
        pair - empty,
        HEAP_PAIR_ALONE,
    );
}

#[test]
fn a_warm_pair_of_a_heap_of_any_size() {
    pair_takes(
        "a_warm_pair_of_a_heap_of_any_size",
        "heap, warm alloc + dealloc of a size that is not known",
        HEAP_PAIR_ANY_SIZE,
        |n| {
            let heap = heap();
            for _ in 0..n {
                let layout = Layout::from_size_align(black_box(64), 16).unwrap();
                let object = heap.alloc(layout).unwrap();
                // SAFETY: just taken, put once.
                unsafe { heap.dealloc(black_box(object), layout) };
            }
        },
    );
}

#[test]
fn a_warm_pair_of_many_at_once() {
    pair_takes(
        "a_warm_pair_of_many_at_once",
        "heap, warm alloc_many + dealloc_many of 32 objects of 64 bytes, for each",
        HEAP_PAIR_OF_MANY,
        |n| {
            let (heap, layout) = (heap(), Layout::new::<[u64; 8]>());
            let mut objects = [NonNull::dangling(); 32];
            for _ in 0..n / 32 {
                heap.alloc_many(layout, black_box(&mut objects)).unwrap();
                // SAFETY: just taken, put once.
                unsafe { heap.dealloc_many(black_box(&objects), layout) };
            }
        },
    );
}

#[test]
fn a_warm_pair_of_malloc_and_free() {
    pair_takes(
        "a_warm_pair_of_malloc_and_free",
        "global heap, warm alloc + free by address",
        GLOBAL_PAIR,
        |n| {
            for _ in 0..n {
                let at = global::alloc(black_box(64), 16);
                // SAFETY: just taken, put once.
                unsafe { global::free(black_box(at)) };
            }
        },
    );
}

/// A path with an atomic instruction is recognised.
#[test]
fn an_atomic_instruction_is_seen() {
    let way = |middle: &str| {
        read(&format!(
            "1:\tlea 0x1(%rip),%rax\n2:\tmov %rax,%fs:0x8\n3:\t{middle}\n4:\tmov %rcx,(%rdx)\n5:\tret\n"
        ))
    };
    for atomic in [
        "lock cmpxchg %rcx,(%rdx)",
        "lock decq 0x8(%rdi)",
        "lock addl $0x0,-0x40(%rsp)",
        "xchg %rax,(%rdi)",
        "cs lock xadd %rax,(%rdi)",
    ] {
        let lines = way(atomic);
        assert_eq!(section(&lines), None, "{atomic}");
        let path = straight_path(&lines, true).unwrap();
        assert_eq!(atomics(&path).len(), 1, "{atomic}");
    }
    for plain in ["xchg %ax,%ax", "mov 0x8(%rdi),%rcx", "bsr %rax,%rcx"] {
        let lines = way(plain);
        assert_eq!(section(&lines), Some(4), "{plain}");
        let path = straight_path(&lines, true).unwrap();
        assert_eq!((path.len(), atomics(&path).len()), (5, 0), "{plain}");
    }
}

#[test]
fn a_heap_takes_and_puts_without_an_atomic() {
    let heap = heap();
    // SAFETY: a heap of this thread, and an object of it that is put once.
    unsafe {
        let object = larder_heap_alloc(black_box(&raw const heap));
        larder_heap_dealloc(&raw const heap, NonNull::new(object).unwrap());
    }
    if !cfg!(target_arch = "x86_64") || !can_count("objdump", "binutils") {
        return;
    }
    for (name, ceiling) in [
        ("larder_heap_alloc", HEAP_ALLOC),
        ("larder_heap_dealloc", HEAP_DEALLOC),
    ] {
        path_takes(name, &disassembled(name), false, ceiling);
    }
}

#[test]
fn a_warm_get_and_put_of_a_cpu() {
    // Used, so that the linker keeps them; and they work.
    let pool = builder(*modes().last().unwrap()).build().unwrap();
    // SAFETY: a pool, and a page of it that is put once.
    unsafe {
        let page = larder_percpu_get(black_box(&raw const pool));
        larder_percpu_put(&raw const pool, NonNull::new(page).unwrap());
    }
    let family = Family::new().unwrap();
    let cache = RawCache::new(&family, Layout::new::<[u64; 8]>()).unwrap();
    let classes = Classes::new(&family);
    // SAFETY: a cache and classes, and objects of theirs that are put once.
    unsafe {
        let object = larder_cache_get(black_box(&raw const cache));
        larder_cache_put(&raw const cache, NonNull::new(object).unwrap());
        let object = larder_classes_alloc(black_box(&raw const classes), 100);
        larder_classes_dealloc(&raw const classes, NonNull::new(object).unwrap(), 100);
    }
    if !cfg!(target_arch = "x86_64") {
        println!("sections are written for x86-64");
        return;
    }
    if !can_count("objdump", "binutils") {
        return;
    }
    for (name, ceiling, most) in [
        ("larder_percpu_get", PERCPU_GET, POP),
        ("larder_percpu_put", PERCPU_PUT, PUSH),
        ("larder_cache_get", CACHE_GET, POP),
        ("larder_cache_put", CACHE_PUT, PUSH),
        ("larder_classes_alloc", CLASSES_ALLOC, POP),
        ("larder_classes_dealloc", CLASSES_DEALLOC, PUSH),
    ] {
        let lines = disassembled(name);
        path_takes(name, &lines, true, ceiling);
        let inside = section(&lines).unwrap_or_else(|| panic!("no section in {name}: {lines:#?}"));
        println!("{name}: {inside} of them in the section (ceiling {most})");
        assert!(
            (8..=most).contains(&inside),
            "{inside} instructions in the section of {name}: {lines:#?}"
        );
    }
}
