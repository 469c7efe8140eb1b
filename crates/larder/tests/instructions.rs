//! How many instructions a warm get and put take, held against ceilings: counts do not depend on noise.
//!
//! Only a release build is worth counting; `cargo test --release -p larder --test instructions -- --nocapture` prints
//! the numbers.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashSet;
use std::hint::black_box;
use std::process::Command;
use std::ptr::NonNull;

use common::*;
use larder::pages::{PageHandle, PagePool};

/// Instructions of a warm pair through a handle, with its loop.
const HANDLE_PAIR: f64 = 22.0;
/// Instructions of `PagePool::get_raw` and of `put_raw` on the per-CPU path, with call and return: straight path.
const PERCPU_GET: usize = 28;
const PERCPU_PUT: usize = 30;

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

#[test]
fn a_warm_pair_of_a_handle() {
    const TEST: &str = "a_warm_pair_of_a_handle";
    if let Some(role) = role() {
        let pool = builder(modes()[0]).build().unwrap();
        let mut handle = pool.handle().unwrap();
        pairs(&mut handle, role.parse().unwrap());
        return;
    }
    if !can_count("valgrind", "valgrind") {
        return;
    }
    let count = |n: u64| -> u64 {
        let child = command(TEST, &n.to_string());
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
    };
    let per_pair = (count(2 * PAIRS) - count(PAIRS)) as f64 / PAIRS as f64;
    println!(
        "handle, warm get_raw + put_raw: {per_pair:.2} instructions a pair (ceiling {HANDLE_PAIR})"
    );
    assert!(per_pair > 4.0, "the compiler removed the loop");
    assert!(per_pair <= HANDLE_PAIR, "{per_pair:.2} instructions a pair");
}

/// One line of a disassembly.
#[derive(Debug)]
struct Line {
    at: u64,
    text: String,
}

impl Line {
    /// Where a jump leads.
    fn target(&self) -> Option<u64> {
        let (name, rest) = self.text.split_once(char::is_whitespace)?;
        name.starts_with('j')
            .then(|| u64::from_str_radix(rest.split_whitespace().next()?, 16).ok())?
    }
}

/// Instructions on the shortest way through a function that commits a section: it arms one (a store relative to `fs`),
/// counts (the `inc` that every section has before its last store), calls nobody, and returns.
fn straight_path(lines: &[Line]) -> Option<usize> {
    fn walk(
        lines: &[Line],
        i: usize,
        seen: &mut HashSet<usize>,
        armed: bool,
        counted: bool,
    ) -> Option<usize> {
        let line = lines.get(i)?;
        if !seen.insert(i) {
            return None;
        }
        let name = line.text.split_whitespace().next()?;
        let armed = armed || line.text.contains("%fs:");
        let counted = counted || (armed && name.starts_with("inc"));
        let to = |at: u64| lines.iter().position(|l| l.at == at);
        let rest = match (name, line.target()) {
            (name, _) if name.starts_with("ret") => (armed && counted).then_some(0),
            (name, _) if name.starts_with("call") => None,
            ("jmp", target) => walk(lines, to(target?)?, seen, armed, counted),
            (_, Some(target)) => {
                let taken = to(target).and_then(|t| walk(lines, t, seen, armed, counted));
                let not = walk(lines, i + 1, seen, armed, counted);
                taken.into_iter().chain(not).min()
            }
            _ => walk(lines, i + 1, seen, armed, counted),
        };
        seen.remove(&i);
        rest.map(|n| n + 1)
    }
    walk(lines, 0, &mut HashSet::new(), false, false)
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
    if !cfg!(target_arch = "x86_64") {
        println!("sections are written for x86-64");
        return;
    }
    if !can_count("objdump", "binutils") {
        return;
    }
    for (name, ceiling) in [
        ("larder_percpu_get", PERCPU_GET),
        ("larder_percpu_put", PERCPU_PUT),
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
        assert!(straight > 8, "{name} does too little to be true:\n{text}");
        assert!(
            straight <= ceiling,
            "{straight} instructions in {name}:\n{text}"
        );
    }
}
