//! A program that starts where there are no addresses for its heap: the start buffer serves its allocations and suffices,
//! and the program gets its heap when there are addresses.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::process::Command;

use larder::Larder;

#[global_allocator]
static ALLOCATOR: Larder = Larder;

/// Environment variable that marks the child process, which runs under the limit.
const ROLE: &str = "LARDER_TEST_STARVED";
/// Blocks that are allocated while there is no heap, and the most bytes that one takes of the buffer.
const BLOCKS: usize = 400;
const MOST: usize = 112 + 32;
/// Bytes of the buffer that the start of a program and some attempts to make a heap may take.
const START: usize = 64 << 10;

fn main() {
    if std::env::var_os(ROLE).is_some() {
        return starved();
    }
    let child = Command::new("sh")
        .args(["-c", "ulimit -S -v 24000; exec \"$0\""])
        .arg(std::env::current_exe().unwrap())
        .env(ROLE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    if said.contains("AddressSanitizer failed to allocate") {
        eprintln!(
            "skipped: a sanitizer wants more addresses than the limit before the program begins"
        );
        return;
    }
    assert!(child.status.success(), "{child:?}");
}

fn starved() {
    assert_eq!(Larder::stats().mode, None, "there are addresses for a heap");
    for _ in 0..BLOCKS {
        black_box(Box::new([1_u8; 100]));
    }
    let stats = Larder::stats();
    assert_eq!(stats.mode, None, "there are addresses for a heap");
    let used = stats.bootstrap_bytes;
    assert!(
        used <= START + BLOCKS * MOST,
        "{used} bytes of the buffer went on trials"
    );
    let all = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: a limit on the stack.
    let done = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const all) };
    assert_eq!(done, 0);
    for _ in 0..2 * BLOCKS {
        black_box(Box::new([2_u8; 100]));
    }
    assert!(Larder::stats().mode.is_some(), "now there are addresses");
    assert!(black_box(vec![3_u8; 1 << 20]).iter().all(|&b| b == 3));
}
