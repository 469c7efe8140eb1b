//! The one heap of the program: how it comes to be, and how threads get theirs.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use core::time::Duration;

use super::hardened::{self, Hardening};
use super::mode::HeapMode;
use super::slot::{self, Stage};
use super::{bootstrap, checked, countdown, guarded, misuse, profiled, reaper, retention};
use crate::heap::{Checker, Classes, Heap};
use crate::objects::{Family, RawCache};
use crate::os::errno::KeptErrno;
use crate::os::{
    HugePageSize, Linux, System, counts_all_memory, fork, physical_memory, turns, wait_turn,
};
use crate::pages::{ClusterSize, PagePool};

/// Addresses for so many times the machine's memory: programs ask for more than they touch.
const OVERSIZE: usize = 16;
/// The same where what is asked for counts. The tables of so many addresses would count, too: half a thousandth of them.
const COUNTED_OVERSIZE: usize = 2;
const LEAST_RESERVE: usize = 1 << 30;
const HUGE: usize = HugePageSize::Mib2.bytes();
/// Pages that are populated at once. Stated, because to choose it one would have to read two dozen files; small, since a
/// program may end before it needs more.
const CLUSTER_PAGES: usize = 34;

/// Smaller sizes that are tried in turn when the system grants less.
const TRIALS: usize = 4;

/// Threads whose heaps have magazines from the first call on. Of many threads most rest, or end soon.
const FEW: u32 = 4;
touched_at_start! {
    /// Threads that have heaps. A child of a fork counts its parent's, too.
    static THREADS: AtomicU32 = AtomicU32::new(0);
}

/// How often a thread looks whether the one that makes the heap has finished, which takes a millisecond.
const PATIENCE: u32 = turns(Duration::from_secs(2));

#[derive(Debug)]
pub(super) struct Global {
    pub(super) classes: Classes,
    pub(super) mode: HeapMode,
    /// The threads' heaps.
    heaps: RawCache,
    threads: Threads,
    /// What surrounds blocks and keeps freed ones, in hardened mode.
    pub(super) hardening: Option<Hardening>,
}

/// What threads allocate from.
#[derive(Debug)]
enum Threads {
    /// Heaps of their own; the key's destructor runs at a thread's end.
    Heaps(libc::pthread_key_t),
    /// The CPUs' stocks.
    Cpus,
    /// What checks every block.
    Checked(Box<dyn Checker>),
}

/// What a thread without a heap allocates from.
pub(super) enum Source<'a> {
    Heap(&'static Heap),
    Cpus,
    Checked(&'a dyn Checker),
}

struct Place(UnsafeCell<MaybeUninit<Global>>);

// SAFETY: written once, by the thread that holds the claim, before `GLOBAL` points to it; then only shared.
unsafe impl Sync for Place {}

touched_at_start! {
    static PLACE: Place = Place(UnsafeCell::new(MaybeUninit::uninit()));
    static GLOBAL: AtomicPtr<Global> = AtomicPtr::new(null_mut());
    /// Fork generation of the process whose thread is making it; 0 when no thread is.
    static CLAIM: AtomicU32 = AtomicU32::new(0);
}

/// The heap, if it is there.
#[inline]
pub(super) fn global() -> Option<&'static Global> {
    // SAFETY: null, or the place, which was written before.
    unsafe { GLOBAL.load(Ordering::Acquire).as_ref() }
}

/// The heap and its hardening, in hardened mode. The heap is made if it is not there.
#[inline]
pub(super) fn hardened() -> Option<(&'static Global, &'static Hardening)> {
    let global = global().or_else(global_or_make)?;
    Some((global, global.hardening.as_ref()?))
}

/// The heap, made if it is not there; a thread that comes while another one makes it waits. `None` on the way of making
/// it, further up the stack; and when there is no memory for it.
#[cold]
pub(super) fn global_or_make() -> Option<&'static Global> {
    if slot::stage() == Stage::Making {
        return global();
    }
    // A child that cannot tell that it is one would wait for a thread that it does not have.
    fork::install();
    for turn in 0..PATIENCE {
        if let Some(global) = global() {
            return Some(global);
        }
        let now = fork::generation();
        let seen = CLAIM.load(Ordering::Relaxed);
        // A claim of another generation is that of a thread which this child of a fork does not have.
        if seen != now
            && CLAIM
                .compare_exchange(seen, now, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        {
            return make_claimed();
        }
        wait_turn(turn);
    }
    None
}

/// Makes the heap, with the claim in hand.
fn make_claimed() -> Option<&'static Global> {
    let stage = slot::stage();
    slot::set_stage(Stage::Making);
    // The thread that had the claim may have finished in between.
    if global().is_none()
        && let Some(made) = make_or_pause()
    {
        // SAFETY: the claim is this thread's, and no thread reads the place before the pointer is stored.
        let at = unsafe { (*PLACE.0.get()).write(made) };
        // Before a thread has a heap: its words depend on it.
        let checked = at.checker().is_some() || at.hardening.is_some();
        countdown::begin(profiled::begin(checked), guarded::begin(checked));
        GLOBAL.store(at, Ordering::Release);
        match at.checker() {
            None => {
                reaper::serve(at.classes.family());
                if at.hardening.is_some() {
                    hardened::begin();
                }
            }
            #[cfg(feature = "debug-heap")]
            Some(checker) => super::debugged::begin(checker),
            #[cfg(not(feature = "debug-heap"))]
            Some(_) => {}
        }
    }
    CLAIM.store(0, Ordering::Release);
    slot::set_stage(stage);
    global()
}

touched_at_start! {
    /// Calls that are let pass before the heap is tried again: twice as many after each failure, since each trial uses some of
    /// the buffer of the start for good.
    static PAUSE_CALLS: AtomicU32 = AtomicU32::new(0);
}
static NEXT_PAUSE: AtomicU32 = AtomicU32::new(1);

/// Makes the heap, unless that failed a short while ago. The claim is this thread's.
fn make_or_pause() -> Option<Global> {
    let pause = PAUSE_CALLS.load(Ordering::Relaxed);
    if pause > 0 {
        PAUSE_CALLS.store(pause - 1, Ordering::Relaxed);
        return None;
    }
    // Where the buffer ends on the way, the standard library would end the process.
    if !bootstrap::allows_trial() {
        return None;
    }
    let made = make();
    if made.is_none() {
        let next = NEXT_PAUSE.load(Ordering::Relaxed);
        PAUSE_CALLS.store(next, Ordering::Relaxed);
        NEXT_PAUSE.store(next.saturating_mul(2), Ordering::Relaxed);
    }
    made
}

fn make() -> Option<Global> {
    let (mode, behind) = HeapMode::chosen();
    let hardening = Hardening::chosen();
    // What it keeps from use is a thread's.
    let mode = hardening.as_ref().map_or(mode, |_| HeapMode::PerThread);
    let on_slow = reaper::chosen();
    let (decay, cached) = retention::chosen();
    let times = if counts_all_memory() {
        COUNTED_OVERSIZE
    } else {
        OVERSIZE
    };
    // Whole huge pages: the kernel aligns these without two calls more.
    let most = physical_memory().saturating_mul(times) / HUGE * HUGE;
    let most = most.max(LEAST_RESERVE);
    let build = |reserve| {
        let mut pages = PagePool::builder()
            .ignore_environment()
            .mode(behind)
            .cluster(ClusterSize::pages(CLUSTER_PAGES).ok()?)
            .reserve_bytes(reserve);
        let mut family = Family::builder()
            .mode(behind)
            .on_misuse(misuse::met)
            .on_slow(on_slow)
            .marks();
        if let Some(decay) = decay {
            pages = pages.decay(decay);
            family = family.interval(decay);
        }
        if let Some(cached) = cached {
            family = family.cached_bytes(cached);
        }
        family.pages(pages).build().ok()
    };
    // What is granted alone may not be granted together with all the rest.
    let mut family = build(most);
    let mut bytes = most;
    for _ in 0..TRIALS {
        if family.is_none() {
            bytes = granted(bytes / 2)?;
            family = build(bytes);
        }
    }
    let family = family?;
    let thread = match hardening {
        Some(_) => Layout::new::<hardened::Thread>(),
        None => Layout::new::<Heap>(),
    };
    let heaps = RawCache::builder(thread)
        .name("threads")
        .build(&family)
        .ok()?;
    let (threads, mode) = match checked::make(&family) {
        Some(checker) => (Threads::Checked(checker), mode),
        // Without a key a thread's end would go unnoticed. Then the CPUs' stocks are used, under locks, and the mode says so.
        None if mode == HeapMode::PerThread => match make_key() {
            Some(key) => (Threads::Heaps(key), mode),
            None => (Threads::Cpus, HeapMode::Locked),
        },
        None => (Threads::Cpus, mode),
    };
    Some(Global {
        classes: Classes::plain(&family, false),
        mode,
        heaps,
        hardening: hardening.filter(|_| !matches!(threads, Threads::Checked(_))),
        threads,
    })
}

fn make_key() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: the key is written; the destructor is a plain function.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(end_thread)) };
    (made == 0).then_some(key)
}

/// Addresses that the system grants now, at most `most`, half of it, and so on. That is tried with a bare mapping, which
/// takes nothing of the buffer of the start.
fn granted(most: usize) -> Option<usize> {
    let sizes = core::iter::successors(Some(most), |bytes| Some(bytes / 2));
    sizes
        .take_while(|&bytes| bytes >= LEAST_RESERVE / 64)
        .find(|&bytes| {
            // Beside the pages lie addresses for metadata, and memory for the account of pages and for magazines.
            let beside = bytes / 8 + bytes / 16 + (24 << 20);
            let memory = bytes / 512 + (8 << 20);
            Linux.reserve(bytes + beside, 1).is_ok_and(|span| {
                // SAFETY: just reserved, and known to no other code. A refusal to release leaks addresses.
                unsafe {
                    let granted = Linux.commit(span.part(0, memory)).is_ok();
                    let _ = Linux.release(span);
                    granted
                }
            })
        })
}

impl Global {
    /// What checks every block, if they are checked.
    pub(super) fn checker(&self) -> Option<&dyn Checker> {
        match &self.threads {
            Threads::Checked(checker) => Some(checker.as_ref()),
            _ => None,
        }
    }

    /// What this thread allocates from, which has no heap: it is given one if it may have it.
    #[cold]
    pub(super) fn source(&self) -> Source<'_> {
        match &self.threads {
            Threads::Heaps(key) => match slot::hardened() {
                Some(thread) => Source::Heap(&thread.heap),
                None => self.start_thread(*key).map_or(Source::Cpus, Source::Heap),
            },
            Threads::Cpus => Source::Cpus,
            // What it allocates itself is not checked.
            Threads::Checked(_) if slot::stage() == Stage::Inside => Source::Cpus,
            Threads::Checked(checker) => Source::Checked(checker.as_ref()),
        }
    }

    /// Gives this thread a heap. What is allocated on the way uses the CPUs' stocks.
    fn start_thread(&self, key: libc::pthread_key_t) -> Option<&'static Heap> {
        if slot::stage() != Stage::New {
            return None;
        }
        slot::set_stage(Stage::Started);
        let Ok(at) = self.heaps.get() else {
            slot::set_stage(Stage::New);
            return None;
        };
        let at = at.cast::<Heap>();
        let others = THREADS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: an object of the right layout that belongs to this thread alone.
        unsafe {
            match self.hardening {
                Some(_) => at.cast().write(hardened::Thread::new(&self.classes)),
                None if others < FEW => at.write(Heap::new(&self.classes)),
                None => at.write(Heap::sparing(&self.classes)),
            }
        }
        // For some keys the C library allocates.
        let _errno = KeptErrno::new();
        // SAFETY: the key exists. A refusal (no memory) means that the heap must not be, since it would never be given back.
        if unsafe { libc::pthread_setspecific(key, at.as_ptr().cast()) } != 0 {
            // SAFETY: written above, and known to no other code.
            unsafe { self.end(at) };
            slot::set_stage(Stage::New);
            return None;
        }
        if self.hardening.is_some() {
            // SAFETY: this thread's alone until `end_thread`.
            unsafe { slot::set_hardened(Some(at.cast())) };
            return slot::hardened().map(|thread| &thread.heap);
        }
        // SAFETY: as above.
        unsafe { slot::set_heap(Some(at)) };
        slot::heap()
    }

    /// # Safety
    /// The heap was written by `start_thread`, and is not used any more.
    unsafe fn end(&self, heap: NonNull<Heap>) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe {
            heap.drop_in_place();
            self.heaps.put(heap.cast());
        }
    }
}

/// Gives a thread's heap back at its end. What other destructors allocate and free afterwards uses the CPUs' stocks.
extern "C" fn end_thread(heap: *mut c_void) {
    // SAFETY: the word is this thread's; the heap is not used from here on.
    unsafe { slot::set_heap(None) };
    hardened::end_thread();
    slot::set_stage(Stage::Ended);
    if let (Some(global), Some(heap)) = (global(), NonNull::new(heap.cast::<Heap>())) {
        // SAFETY: set by `start_thread`, and out of the word.
        unsafe { global.end(heap) };
    }
}
