//! Five thread-local words: the thread's heap for calls that count no bytes, how far the thread is, its heap, the bytes to its next
//! sample, and its heap in hardened mode.
//!
//! Where samples are taken, for a [profile](crate::heap::profile) or for [guard pages](crate::heap::guards), so that the bytes of all
//! allocations are counted, the first word is null. So the fast path of an
//! allocation, which looks at no other word, finds no heap and leaves the call to slower code, which counts; without a profile
//! there is no instruction for it. A free by address looks at the third word, and a sampled block is none that a magazine takes.
//! In hardened mode the third word is null as well, so that every call goes the slow way.
//!
//! They lie in the initial thread-local block, where one load finds them. `thread_local!` would do in a program, but in a
//! shared library it becomes a call, which may itself allocate.

use super::super::Heap;
use super::hardened::Thread as Hardened;

/// How far a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Stage {
    /// It has not allocated yet.
    New = 0,
    /// It has a heap, or is just getting one.
    Started = 1,
    /// It has given its heap back, at its end.
    Ended = 2,
    /// It is making the program's heap.
    Making = 3,
    /// It is inside of the checker or the profile: what is allocated on the way is not checked, and no sample.
    Inside = 4,
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod words {
    use core::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss.larder_thread_0_1, \"awT\", @nobits",
        ".balign 64",
        ".hidden larder_thread_0_1",
        ".globl larder_thread_0_1",
        ".type larder_thread_0_1, @object",
        ".size larder_thread_0_1, 40",
        "larder_thread_0_1: .zero 40",
        ".popsection",
    );

    /// Word `N` of this thread.
    #[inline(always)]
    pub(super) fn get<const N: usize>() -> usize {
        let word: usize;
        // SAFETY: the words exist for every thread that the C library started, zero at first, and only their thread
        // uses them.
        unsafe {
            asm!(
                "mov {word}, qword ptr [rip + larder_thread_0_1@GOTTPOFF]",
                "mov {word}, qword ptr fs:[{word} + {at}]",
                word = out(reg) word,
                at = const N * 8,
                options(nostack, preserves_flags, readonly, pure),
            );
        }
        word
    }

    /// Where the words are.
    #[inline(always)]
    pub(super) fn all() -> *mut usize {
        let words: *mut usize;
        // SAFETY: as in `get`. The first word of a thread's block is its own address.
        unsafe {
            asm!(
                "mov {words}, qword ptr fs:[0]",
                "add {words}, qword ptr [rip + larder_thread_0_1@GOTTPOFF]",
                words = out(reg) words,
                options(nostack, readonly, pure),
            );
        }
        words
    }

    #[inline(always)]
    pub(super) fn set<const N: usize>(value: usize) {
        // SAFETY: as in `get`.
        unsafe {
            asm!(
                "mov {at}, qword ptr [rip + larder_thread_0_1@GOTTPOFF]",
                "mov qword ptr fs:[{at} + {word}], {value}",
                at = out(reg) _,
                value = in(reg) value,
                word = const N * 8,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
mod words {
    use core::cell::Cell;

    std::thread_local! {
        static WORDS: [Cell<usize>; 5] = const { [const { Cell::new(0) }; 5] };
    }

    pub(super) fn all() -> *mut usize {
        WORDS.with(|words| words.as_ptr().cast::<usize>().cast_mut())
    }

    #[inline(always)]
    pub(super) fn get<const N: usize>() -> usize {
        WORDS.with(|words| words[N].get())
    }

    pub(super) fn set<const N: usize>(value: usize) {
        WORDS.with(|words| words[N].set(value));
    }
}

const QUICK: usize = 0;
const STAGES: usize = 1;
const HEAP: usize = 2;
const GAP: usize = 3;
const HARDENED: usize = 4;

/// This thread's heap. It lives as long as the word says so, and only the thread changes the word.
#[inline(always)]
pub(super) fn heap() -> Option<&'static Heap> {
    of::<HEAP>()
}

/// The same for an allocation, or a free by size, that nothing counts or looks at: none where there are samples.
#[inline(always)]
pub(super) fn quick_heap() -> Option<&'static Heap> {
    of::<QUICK>()
}

#[inline(always)]
fn of<const N: usize>() -> Option<&'static Heap> {
    let at = words::get::<N>() as *const Heap;
    // SAFETY: null, or what `set_heap` stored, alive until it stores something else; the references that this gives out
    // do not leave the functions of this module's parent, which store nothing else while they have one.
    unsafe { at.as_ref() }
}

/// # Safety
/// The heap is this thread's alone until the words are changed.
pub(super) unsafe fn set_heap(heap: Option<core::ptr::NonNull<Heap>>) {
    let heap = heap.map_or(0, |heap| heap.as_ptr() as usize);
    words::set::<HEAP>(heap);
    let counted = super::countdown::is_on();
    words::set::<QUICK>(if counted { 0 } else { heap });
}

/// This thread's heap, and the place of its [gap].
#[inline(always)]
pub(super) fn counted() -> Option<(&'static Heap, &'static core::cell::Cell<isize>)> {
    let words = words::all();
    // SAFETY: the words live as long as the thread, to which the references stay; and as in `of`.
    unsafe {
        let heap = words.add(HEAP).read() as *const Heap;
        Some((heap.as_ref()?, &*words.add(GAP).cast()))
    }
}

/// Bytes to the next sample. 0 only where none was [set](set_gap); not above 0 where a sample is due.
#[inline(always)]
pub(super) fn gap() -> isize {
    words::get::<GAP>() as isize
}

#[inline(always)]
pub(super) fn set_gap(bytes: isize) {
    words::set::<GAP>(bytes as usize);
}

/// This thread's heap and what it keeps from use, in hardened mode: there [`heap`] finds nothing, so that every call goes the slow
/// way.
pub(super) fn hardened() -> Option<&'static Hardened> {
    let at = words::get::<HARDENED>() as *const Hardened;
    // SAFETY: as in `heap`.
    unsafe { at.as_ref() }
}

/// # Safety
/// As for [`set_heap`].
pub(super) unsafe fn set_hardened(thread: Option<core::ptr::NonNull<Hardened>>) {
    words::set::<HARDENED>(thread.map_or(0, |thread| thread.as_ptr() as usize));
}

/// The bits of the second word that are the stage; above them is what a new thread has freed.
const STAGE: usize = 7;

/// A thread that has freed so much without having allocated anything frees what others allocate, and needs a heap for that.
const FREES: usize = 16;

/// A new thread frees something: true once, when it has done that [often](FREES).
pub(super) fn has_freed_often() -> bool {
    let word = words::get::<STAGES>();
    let count = word / (STAGE + 1);
    let counts = word & STAGE == Stage::New as usize && count < FREES;
    if counts {
        words::set::<STAGES>(word + STAGE + 1);
    }
    counts && count + 1 == FREES
}

pub(super) fn stage() -> Stage {
    match words::get::<STAGES>() & STAGE {
        0 => Stage::New,
        1 => Stage::Started,
        2 => Stage::Ended,
        3 => Stage::Making,
        _ => Stage::Inside,
    }
}

pub(super) fn set_stage(stage: Stage) {
    words::set::<STAGES>(stage as usize);
}

#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests {
    use super::super::front::{alloc, free, free_sized};
    use super::super::{HeapMode, Larder};
    use super::*;

    /// Frees so many blocks in a thread that allocates none. Has it a heap then?
    fn heap_after(frees: usize, sized: bool) -> bool {
        let blocks: Vec<usize> = (0..frees).map(|_| alloc(64, 16) as usize).collect();
        let thread = std::thread::spawn(move || {
            for at in blocks {
                let at = at as *mut u8;
                // SAFETY: taken above with this size, put once.
                unsafe {
                    if sized {
                        free_sized(at, 64, 16);
                    } else {
                        free(at);
                    }
                }
            }
            heap().is_some()
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_thread_that_only_frees_gets_a_heap_after_a_while() {
        assert!(!heap_after(1, false));
        assert_eq!(Larder::stats().mode, Some(HeapMode::PerThread));
        for sized in [false, true] {
            assert!(!heap_after(FREES - 1, sized));
            assert!(heap_after(FREES, sized) && heap_after(1000, sized));
        }
    }
}
