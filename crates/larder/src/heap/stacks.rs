//! Stacks of the calls that allocated and freed: each is kept once, however many blocks it has.
//!
//! To unwind takes some thousand instructions a frame, and most calls come the way that an earlier one came. So what an unwinding
//! found is kept by the place on the stack where it began, together with the words of the stack in which the return addresses
//! stood. Where all of these are the same again, innermost first, so are the calls: each call's place and code say where the next
//! return address stands.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use super::table;
use crate::os::{MetaRegion, OsError, System, ZeroIsValid};

/// Our own frames that are looked past.
const OWN_FRAMES: usize = 12;
/// Return addresses that one walk can be known by again.
const MOST_WORDS: usize = 32 + OWN_FRAMES;
const FIRST_BUCKETS: usize = 1 << 14;
/// Most frames of the stack of a sample.
pub(super) const SAMPLED: usize = 32;

/// Return addresses, the innermost first, `N` at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frames<const N: usize> {
    len: usize,
    at: [usize; N],
}

// SAFETY: numbers.
unsafe impl<const N: usize> ZeroIsValid for Frames<N> {}

impl<const N: usize> Frames<N> {
    pub(super) const NONE: Self = Self { len: 0, at: [0; N] };

    /// Without the calls that lead from `ip` here: those of a signal's delivery.
    pub(super) fn from(mut self, ip: usize) -> Self {
        if let Some(first) = self.as_slice().iter().position(|&at| at == ip) {
            self.at.copy_within(first..self.len, 0);
            self.len -= first;
            // The others are return addresses, which lie behind their call. This one is the instruction itself.
            self.at[0] = ip + 1;
        }
        self
    }

    pub(super) fn as_slice(&self) -> &[usize] {
        &self.at[..self.len]
    }
}

// The unwinder's own, which the standard library links.
unsafe extern "C" {
    fn _Unwind_Backtrace(
        trace: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

/// Return addresses and where they stand, the innermost first.
#[derive(Clone, Copy)]
struct Words {
    len: usize,
    at: [(usize, usize); MOST_WORDS],
}

struct Walk<const N: usize> {
    frames: Frames<N>,
    words: Words,
    /// Where the walk begins: words below are the unwinder's.
    from: usize,
    /// Some return address stands where this cannot be seen.
    lost: bool,
    most: usize,
    /// The code of this library, when it is one: its frames are left out.
    own: (usize, usize),
    skipped: usize,
}

extern "C" fn each<const N: usize>(context: *mut c_void, walk: *mut c_void) -> c_int {
    /// `_URC_NO_REASON` and `_URC_NORMAL_STOP`.
    const GO_ON: c_int = 0;
    const STOP: c_int = 4;
    // SAFETY: `capture` passed it, and waits for the walk's end.
    let walk = unsafe { &mut *walk.cast::<Walk<N>>() };
    // SAFETY: the unwinder's context, during its call.
    let ip = unsafe { _Unwind_GetIP(context) };
    if ip == 0 {
        return STOP;
    }
    // SAFETY: as above.
    let word = unsafe { _Unwind_GetCFA(context) }.wrapping_sub(size_of::<usize>());
    if word > walk.from {
        walk.keep(word, ip);
    }
    let own = (walk.own.0..walk.own.1).contains(&ip);
    if walk.frames.len == 0 && own && walk.skipped < OWN_FRAMES {
        walk.skipped += 1;
        return GO_ON;
    }
    walk.frames.at[walk.frames.len] = ip;
    walk.frames.len += 1;
    if walk.frames.len < walk.most {
        GO_ON
    } else {
        STOP
    }
}

impl<const N: usize> Walk<N> {
    fn keep(&mut self, word: usize, ip: usize) {
        // SAFETY: above this call's frame on the same stack, below the frame that the unwinder has reached.
        let there = cfg!(target_arch = "x86_64")
            && word.is_multiple_of(size_of::<usize>())
            && unsafe { (word as *const usize).read_volatile() } == ip;
        match self.words.at.get_mut(self.words.len) {
            Some(place) if there => {
                *place = (word, ip);
                self.words.len += 1;
            }
            _ => self.lost = true,
        }
    }
}

/// The stack of this call, at most `most` frames, without those in `own`. It takes the loader's lock where the C
/// library is old: so the caller holds no lock of the heap.
#[inline(never)]
pub(super) fn capture<const N: usize>(
    most: usize,
    own: (usize, usize),
    walks: Option<&Walks<N>>,
) -> Frames<N> {
    let most = most.min(N);
    if most == 0 || cfg!(miri) {
        return Frames::NONE;
    }
    let mark = 0_u8;
    let from = core::hint::black_box(&raw const mark) as usize;
    let mut frames = Frames::NONE;
    if walks.is_some_and(|walks| walks.find(from, most, &mut frames)) {
        return frames;
    }
    let mut walk = Walk {
        frames,
        words: Words {
            len: 0,
            at: [(0, 0); MOST_WORDS],
        },
        from,
        lost: false,
        most,
        own,
        skipped: 0,
    };
    // SAFETY: the function keeps to what the unwinder wants, and the argument lives until it returns.
    unsafe { _Unwind_Backtrace(each::<N>, (&raw mut walk).cast()) };
    if let Some(walks) = walks
        && !walk.lost
        && walk.words.len > 0
    {
        walks.keep(from, &walk);
    }
    walk.frames
}

/// Stacks of samples, without the frames of this library where it is one.
#[derive(Debug)]
pub(super) struct Sampler {
    own: (usize, usize),
    /// Frames that are kept: none before the unwinder is ready.
    most: AtomicUsize,
}

impl Sampler {
    pub(super) fn new() -> Self {
        let own = own_module();
        // A program is linked to the unwinder. A library that is preloaded loads it, when it is ready for that.
        let most = if own == (0, 0) { usize::MAX } else { 0 };
        Self {
            own,
            most: AtomicUsize::new(most),
        }
    }

    /// There are stacks from now on. The first walk may load a library, which later waits for other threads.
    pub(super) fn begin(&self) {
        let _ = capture::<SAMPLED>(1, self.own, None);
        self.most.store(usize::MAX, Ordering::Relaxed);
    }

    /// The stack of this call. Allocates nothing, but the unwinder may.
    pub(super) fn stack(&self) -> Frames<SAMPLED> {
        capture(self.most.load(Ordering::Relaxed), self.own, None)
    }
}

/// Walks that begin at places with the same hash.
const WAYS: usize = 8;
const SETS: usize = 512;

#[derive(Clone, Copy)]
struct Way<const N: usize> {
    /// Where the walk began; 0 where there is none.
    from: usize,
    most: usize,
    words: Words,
    frames: Frames<N>,
}

/// All zero is an empty one.
struct Set<const N: usize> {
    /// A thread looks into it, or writes. Others do not wait: they walk.
    taken: AtomicBool,
    next: UnsafeCell<usize>,
    ways: UnsafeCell<[Way<N>; WAYS]>,
}

/// What walks found. Where a thread that a forked child does not have was looking, the child walks.
#[derive(Debug)]
pub(super) struct Walks<const N: usize>(MetaRegion);

impl<const N: usize> Walks<N> {
    #[cfg(feature = "debug-heap")]
    pub(super) fn new(system: &Arc<dyn System>) -> Result<Self, OsError> {
        MetaRegion::new(
            system.clone(),
            SETS * size_of::<Set<N>>(),
            align_of::<Set<N>>(),
        )
        .map(Self)
    }

    /// Something with the set of a place, unless another thread has it.
    fn with<T>(
        &self,
        from: usize,
        f: impl FnOnce(&mut usize, &mut [Way<N>; WAYS]) -> T,
    ) -> Option<T> {
        let sets: NonNull<Set<N>> = self.0.span().at.cast();
        // SAFETY: there are so many; all zero is a set.
        let set = unsafe { sets.add(mix(from as u64) as usize % SETS).as_ref() };
        if set.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: the flag is this call's.
        let result = unsafe { f(&mut *set.next.get(), &mut *set.ways.get()) };
        set.taken.store(false, Ordering::Release);
        Some(result)
    }

    /// Writes what a walk from here found, if one is known.
    fn find(&self, from: usize, most: usize, into: &mut Frames<N>) -> bool {
        let found = self.with(from, |_, ways| {
            let known = ways.iter().find(|way| {
                way.from == from
                    && way.most == most
                    // SAFETY: the first word belongs to the caller's frame, as it did then; each that is the same says that the
                    // next one belongs to a frame of this stack.
                    && way.words.at[..way.words.len].iter().all(|&(word, ip)| unsafe {
                        (word as *const usize).read_volatile() == ip
                    })
            });
            // No more than there are: most stacks are short.
            known.is_some_and(|way| {
                into.len = way.frames.len;
                into.at[..into.len].copy_from_slice(way.frames.as_slice());
                true
            })
        });
        found.unwrap_or(false)
    }

    fn keep(&self, from: usize, walk: &Walk<N>) {
        self.with(from, |next, ways| {
            ways[*next % WAYS] = Way {
                from,
                most: walk.most,
                words: walk.words,
                frames: walk.frames,
            };
            *next += 1;
        });
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry<const N: usize> {
    frames: Frames<N>,
    hash: u64,
}

// SAFETY: numbers.
unsafe impl<const N: usize> ZeroIsValid for Entry<N> {}

impl<const N: usize> table::Entry for Entry<N> {
    fn hash(&self) -> Option<u64> {
        Some(self.hash)
    }
}

/// All stacks. Number 0 is no stack.
#[derive(Debug)]
pub(super) struct Stacks<const N: usize> {
    table: table::Table<Entry<N>>,
    /// Highest number.
    most: u32,
}

impl<const N: usize> Stacks<N> {
    /// At most so many stacks.
    pub(super) fn new(system: &Arc<dyn System>, most: u32) -> Result<Self, OsError> {
        let table = table::Table::new(system, FIRST_BUCKETS)?;
        Ok(Self { table, most })
    }

    /// The number of a stack; 0 when it is empty or there is no room for it.
    pub(super) fn number(&mut self, frames: &Frames<N>) -> u32 {
        if frames.len == 0 {
            return 0;
        }
        let hash = frames
            .as_slice()
            .iter()
            .fold(0_u64, |h, &ip| mix(h ^ ip as u64));
        let known = self.table.chain(hash).find(|&number| {
            let entry = self.table.get(number);
            entry.hash == hash && entry.frames.as_slice() == frames.as_slice()
        });
        known.unwrap_or_else(|| match self.table.reserve() {
            Ok(()) if *self.table.numbers().end() < self.most => self.table.add(Entry {
                frames: *frames,
                hash,
            }),
            _ => 0,
        })
    }

    /// All numbers that were given out.
    pub(super) fn numbers(&self) -> core::ops::RangeInclusive<u32> {
        self.table.numbers()
    }

    pub(super) fn frames(&self, number: u32) -> Frames<N> {
        match number {
            0 => Frames::NONE,
            number => self.table.get(number).frames,
        }
    }
}

/// The range of code and data of the shared library that this is in; nothing when it is the program itself, whose
/// frames are of interest.
pub(super) fn own_module() -> (usize, usize) {
    struct Find {
        inside: usize,
        range: (usize, usize),
    }
    unsafe extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        find: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader's description of a module, and what `own_module` passed.
        let (info, find) = unsafe { (&*info, &mut *find.cast::<Find>()) };
        // SAFETY: the loader says how many headers there are.
        let headers =
            unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let (mut low, mut high) = (usize::MAX, 0);
        for header in headers.iter().filter(|h| h.p_type == libc::PT_LOAD) {
            let from = (info.dlpi_addr + header.p_vaddr) as usize;
            low = low.min(from);
            high = high.max(from + header.p_memsz as usize);
        }
        if !(low..high).contains(&find.inside) {
            return 0;
        }
        // SAFETY: a name of the loader's, or null. The program itself has an empty one.
        let named = !info.dlpi_name.is_null() && unsafe { *info.dlpi_name } != 0;
        if named {
            find.range = (low, high);
        }
        1
    }
    let mut find = Find {
        inside: own_module as *const () as usize,
        range: (0, 0),
    };
    // SAFETY: the function keeps to what the loader wants, and the argument lives until it returns.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut find).cast()) };
    find.range
}

/// splitmix64's finish: every bit depends on every bit.
pub(super) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests {
    use super::*;
    use crate::os::testing::system;

    #[test]
    fn equal_stacks_have_one_number() {
        let mut stacks = Stacks::<8>::new(&system(), 100_001).unwrap();
        let frames: Frames<8> = capture(8, (0, 0), None);
        let number = stacks.number(&frames);
        assert_ne!(number, 0);
        assert_eq!(stacks.number(&frames), number);
        let other = stacks.number(&capture(8, (0, 0), None));
        assert_ne!(other, number);
        assert_eq!(stacks.frames(other).as_slice().len(), 8);
        assert_eq!(stacks.number(&Frames::NONE), 0);
        assert_eq!(stacks.number(&capture(0, (0, 0), None)), 0);
        let made = |ip: usize| {
            let mut frames = Frames::NONE;
            (frames.len, frames.at[0]) = (1, ip);
            frames
        };
        let numbers: Vec<u32> = (1..100_000).map(|ip| stacks.number(&made(ip))).collect();
        assert!(numbers.iter().all(|&number| number != 0));
        assert_eq!(stacks.number(&frames), number);
        for (ip, &number) in (1..).zip(&numbers) {
            assert_eq!(stacks.number(&made(ip)), number);
        }
        assert_eq!(*stacks.numbers().end() as usize, 2 + numbers.len());
        assert_eq!(stacks.number(&made(usize::MAX)), 0, "there is no room");
        let longest = stacks.table.longest();
        // Of 8 bytes each, so three lines of the caches.
        assert!(longest <= 24, "a search looks at {longest} places");
        assert!(capture::<8>(2, (0, 0), None).as_slice().len() == 2);
    }
}
