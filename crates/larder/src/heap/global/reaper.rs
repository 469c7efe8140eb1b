//! The thread that gives memory of the program's heap back periodically, where the environment asks for it.
//!
//! It is started by a slow call, once the heap holds something worth a thread: so short programs have none, and the child of a
//! fork, which has no thread but one, gets another when it allocates slowly again.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;

use super::mode::environment;
use super::slot::{self, Stage};
use crate::objects::Family;
use crate::os::decimal::billionths;
use crate::os::errno::KeptErrno;
use crate::os::say::say_ignored;
use crate::os::signals::Blocked;
use crate::os::{fork, lower_priority};

/// Bytes that the heap holds when the thread is started.
const WORTH: usize = 1 << 20;
/// Bytes of its stack. Where thread-local variables take so much, it gets the usual one.
const STACK: usize = 256 << 10;
/// Nanoseconds that may be asked for.
const LEAST: u64 = 10_000_000;
const MOST: u64 = 86_400_000_000_000;

touched_at_start! {
    /// Nanoseconds between its rounds.
    static INTERVAL: AtomicU64 = AtomicU64::new(0);
}
/// Fork generation that has the thread, or whose system refused it; 0 is none.
static STARTED: AtomicU32 = AtomicU32::new(0);
touched_at_start! {
    /// The family that it gives back; null before the heap is there, and where it is checked: what is freed is kept there on purpose,
    /// and the search for leaks stops all threads by signals.
    static FAMILY: AtomicPtr<Family> = AtomicPtr::new(null_mut());
}

/// The thread may be started from now on.
pub(super) fn serve(family: &'static Family) {
    FAMILY.store(core::ptr::from_ref(family).cast_mut(), Ordering::Release);
}

fn family() -> Option<&'static Family> {
    // SAFETY: null, or what `serve` got, which stays.
    unsafe { FAMILY.load(Ordering::Acquire).as_ref() }
}

/// What `LARDER_MALLOC_REAPER` may say: seconds from 0.01 to 86400, with a fraction or without. `None` is anything else.
#[must_use]
pub fn reaper_interval(seconds: &str) -> Option<Duration> {
    let nanoseconds = billionths(seconds)?;
    (LEAST..=MOST)
        .contains(&nanoseconds)
        .then(|| Duration::from_nanos(nanoseconds))
}

/// What the environment asks of slow calls: to start the thread, or nothing. A word that means nothing is reported in a line.
pub(super) fn chosen() -> Option<fn()> {
    let word = environment(c"LARDER_MALLOC_REAPER").filter(|word| !word.is_empty())?;
    let interval = core::str::from_utf8(word).ok().and_then(reaper_interval);
    let Some(interval) = interval else {
        let is = "no number of seconds from 0.01 to 86400";
        say_ignored("LARDER_MALLOC_REAPER", word, is);
        return None;
    };
    INTERVAL.store(interval.as_nanos() as u64, Ordering::Relaxed);
    Some(slow_call)
}

/// Called by slow calls of the heap, where nothing is locked. Two loads once there is a thread.
fn slow_call() {
    let now = fork::generation();
    if STARTED.load(Ordering::Relaxed) == now {
        return;
    }
    if let Some(family) = family() {
        consider(family, now);
    }
}

#[cold]
fn consider(family: &Family, now: u32) {
    if slot::stage() == Stage::Making || family.pool().stats().held_bytes < WORTH {
        return;
    }
    let seen = STARTED.load(Ordering::Relaxed);
    let claimed = seen != now
        && STARTED
            .compare_exchange(seen, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
    if !claimed {
        return;
    }
    // What the C library allocates for the thread must not come to a heap that is in the middle of a call: it comes to the
    // CPUs' stocks.
    let (heap, stage) = (slot::heap().map(NonNull::from), slot::stage());
    slot::set_stage(Stage::Ended);
    // SAFETY: a word without a heap is always right.
    unsafe { slot::set_heap(None) };
    // No answer to a refusal: the program goes on without the thread, as without the variable, and does not see it in errno.
    let _errno = KeptErrno::new();
    start();
    // SAFETY: what the word was, and it is this thread's.
    unsafe { slot::set_heap(heap) };
    slot::set_stage(stage);
}

/// Starts the thread, with all signals blocked: a handler of the program's must not run there.
fn start() -> bool {
    let signals = Blocked::new();
    if !signals.holds() {
        return false;
    }
    // SAFETY: each structure is written by the call that is given it before it is read; the thread's function is a plain one
    // and its argument unused.
    unsafe {
        let mut attributes = MaybeUninit::uninit();
        let mut started = false;
        if libc::pthread_attr_init(attributes.as_mut_ptr()) == 0 {
            let attributes = attributes.as_mut_ptr();
            libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED);
            let mut thread = MaybeUninit::uninit();
            let mut create =
                || libc::pthread_create(thread.as_mut_ptr(), attributes, rounds, null_mut()) == 0;
            let small = libc::pthread_attr_setstacksize(attributes, STACK) == 0;
            started = small && create();
            if !started && libc::pthread_attr_setstacksize(attributes, 32 * STACK) == 0 {
                started = create();
            }
            libc::pthread_attr_destroy(attributes);
        }
        started
    }
}

/// The thread: a round after each interval.
extern "C" fn rounds(_: *mut c_void) -> *mut c_void {
    // It has no heap of its own.
    slot::set_stage(Stage::Ended);
    lower_priority();
    // SAFETY: a name that ends, and fits.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), c"larder-reaper".as_ptr()) };
    let interval = Duration::from_nanos(INTERVAL.load(Ordering::Relaxed));
    while let Some(family) = family() {
        std::thread::sleep(interval);
        if is_alone() {
            break;
        }
        family.reap_unasked();
    }
    null_mut()
}

/// Whether the program's other threads have all ended by `pthread_exit`: the last thread ends the process, so the
/// reaper must not stay.
fn is_alone() -> bool {
    let mut text = [0_u8; 1024];
    // SAFETY: a path that ends, and a buffer of the length that is given; the descriptor is closed once.
    let read = unsafe {
        let file = libc::open(
            c"/proc/self/stat".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        );
        if file < 0 {
            return false;
        }
        let read = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        read
    };
    let text = text.get(..usize::try_from(read).unwrap_or(0));
    text.is_some_and(|text| ended_but_one(text) == Some(true))
}

/// Whether the line says that the first thread has ended and that there is one more.
fn ended_but_one(line: &[u8]) -> Option<bool> {
    // The program's name stands in parentheses and may have any character.
    let end = line.iter().rposition(|&b| b == b')')?;
    let mut fields = core::str::from_utf8(line.get(end + 1..)?)
        .ok()?
        .split_ascii_whitespace();
    let state = fields.next()?;
    // Field 20 of the line; the state is field 3.
    let threads: u32 = fields.nth(16)?.parse().ok()?;
    Some(state == "Z" && threads <= 2)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_number_of_seconds() {
        assert_eq!(reaper_interval("2.5"), Some(Duration::from_millis(2500)));
        for odd in ["", "0", "-1", "1e3", "1s", "90000"] {
            assert_eq!(reaper_interval(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_last_thread_knows_that_it_is_alone() {
        let line = |state: &str, threads: u32| {
            format!("7 (a) b 1) {state} 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 99 1")
        };
        let told = |state, threads| ended_but_one(line(state, threads).as_bytes());
        assert_eq!(told("Z", 2), Some(true));
        assert_eq!(told("Z", 3), Some(false));
        assert_eq!(told("S", 2), Some(false));
        assert_eq!(ended_but_one(b""), None);
        assert_eq!(ended_but_one(b"7 (a) Z 1"), None);
        assert!(!is_alone(), "this thread is not the first");
    }
}
