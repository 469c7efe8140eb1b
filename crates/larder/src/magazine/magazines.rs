//! The magazines of one stock, or of several that share them: immortal, numbered, made on demand.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;

use rustix::io::Errno;

use super::backoff::Backoff;
use super::stack::{Links, Stack};
use super::{FILL_MASK, MAGAZINE_BYTES, MAX_ROUNDS, WORD};
use crate::os::{MetaRegion, OsError, Span, System};

/// Magazines in the first chunk; every later chunk doubles the total.
const FIRST_CHUNK: usize = 32;
/// Chunks at most: 32 << 18 magazines of 255 rounds are 8 TiB of pages, and their numbers fit the stack's 24 bits.
const CHUNKS: usize = 18;
const MOST: usize = (FIRST_CHUNK << CHUNKS) - FIRST_CHUNK;

/// First word of a magazine's memory; its rounds follow.
#[repr(C)]
struct Header {
    /// Number of the next magazine on the stack that this one is on.
    next: AtomicU32,
    /// Number of this magazine in the upper 24 bits, and its rounds in the lower 8 while it lies on a stack.
    /// Only the owner touches it.
    tally: u32,
}

const _: () = assert!(size_of::<Header>() == WORD);

/// A magazine that belongs to the owner of this value: the address of its top slot.
///
/// The rounds lie in the slots from 1 up to and including the top; slot 0 is the header. An address with no low bits
/// is an empty magazine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Magazine(NonNull<usize>);

// SAFETY: a magazine is a private array of plain words; ownership moves with the value.
unsafe impl Send for Magazine {}

impl Magazine {
    /// What stands for no magazine where there may be one: it looks empty, and nothing may be pushed onto it.
    pub(crate) const fn none() -> Self {
        Self(NonNull::without_provenance(
            core::num::NonZero::new(MAGAZINE_BYTES).expect("a magazine has bytes"),
        ))
    }

    /// Whether this stands for no magazine.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::none()
    }

    /// Takes over what a CPU's slot held.
    ///
    /// # Safety
    /// `top` is the top of a magazine of this process that no other value or slot owns any more.
    pub(crate) unsafe fn from_top(top: usize) -> Option<Self> {
        NonNull::new(top as *mut usize).map(Self)
    }

    /// The word that a CPU's slot holds for this magazine, which the slot owns from now on.
    pub(crate) fn into_top(self) -> usize {
        self.0.as_ptr() as usize
    }

    /// Address of the top slot.
    #[inline(always)]
    pub(crate) fn top(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// What [`top`](Self::top) is when the magazine holds `rounds`, at most [`MAX_ROUNDS`].
    pub(crate) fn top_with(&self, rounds: usize) -> usize {
        (self.top() & !FILL_MASK) + rounds.min(MAX_ROUNDS) * WORD
    }

    /// Number of rounds.
    pub(crate) fn len(&self) -> usize {
        (self.0.as_ptr() as usize & FILL_MASK) / WORD
    }

    /// Adds a round; gives it back when the magazine holds [`MAX_ROUNDS`].
    #[inline]
    pub(crate) fn push(&mut self, round: usize) -> Result<(), usize> {
        if self.len() == MAX_ROUNDS {
            return Err(round);
        }
        // SAFETY: there is room.
        unsafe { self.push_unchecked(round) };
        Ok(())
    }

    /// Adds a round without looking for room.
    ///
    /// # Safety
    /// The magazine holds fewer than [`MAX_ROUNDS`].
    #[inline]
    pub(crate) unsafe fn push_unchecked(&mut self, round: usize) {
        debug_assert!(self.len() < MAX_ROUNDS);
        // SAFETY: there is a slot above the top (the caller's promise), and the magazine is ours.
        unsafe {
            self.0 = self.0.add(1);
            self.0.write(round);
        }
    }

    /// Takes the last round that was added.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<usize> {
        if self.0.as_ptr() as usize & FILL_MASK == 0 {
            return None;
        }
        // SAFETY: the magazine has a round, so the top is a slot with a round and there is a slot below.
        unsafe {
            let round = self.0.read();
            self.0 = self.0.sub(1);
            Some(round)
        }
    }

    /// Takes the last rounds that were added into the front of `out`, as many as there are or fit, and says how many.
    pub(crate) fn pop_many(&mut self, out: &mut [usize]) -> usize {
        let n = self.len().min(out.len());
        // Nothing is read where there is no magazine.
        if n > 0 {
            let rounds = self.rounds();
            out[..n].copy_from_slice(&rounds[rounds.len() - n..]);
            // SAFETY: the magazine has n rounds, so the slot n below the top is one of its own.
            self.0 = unsafe { self.0.sub(n) };
        }
        n
    }

    /// Adds rounds without looking for room.
    ///
    /// # Safety
    /// This is a magazine, and there is room for so many beside what it holds: [`MAX_ROUNDS`] in all.
    pub(crate) unsafe fn push_many_unchecked(&mut self, rounds: &[usize]) {
        debug_assert!(!self.is_none() && self.len() + rounds.len() <= MAX_ROUNDS);
        // SAFETY: so many slots above the top are free (the caller's promise), the magazine is ours, and no slice of another's
        // overlaps it.
        unsafe {
            let at = self.0.as_ptr().add(1);
            core::ptr::copy_nonoverlapping(rounds.as_ptr(), at, rounds.len());
            self.0 = self.0.add(rounds.len());
        }
    }

    /// Moves the `n` oldest rounds to another magazine, or as many as there are and it has room for.
    pub(crate) fn move_oldest(&mut self, n: usize, to: &mut Self) {
        let n = n.min(self.len()).min(MAX_ROUNDS - to.len());
        if n == 0 || to.is_none() {
            return;
        }
        // SAFETY: it is a magazine, and has room for so many.
        unsafe { to.push_many_unchecked(&self.rounds()[..n]) };
        let rest = self.len() - n;
        // SAFETY: the slots up to the top hold rounds; those that stay move down to the first slot, and the top with them.
        unsafe {
            let first = self.0.as_ptr().sub(self.len() - 1);
            core::ptr::copy(first.add(n), first, rest);
            self.0 = self.0.sub(n);
        }
    }

    /// Fills an empty magazine by a function that writes rounds into a slice of `room` and says how many.
    pub(crate) fn fill<E>(
        &mut self,
        room: usize,
        f: impl FnOnce(&mut [usize]) -> Result<usize, E>,
    ) -> Result<(), E> {
        debug_assert_eq!(self.len(), 0);
        let room = room.min(MAX_ROUNDS);
        // SAFETY: the slots 1 to MAX_ROUNDS of an own magazine are plain words, initialised to zero by the system.
        let slots = unsafe { core::slice::from_raw_parts_mut(self.0.as_ptr().add(1), room) };
        let n = f(slots)?.min(room);
        // SAFETY: slot n exists.
        self.0 = unsafe { self.0.add(n) };
        Ok(())
    }

    /// Its rounds, oldest first.
    pub(crate) fn rounds(&self) -> &[usize] {
        let n = self.len();
        // SAFETY: the n slots up to the top hold rounds.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().sub(n).add(1), n) }
    }

    /// Forgets the rounds.
    pub(crate) fn clear(&mut self) {
        let n = self.len();
        // SAFETY: slot 0 lies n slots below the top.
        self.0 = unsafe { self.0.sub(n) };
    }

    /// Ends the ownership of this value: writes the number of rounds into the header and returns the magazine's number.
    fn into_index(self) -> u32 {
        let n = self.len();
        // SAFETY: slot 0 is the header, and its tally is the owner's.
        unsafe {
            let tally = &raw mut (*self.0.as_ptr().sub(n).cast::<Header>()).tally;
            let index = *tally >> 8;
            *tally = (index << 8) | n as u32;
            index
        }
    }
}

/// All magazines of one stock, or of several, with a stack of the empty ones.
#[derive(Debug)]
pub(crate) struct Magazines {
    system: Arc<dyn System>,
    empty: Stack,
    /// Number of magazines made.
    made: AtomicUsize,
    backoff: Backoff,
    /// Base address of every chunk that exists; 0 otherwise. Chunk c holds `FIRST_CHUNK << c` magazines.
    chunks: [AtomicUsize; CHUNKS],
}

impl Magazines {
    pub(crate) fn new(system: Arc<dyn System>) -> Self {
        Self {
            system,
            empty: Stack::new(),
            made: AtomicUsize::new(0),
            backoff: Backoff::default(),
            chunks: [const { AtomicUsize::new(0) }; CHUNKS],
        }
    }

    /// An empty magazine, made if there is none.
    pub(crate) fn take_empty(&self) -> Result<Magazine, OsError> {
        self.pop_empty().map_or_else(|| self.make(), Ok)
    }

    /// As [`take_empty`](Self::take_empty), for a caller that can do without one.
    pub(crate) fn spare_empty(&self) -> Option<Magazine> {
        self.pop_empty()
            .or_else(|| self.backoff.attempt(|| self.make().ok()))
    }

    fn pop_empty(&self) -> Option<Magazine> {
        let (index, _) = self.empty.pop(self);
        // SAFETY: the stack gives a number to one taker, and `put_empty` left it there.
        index.and_then(|index| unsafe { self.at_index(index) })
    }

    /// Keeps an empty magazine for the next caller that needs one.
    pub(crate) fn put_empty(&self, magazine: Magazine) {
        debug_assert_eq!(magazine.len(), 0);
        self.empty.push(self, self.index_of(magazine));
    }

    /// Makes an empty magazine. Without a lock: a thread that is descheduled here delays no other thread.
    fn make(&self) -> Result<Magazine, OsError> {
        let mut index = self.made.load(Ordering::Relaxed);
        loop {
            if index >= MOST {
                return Err(OsError::new("magazine", MAGAZINE_BYTES, Errno::NOMEM));
            }
            self.chunk(place(index).0)?;
            match self.made.compare_exchange_weak(
                index,
                index + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => index = now,
            }
        }
        let header = self.header(index);
        // SAFETY: the exchange above made this magazine ours, and its memory is mapped.
        unsafe { (*header).tally = (index as u32) << 8 };
        // SAFETY: a header's address is not null, and it is the top of an empty magazine.
        unsafe { Magazine::from_top(header as usize) }.ok_or(OsError::new(
            "magazine",
            MAGAZINE_BYTES,
            Errno::INVAL,
        ))
    }

    /// Gives up a magazine; the number finds it again.
    pub(crate) fn index_of(&self, magazine: Magazine) -> u32 {
        magazine.into_index()
    }

    /// Takes up a magazine whose number the caller alone holds.
    ///
    /// # Safety
    /// The number came from [`index_of`](Self::index_of), and no other caller took it up since.
    pub(crate) unsafe fn at_index(&self, index: u32) -> Option<Magazine> {
        let header = self.header(index as usize);
        // SAFETY: the magazine exists and is the caller's, so its tally is too; the top lies inside the magazine.
        unsafe { Magazine::from_top(header as usize + ((*header).tally & 0xFF) as usize * WORD) }
    }

    /// Number of magazines made so far.
    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    fn header(&self, index: usize) -> *mut Header {
        let (chunk, offset) = place(index);
        let base = self.chunks[chunk].load(Ordering::Acquire);
        (base + offset * MAGAZINE_BYTES) as *mut Header
    }

    /// Maps chunk `c` if it is not mapped yet.
    fn chunk(&self, c: usize) -> Result<(), OsError> {
        if self.chunks[c].load(Ordering::Acquire) != 0 {
            return Ok(());
        }
        let region = MetaRegion::new(self.system.clone(), chunk_bytes(c), MAGAZINE_BYTES)?;
        let base = region.span().addr();
        if self.chunks[c]
            .compare_exchange(0, base, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            // Released by `drop` below. The loser of the race drops its region at once.
            region.into_span();
        }
        Ok(())
    }
}

impl Drop for Magazines {
    fn drop(&mut self) {
        for (c, base) in self.chunks.iter_mut().enumerate() {
            if let Some(at) = NonNull::new(*base.get_mut() as *mut u8) {
                // SAFETY: exactly the region that `chunk` mapped; with its owner gone no magazine is in use.
                let _ = unsafe {
                    self.system.release(Span {
                        at,
                        len: chunk_bytes(c),
                    })
                };
            }
        }
    }
}

impl Links for Magazines {
    fn next(&self, index: u32) -> u32 {
        // SAFETY: numbers on a stack name magazines that exist, and they are immortal. Atomic, since another thread
        // may be writing it.
        unsafe { (*self.header(index as usize)).next.load(Ordering::Relaxed) }
    }
    fn set_next(&self, index: u32, next: u32) {
        // SAFETY: as above.
        unsafe {
            (*self.header(index as usize))
                .next
                .store(next, Ordering::Relaxed)
        };
    }
}

fn chunk_bytes(c: usize) -> usize {
    ((FIRST_CHUNK << c) * MAGAZINE_BYTES).next_multiple_of(crate::os::page_size())
}

/// Chunk and place within it of magazine `index`.
fn place(index: usize) -> (usize, usize) {
    let n = index + FIRST_CHUNK;
    let chunk = (n.ilog2() - FIRST_CHUNK.ilog2()) as usize;
    (chunk, n - (FIRST_CHUNK << chunk))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::os::testing::system;

    #[test]
    fn places_are_dense_and_unique() {
        let mut expected = (0, 0);
        for i in 0..10_000 {
            assert_eq!(place(i), expected, "magazine {i}");
            expected.1 += 1;
            if expected.1 == FIRST_CHUNK << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(place(MOST - 1).0, CHUNKS - 1);
    }

    #[test]
    fn a_magazine_holds_what_it_says_and_survives_as_a_number() {
        let magazines = Magazines::new(system());
        for _ in 0..100 {
            let mut m = magazines.make().unwrap();
            for r in 0..MAX_ROUNDS {
                m.push(r).unwrap();
            }
            assert_eq!(m.push(7), Err(7));
            assert_eq!(m.len(), MAX_ROUNDS);
            let index = magazines.index_of(m);
            // SAFETY: just put there, and only here.
            let mut m = unsafe { magazines.at_index(index) }.unwrap();
            assert_eq!(m.rounds().len(), MAX_ROUNDS);
            for r in (0..MAX_ROUNDS).rev() {
                assert_eq!(m.pop(), Some(r));
            }
            assert_eq!(m.pop(), None);
            magazines.index_of(m);
        }
        assert_eq!(magazines.made(), 100);
    }

    #[test]
    fn the_system_is_let_go_with_the_magazines() {
        let system: Arc<dyn System> = system();
        let magazines = Magazines::new(system.clone());
        magazines.index_of(magazines.make().unwrap());
        drop(magazines);
        assert_eq!(Arc::strong_count(&system), 1);
    }
}
