//! A program that starts where there are no addresses for its heap: the start buffer serves its allocations and suffices,
//! and the program gets its heap when there are addresses.

use std::hint::black_box;

use crate::common::{command, role, under};
use larder::Larder;

/// What the child process is for, which runs under the limit.
const STARVED: &str = "starved";
/// Blocks that are allocated while there is no heap, and the most bytes that one takes of the buffer.
const BLOCKS: usize = 400;
const MOST: usize = 112 + 32;
/// Bytes of the buffer that the start of a program and some attempts to make a heap may take.
const START: usize = 64 << 10;

#[test]
fn a_program_starts_without_addresses_for_its_heap() {
    const TEST: &str = "a_program_starts_without_addresses_for_its_heap";
    assert_eq!(role(), None, "the child ends before its tests begin");
    let limit = ["-c", "ulimit -S -v 24000; exec \"$0\" \"$@\""];
    let child = under("sh", &limit, &command(TEST, STARVED))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    if said.contains("AddressSanitizer failed to allocate")
        || said.contains("internal allocator is out of memory")
    {
        eprintln!(
            "skipped: a sanitizer wants more addresses than the limit before the program begins"
        );
        return;
    }
    assert!(child.status.success(), "{child:?}");
    assert!(said.contains(STARVED), "the child did not run: {child:?}");
}

/// The child does its work before `main`: the test harness would want more memory than there is.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    if role().as_deref() == Some(STARVED) {
        starved();
        eprintln!("{STARVED}");
        std::process::exit(0);
    }
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
