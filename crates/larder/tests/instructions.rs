//! How many instructions a warm get and put take, held against ceilings: counts do not depend on noise.
//!
//! Only a release build is worth counting; `cargo test --release -p larder --test instructions -- --nocapture` prints
//! the numbers.

#![allow(clippy::unwrap_used)]

mod common;

use std::alloc::Layout;
use std::collections::HashSet;
use std::hint::black_box;
use std::process::Command;
use std::ptr::NonNull;

use common::*;
use larder::heap::{Classes, Heap, global};
use larder::objects::{Family, RawCache};
use larder::pages::{PageHandle, PagePool};

/// Instructions of a warm pair, with its loop: of a page handle; of a heap whose caller knows the size, and whose caller
/// does not; of the program's heap through malloc and free.
const HANDLE_PAIR: f64 = 19.0;
const HEAP_PAIR: f64 = 18.0;
const HEAP_PAIR_ANY_SIZE: f64 = 33.0;
const GLOBAL_PAIR: f64 = 60.0;
/// Instructions of functions on the per-CPU path, with call and return: straight path.
const PERCPU_GET: usize = 25;
const PERCPU_PUT: usize = 26;
const CACHE_GET: usize = 21;
const CACHE_PUT: usize = 23;
const CLASSES_ALLOC: usize = 37;
const CLASSES_DEALLOC: usize = 32;
/// Instructions of the sections themselves, from arming to committing.
const POP: usize = 12;
const PUSH: usize = 14;

const PAIRS: u64 = 1_000_000;

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
    unsafe { (*cache).get_or_null() }
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

/// Whether there is something to count, and with what; says so if not.
fn can_count(tool: &str, package: &str) -> bool {
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
fn collected(test: &str, role: &str) -> u64 {
    let child = command(test, role);
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(child.get_program())
        .args(child.get_args())
        .envs(child.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .output()
        .unwrap();
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
    let count = |n: u64| collected(test, &n.to_string());
    let per_pair = (count(2 * PAIRS) - count(PAIRS)) as f64 / PAIRS as f64;
    println!("{what}: {per_pair:.2} instructions a pair (ceiling {ceiling})");
    assert!(per_pair > 4.0, "the compiler removed the loop");
    assert!(
        per_pair <= ceiling,
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
    pair_takes(
        "a_warm_pair_of_a_heap",
        "heap, warm alloc + dealloc of 64 bytes",
        HEAP_PAIR,
        |n| {
            let heap = heap();
            let layout = Layout::new::<[u64; 8]>();
            for _ in 0..n {
                let object = heap.alloc(layout).unwrap();
                // SAFETY: just taken, put once.
                unsafe { heap.dealloc(black_box(object), layout) };
            }
        },
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

/// One line of a disassembly.
#[derive(Debug)]
struct Line {
    at: u64,
    text: String,
}

impl Line {
    /// Whether it stores a register where another one points.
    fn is_commit(&self) -> bool {
        let operands = self.text.strip_prefix("mov").map(str::trim);
        operands
            .and_then(|operands| operands.split_once(','))
            .is_some_and(|(from, to)| from.starts_with("%r") && to.starts_with("(%r"))
    }

    /// Where a jump leads.
    fn target(&self) -> Option<u64> {
        let (name, rest) = self.text.split_once(char::is_whitespace)?;
        name.starts_with('j')
            .then(|| u64::from_str_radix(rest.split_whitespace().next()?, 16).ok())?
    }
}

/// Instructions on the shortest way through a function that commits a section: it arms one (a store relative to `fs`),
/// stores the new top (the slot's first word, so nothing is added to its address), calls nobody, and returns.
fn straight_path(lines: &[Line]) -> Option<usize> {
    fn walk(
        lines: &[Line],
        i: usize,
        seen: &mut HashSet<usize>,
        armed: bool,
        committed: bool,
    ) -> Option<usize> {
        let line = lines.get(i)?;
        if !seen.insert(i) {
            return None;
        }
        let name = line.text.split_whitespace().next()?;
        let armed = armed || line.text.contains("%fs:");
        let committed = committed || (armed && line.is_commit());
        let to = |at: u64| lines.iter().position(|l| l.at == at);
        let rest = match (name, line.target()) {
            (name, _) if name.starts_with("ret") => committed.then_some(0),
            (name, _) if name.starts_with("call") => None,
            ("jmp", target) => walk(lines, to(target?)?, seen, armed, committed),
            (_, Some(target)) => {
                let taken = to(target).and_then(|t| walk(lines, t, seen, armed, committed));
                let not = walk(lines, i + 1, seen, armed, committed);
                taken.into_iter().chain(not).min()
            }
            _ => walk(lines, i + 1, seen, armed, committed),
        };
        seen.remove(&i);
        rest.map(|n| n + 1)
    }
    walk(lines, 0, &mut HashSet::new(), false, false)
}

/// Instructions on the shortest way through a section: from the load of its descriptor's address to the commit.
fn section(lines: &[Line]) -> Option<usize> {
    let to = |at: u64| lines.iter().position(|l| l.at == at);
    let armed = lines.iter().position(|l| l.text.contains("%fs:0x8"))?;
    let mut now = vec![armed.checked_sub(1)?];
    for steps in 1..=lines.len() {
        let mut next = Vec::new();
        for &i in &now {
            let Some(line) = lines.get(i) else { continue };
            if line.is_commit() {
                return Some(steps);
            }
            next.extend(line.target().and_then(to));
            let ends = ["jmp", "ret", "call"];
            if !ends.iter().any(|end| line.text.starts_with(end)) {
                next.push(i + 1);
            }
        }
        next.sort_unstable();
        next.dedup();
        now = next;
    }
    None
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
        let out = Command::new("objdump")
            .args(["-d", "--no-show-raw-insn", &format!("--disassemble={name}")])
            .arg(std::env::current_exe().unwrap())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        let lines: Vec<_> = text
            .lines()
            .filter_map(|line| {
                let (at, text) = line.split_once(":\t")?;
                let at = u64::from_str_radix(at.trim(), 16).ok()?;
                Some(Line {
                    at,
                    text: text.trim().to_owned(),
                })
            })
            .collect();
        assert!(!lines.is_empty(), "{name} is not in the binary:\n{text}");
        let straight = straight_path(&lines)
            .unwrap_or_else(|| panic!("no straight way through {name}:\n{text}"));
        println!(
            "{name}: {straight} instructions on the straight path (ceiling {ceiling}), {} in all",
            lines.len()
        );
        let inside = section(&lines).unwrap_or_else(|| panic!("no section in {name}:\n{text}"));
        println!("{name}: {inside} of them in the section (ceiling {most})");
        assert!(
            (8..=most).contains(&inside),
            "{inside} instructions in the section of {name}:\n{text}"
        );
        assert!(straight > 8, "{name} does too little to be true:\n{text}");
        assert!(
            straight <= ceiling,
            "{straight} instructions in {name}:\n{text}"
        );
    }
}
