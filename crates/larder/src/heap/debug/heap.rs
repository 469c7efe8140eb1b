//! The debug heap: every block is recorded, surrounded, filled, and looked at again.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use std::sync::Arc;

use super::incident::{Incident, Kind};
use super::inject::{Inject, is_guarded};
use super::inner::{Evicted, Inner, Touched};
use super::leaks::Here;
use super::options::Options;
use super::records::{self, Record};
use super::storage::Storage;
use super::{Frames, MOST_FRAMES, symbol};
use crate::heap::pattern::MOST_FILLED;
use crate::heap::stacks::{Walks, capture, own_module};
use crate::heap::{AllocError, Call, Checker, Claim, Classes, Origin, Outcome};
use crate::objects::ObjectError;
use crate::os::forked::ForkLock;
use crate::os::lock::order::sleeps;
use crate::os::{OsError, System, fork};

/// A block in use, as [`Classes::for_each_live`] shows it.
///
/// ```
/// use std::alloc::Layout;
/// use larder::{heap::{Classes, debug::{Options, Origin}}, objects::Family};
/// let classes = Classes::checked(&Family::new()?, Options::default())?;
/// classes.alloc(Layout::new::<[u64; 4]>())?;
/// classes.for_each_live(|block| {
///     assert_eq!((block.size, block.align, block.number), (32, 8, 1));
///     assert_eq!(block.origin, Origin::Malloc);
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveBlock {
    /// Address of its first byte.
    pub address: usize,
    /// Bytes that were asked for.
    pub size: usize,
    /// Alignment that was asked for.
    pub align: usize,
    /// The function that it came from.
    pub origin: Origin,
    /// Which allocation of the heap it was, from 1 on.
    pub number: u64,
    /// The thread that allocated it, by the system's number.
    pub thread: u32,
}

/// One lock around everything: a program that is debugged may be slow.
#[derive(Debug)]
pub(crate) struct DebugHeap {
    pub(super) options: Options,
    inject: Inject,
    /// The code of this library.
    own: (usize, usize),
    walks: Option<Walks<MOST_FRAMES>>,
    pub(super) storage: Storage,
    pub(super) inner: ForkLock<Inner>,
    /// Of the process that made it.
    generation: u32,
}

impl DebugHeap {
    /// A debug heap whose blocks come from `classes`, which nothing else uses.
    ///
    /// # Errors
    /// The system's refusal of memory for the records.
    pub(crate) fn new(
        classes: Classes,
        system: Arc<dyn System>,
        mut options: Options,
    ) -> Result<Self, OsError> {
        options.bound();
        Ok(Self {
            options,
            inject: Inject::new(),
            own: own_module(),
            // Without memory for them each stack is walked.
            walks: (options.frames > 0)
                .then(|| Walks::new(&system).ok())
                .flatten(),
            inner: ForkLock::new(Inner::new(&system, options)?)?,
            storage: Storage::new(classes, system, options.redzone),
            generation: fork::generation(),
        })
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(super) fn here(&self) -> Frames {
        capture(self.options.frames, self.own, self.walks.as_ref())
    }

    /// Looks at the redzones of all live blocks and at all freed blocks that are kept. Returns how many were damaged.
    pub(crate) fn check(&self) -> usize {
        let mut bad = 0;
        let mut from = 0;
        loop {
            // The lock is not held while a message is written.
            let (next, incident) = self.inner.lock().check_from(&self.storage, from);
            let Some(incident) = incident else {
                return bad;
            };
            bad += 1;
            from = next;
            self.meet(&incident);
        }
    }

    /// Shows every live block. None is shown twice; what comes and goes meanwhile may be missed.
    pub(crate) fn for_each_live(&self, f: &mut dyn FnMut(LiveBlock)) {
        let mut from = 0;
        loop {
            let found = self
                .inner
                .lock()
                .next(from, |record| record.state == records::LIVE);
            let Some((next, record)) = found else {
                return;
            };
            from = next;
            f(LiveBlock {
                address: record.at,
                size: record.size,
                align: record.asked_align(),
                origin: record.origin,
                number: record.number,
                thread: record.alloc_thread,
            });
        }
    }

    /// Something under the lock; `None` when the lock cannot be had for a second, which is what happens where its holder
    /// is interrupted by the caller.
    pub(super) fn patiently<T>(&self, f: impl FnOnce(&mut Inner) -> T) -> Option<T> {
        for _ in 0..1000 {
            if let Some(mut inner) = self.inner.try_lock() {
                return Some(f(&mut inner));
            }
            sleeps("the lock of a debug heap");
            std::thread::sleep(core::time::Duration::from_millis(1));
        }
        None
    }

    /// A fault at an address, by the instruction at `ip`: reports it if a guard page was touched. Whether the instruction can
    /// be tried again. If this thread has the lock, it faulted inside of the heap: it does not get the lock again, and nothing
    /// is reported.
    pub(crate) fn touched(&self, address: usize, ip: usize) -> bool {
        let open = self.options.keep_going;
        match self.patiently(|inner| inner.touched(&self.storage, address, open)) {
            Some(Touched::Guard(incident)) => {
                let here = self.here().from(ip);
                self.meet(&Incident { here, ..incident });
                true
            }
            Some(Touched::Open) => true,
            Some(Touched::Foreign) | None => false,
        }
    }

    /// Whether this process is a child of the one that made the heap.
    pub(super) fn is_forked(&self) -> bool {
        fork::generation() != self.generation
    }

    /// At the program's end: what is damaged, and what leaked.
    pub(crate) fn at_exit(&self, here: &Here) {
        self.check();
        if !self.options.leaks {
            return;
        }
        let lost = self.leaks(here).is_some_and(|stats| stats.blocks > 0);
        if lost && self.options.leak_code != 0 {
            // SAFETY: the exit handlers have run; what the program printed goes out, and the process ends.
            unsafe {
                libc::fflush(core::ptr::null_mut());
                libc::_exit(i32::from(self.options.leak_code));
            }
        }
    }

    /// A block, if possible in memory with room for a larger one.
    fn alloc_with_room(
        &self,
        layout: Layout,
        room: Option<Layout>,
        zeroed: bool,
        origin: Origin,
    ) -> Result<NonNull<u8>, AllocError> {
        let none = || refused(layout.size());
        let number = self.inject.next(&self.options).ok_or_else(none)?;
        let here = self.here();
        let guarded = is_guarded(number, &self.options)
            .then(|| self.storage.take_guarded(layout))
            .flatten();
        let place = guarded
            .or_else(|| self.storage.take_room(room?))
            .or_else(|| self.storage.take(layout, zeroed))
            .ok_or_else(none)?;
        let record = Record {
            at: place.at,
            size: layout.size(),
            bytes: place.bytes,
            align: layout.align().trailing_zeros() as u8,
            asked: layout.align().trailing_zeros() as u8,
            number,
            alloc_thread: thread(),
            state: records::LIVE,
            origin,
            guarded: place.guarded,
            past: place.past,
            listed: place.guarded || !self.storage.is_numbered(place.at),
            ..Record::default()
        };
        // SAFETY: just taken.
        let known = unsafe {
            self.inner
                .lock()
                .begin(&self.storage, record, zeroed, &here)
        };
        if !known {
            // SAFETY: just taken, and known to no other code.
            unsafe { self.storage.give(&record) };
            return Err(none());
        }
        NonNull::new(place.at as *mut u8).ok_or_else(none)
    }

    /// Gives back the memory of the oldest freed block, and of others while there are too many.
    fn settle(&self, mut evicted: Option<Evicted>) {
        while let Some(Evicted {
            record,
            incident,
            more,
        }) = evicted
        {
            // SAFETY: the program freed it, its time is over, and nothing looks at its memory any more.
            unsafe { self.storage.give(&record) };
            if let Some(incident) = incident {
                self.meet(&incident);
            }
            evicted = more
                .then(|| self.inner.lock().evict(&self.storage))
                .flatten();
        }
    }

    /// Reports a misuse, and ends the process unless the options say that it goes on.
    pub(super) fn meet(&self, incident: &Incident) {
        incident.tell();
        if !self.options.keep_going {
            std::process::abort();
        }
    }
}

impl Checker for DebugHeap {
    fn alloc(
        &self,
        layout: Layout,
        zeroed: bool,
        origin: Origin,
    ) -> Result<NonNull<u8>, AllocError> {
        self.alloc_with_room(layout, None, zeroed, origin)
    }

    unsafe fn free(&self, at: NonNull<u8>, claim: Claim) -> Outcome<()> {
        let here = self.here();
        // SAFETY: the caller's promise.
        let (ended, evicted) = unsafe {
            let mut inner = self.inner.lock();
            let ended = inner.end(&self.storage, at.as_ptr() as usize, claim, &here, thread());
            let done = matches!(ended, Outcome::Done(_));
            (ended, done.then(|| inner.evict(&self.storage)).flatten())
        };
        let Outcome::Done(incident) = ended else {
            return Outcome::Unknown;
        };
        if let Some(incident) = incident {
            self.meet(&incident);
        }
        self.settle(evicted);
        Outcome::Done(())
    }

    unsafe fn realloc(
        &self,
        at: NonNull<u8>,
        layout: Layout,
        claim: Claim,
    ) -> Outcome<Result<NonNull<u8>, AllocError>> {
        let old = {
            let inner = self.inner.lock();
            inner.find(&self.storage, at.as_ptr() as usize).copied()
        };
        let Some(old) = old else {
            return Outcome::Unknown;
        };
        if old.state != records::LIVE {
            // SAFETY: it is free already, which is reported.
            unsafe { self.free(at, claim) };
            return Outcome::Done(Err(refused(layout.size())));
        }
        let grows = layout.size() > old.size;
        if grows && self.storage.has_room(&old, layout) {
            // It is an allocation, which may fail on purpose.
            let Some(number) = self.inject.next(&self.options) else {
                return Outcome::Done(Err(refused(layout.size())));
            };
            let here = self.here();
            let by = (number, thread());
            let address = at.as_ptr() as usize;
            let mut inner = self.inner.lock();
            let grown = inner.grow(&self.storage, address, layout, claim, &here, by);
            drop(inner);
            if let Some(incident) = grown {
                if let Some(incident) = incident {
                    self.meet(&incident);
                }
                return Outcome::Done(Ok(at));
            }
        }
        // Without room a block that grows by small steps is copied again at each of them. Behind the bytes that are filled, room takes
        // no memory before it is written.
        let room = (grows && layout.size() > MOST_FILLED)
            .then(|| layout.size() + layout.size() / 2)
            .and_then(|bytes| Layout::from_size_align(bytes, layout.align()).ok());
        let new = match self.alloc_with_room(layout, room, false, old.origin) {
            Ok(new) => new,
            // To make it smaller never fails, on purpose neither.
            Err(_) if layout.size() <= old.size && old.at.is_multiple_of(layout.align()) => {
                let mut inner = self.inner.lock();
                inner.shrink(&self.storage, at.as_ptr() as usize, layout);
                return Outcome::Done(Ok(at));
            }
            Err(error) => return Outcome::Done(Err(error)),
        };
        // SAFETY: both have at least so many bytes, and one of them is new.
        unsafe {
            new.copy_from_nonoverlapping(at, old.size.min(layout.size()));
            self.free(at, claim);
        }
        Outcome::Done(Ok(new))
    }

    fn live_size(&self, at: NonNull<u8>) -> Option<usize> {
        let inner = self.inner.lock();
        let record = inner.find(&self.storage, at.as_ptr() as usize)?;
        (record.state == records::LIVE).then_some(record.size)
    }

    fn finish(&self) {
        self.check();
        let mut from = 0;
        loop {
            let found = self.inner.lock().next(from, |record| {
                record.guarded && matches!(record.state, records::LIVE | records::KEPT)
            });
            let Some((next, record)) = found else {
                return;
            };
            from = next;
            // SAFETY: the heap goes, and all its blocks with it.
            unsafe { self.storage.give(&record) };
        }
    }

    fn size(&self, at: NonNull<u8>) -> Outcome<usize> {
        let claim = Claim::of(Call::UsableSize);
        let address = at.as_ptr() as usize;
        let (size, incident) = {
            let inner = self.inner.lock();
            match inner.find(&self.storage, address) {
                None => return Outcome::Unknown,
                Some(record) if record.state == records::LIVE => (record.size, None),
                Some(record) => (
                    0,
                    Some(inner.incident(Kind::Asked(claim), address, record, &Frames::NONE)),
                ),
            }
        };
        if let Some(incident) = incident {
            let here = self.here();
            self.meet(&Incident { here, ..incident });
        }
        Outcome::Done(size)
    }

    fn invalid(&self, at: NonNull<u8>, claim: Claim) {
        let address = at.as_ptr() as usize;
        let here = self.here();
        let what = Kind::Invalid(claim, symbol::describe(address));
        let incident = {
            let inner = self.inner.lock();
            match inner.around(address) {
                Some(record) => inner.incident(what, address, record, &here),
                None => Incident::new(what, address, here),
            }
        };
        self.meet(&incident);
    }
}

/// No memory, or none on purpose.
fn refused(bytes: usize) -> AllocError {
    AllocError::Memory(ObjectError::System(OsError::new(
        "debug heap",
        bytes,
        rustix::io::Errno::NOMEM,
    )))
}

/// The system's number of this thread, asked for once in a thread and once more in the child of a fork.
pub(super) fn thread() -> u32 {
    std::thread_local! {
        static KNOWN: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    }
    let now = fork::generation();
    let (generation, thread) = KNOWN.get();
    if generation == now && thread != 0 {
        return thread;
    }
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    KNOWN.set((now, thread));
    thread
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;
    use crate::objects::Family;
    use crate::os::testing::system;

    /// However often an address is used again, it is found at once.
    #[test]
    fn an_address_has_one_record() {
        for quarantine in ["0", "10000"] {
            let family = Family::new().unwrap();
            let text = format!("quarantine={quarantine},keep-going,frames=0");
            let options = Options::read(&text, &mut |_| ()).unwrap();
            let debug = DebugHeap::new(Classes::new(&family), system(), options).unwrap();
            let layout = Layout::from_size_align(100, 16).unwrap();
            for _ in 0..30_000 {
                let at = debug.alloc(layout, false, Origin::Malloc).unwrap();
                // SAFETY: taken above, put once.
                let freed = unsafe { debug.free(at, Claim::of(Call::Free)) };
                assert!(matches!(freed, Outcome::Done(())));
            }
            let longest = debug.inner.lock().records.longest();
            assert!(
                longest < 16,
                "{longest} places with quarantine={quarantine}"
            );
        }
    }

    /// Where a block begins says where its memory does, whatever its size and alignment are.
    #[test]
    fn blocks_go_back_as_they_came() {
        for words in ["guard", "redzone=16", "redzone=48"] {
            let family = Family::new().unwrap();
            let text = format!("{words},keep-going,frames=0,quarantine=30000");
            let options = Options::read(&text, &mut |_| ()).unwrap();
            let debug = DebugHeap::new(Classes::new(&family), system(), options).unwrap();
            let claim = Claim::of(Call::Free);
            for round in 0..3 {
                for align in [1, 16, 32, 4096, 8192, 1 << 16] {
                    for size in [0, 1, 4095, 4096, 5000, 100_000] {
                        let layout = Layout::from_size_align(size, align).unwrap();
                        let at = debug.alloc(layout, false, Origin::Malloc).unwrap();
                        assert!(at.addr().get().is_multiple_of(align));
                        assert_eq!(debug.live_size(at), Some(size));
                        // SAFETY: as many bytes as were asked for; taken above, put once.
                        let freed = unsafe {
                            at.write_bytes(7, size);
                            debug.free(at, claim)
                        };
                        assert!(matches!(freed, Outcome::Done(())));
                        assert_eq!(debug.live_size(at), None);
                    }
                }
                assert_eq!(debug.check(), 0, "{words}, round {round}");
            }
            debug.finish();
        }
    }

    /// A block that grows by small steps is seldom copied, and its end is watched wherever that is.
    #[test]
    fn a_large_block_grows_where_it_is() {
        let family = Family::new().unwrap();
        let options = Options::read("keep-going,frames=0", &mut |_| ()).unwrap();
        let debug = DebugHeap::new(Classes::new(&family), system(), options).unwrap();
        let layout = |size| Layout::from_size_align(size, 16).unwrap();
        let grow = |at, size| {
            // SAFETY: the block is this test's, and not used where it was.
            match unsafe { debug.realloc(at, layout(size), Claim::of(Call::Realloc)) } {
                Outcome::Done(grown) => grown.unwrap(),
                Outcome::Unknown => panic!("the block is not known"),
            }
        };
        let step = if cfg!(miri) { 4096 } else { 1 };
        let first = layout(MOST_FILLED);
        let mut at = debug.alloc(first, false, Origin::Malloc).unwrap();
        let mut moves = 0;
        for size in (MOST_FILLED..1 << 20).step_by(step) {
            // SAFETY: the last byte of the block as it is.
            unsafe { at.add(size - 1).write(7) };
            let to = grow(at, size + step);
            moves += usize::from(to != at);
            at = to;
        }
        assert!(moves < 10, "{moves} moves");
        assert_eq!((debug.check(), debug.live_size(at)), (0, Some(1 << 20)));
        // SAFETY: the first byte behind the block, in its redzone.
        unsafe { at.add(1 << 20).write(7) };
        assert_eq!(debug.check(), 1);
        // SAFETY: as above.
        unsafe { at.add(1 << 20).write(7) };
        let to = grow(at, (1 << 20) + 1);
        assert_eq!((to, debug.check()), (at, 0), "grown in place, and reported");
    }

    #[test]
    fn a_redzone_has_room_for_the_number() {
        for (asked, has) in [(0, 16), (17, 32), (1 << 20, 4096)] {
            let family = Family::new().unwrap();
            let mut options = Options::read("keep-going,frames=0", &mut |_| ()).unwrap();
            options.redzone = asked;
            let debug = DebugHeap::new(Classes::new(&family), system(), options).unwrap();
            assert_eq!(debug.options().redzone, has);
            let layout = Layout::from_size_align(100, 16).unwrap();
            let at = debug.alloc(layout, false, Origin::Malloc).unwrap();
            assert_eq!((debug.check(), debug.live_size(at)), (0, Some(100)));
        }
    }

    /// A program that writes before its block writes over the number of the record too.
    #[test]
    fn a_block_whose_number_was_overwritten_is_known() {
        let family = Family::new().unwrap();
        let options = Options::read("redzone=16,keep-going,frames=0", &mut |_| ()).unwrap();
        let debug = DebugHeap::new(Classes::new(&family), system(), options).unwrap();
        let layout = Layout::from_size_align(100, 16).unwrap();
        let take = || debug.alloc(layout, false, Origin::Malloc).unwrap();
        let blocks: Vec<_> = (0..100).map(|_| take()).collect();
        for (n, &at) in blocks.iter().enumerate() {
            let number = at.as_ptr().wrapping_sub(16);
            // SAFETY: inside of the redzone, also where another block's number is read.
            unsafe {
                match n % 4 {
                    // One byte of it, a zero as at the end of a text.
                    0 => number.add(3).write(0),
                    1 => number.cast::<u32>().write(0),
                    2 => number.cast::<u32>().write(u32::MAX),
                    _ => number
                        .cast::<u32>()
                        .write(blocks[n - 1].as_ptr().sub(16).cast::<u32>().read()),
                }
            }
        }
        for &at in &blocks {
            assert_eq!(debug.live_size(at), Some(100));
            assert_eq!(
                debug.live_size(at.map_addr(|at| at.saturating_add(8))),
                None
            );
        }
        assert_eq!((debug.check(), debug.check()), (blocks.len(), 0));
        let claim = Claim::of(Call::Free);
        for &at in &blocks {
            // SAFETY: inside of the redzone; taken above, put once.
            let freed = unsafe {
                at.as_ptr().wrapping_sub(16).cast::<u32>().write(1 << 20);
                debug.free(at, claim)
            };
            assert!(matches!(freed, Outcome::Done(())));
        }
        assert_eq!(debug.check(), 0, "each was reported and made good");
    }

    /// Blocks of the sizes that `for_each_live`'s callers have lie in memory that the debug heap had before.
    #[test]
    fn what_another_owner_has_now_was_not_freed_twice() {
        let family = Family::new().unwrap();
        let options = Options::read("quarantine=0,keep-going,frames=0", &mut |_| ()).unwrap();
        let debug = DebugHeap::new(Classes::new(&family), system(), options).unwrap();
        let ordinary = Classes::new(&family);
        let mut ended = Vec::new();
        // Runs of pages, the blocks in them 32 bytes or a page from their beginnings.
        for align in [16, 4096, 8192] {
            let layout = Layout::from_size_align(100_000, align).unwrap();
            let blocks: Vec<_> = (0..20)
                .map(|_| debug.alloc(layout, false, Origin::Malloc).unwrap())
                .collect();
            for at in blocks {
                // SAFETY: taken above, put once.
                let freed = unsafe { debug.free(at, Claim::of(Call::Free)) };
                assert!(matches!(freed, Outcome::Done(())));
                ended.push(at);
            }
        }
        family.trim();
        let (mut small, mut large) = (0, 0);
        for size in [32, 40_000, 4096] {
            let layout = Layout::from_size_align(size, 16).unwrap();
            for _ in 0..2000 {
                let at = ordinary.alloc(layout).unwrap();
                if ended.contains(&at) {
                    let claim = Claim::of(Call::Free);
                    // SAFETY: the debug heap must not take it.
                    let freed = unsafe { debug.free(at, claim) };
                    assert!(matches!(freed, Outcome::Unknown), "{size} bytes at {at:?}");
                    assert!(matches!(debug.size(at), Outcome::Unknown));
                    small += usize::from(size < 40_000);
                    large += usize::from(size == 40_000);
                }
            }
        }
        assert!(small > 0 && large > 0, "{small} and {large} met");
    }
}
