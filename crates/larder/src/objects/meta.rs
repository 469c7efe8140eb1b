//! Memory for what is known of caches and slabs: blocks of powers of two out of one reservation.
//!
//! It never lies in the pages that hold objects, and never comes from the global allocator, which larder may be. A
//! block is named by a 32-bit number, half of a pointer, so that a page's slab and a slab's neighbours take four bytes.

use core::ptr::NonNull;
use std::sync::Arc;

use rustix::io::Errno;

use crate::os::lock::order::{Rank, Ranked};
use crate::os::lock::{Lock, RawLock};
use crate::os::{OsError, Span, System};

/// Bytes of the smallest block, and the unit in which blocks are numbered.
const UNIT: usize = 32;
/// Sizes of blocks: 32 bytes to 1 MiB.
const SIZES: usize = 16;
/// Memory is made accessible in steps, each a system call.
const STEP: usize = 256 << 10;

/// The number of a block; 0 is none.
pub(super) type BlockNumber = u32;

impl Ranked for State {
    const RANK: Rank = Rank::Metadata;
}

#[derive(Debug)]
struct State {
    /// Bytes from the start that are accessible.
    committed: usize,
    /// Bytes from the start that were ever given out.
    used: usize,
    /// First free block of each size; a free block begins with the number of the next.
    free: [BlockNumber; SIZES],
    /// Bytes in use.
    live: usize,
}

/// The blocks of one family.
#[derive(Debug)]
pub(super) struct Meta {
    span: Span,
    system: Arc<dyn System>,
    state: Lock<State>,
}

impl Meta {
    /// At most `bytes` bytes of blocks; addresses only, until they are used.
    pub(super) fn new(system: Arc<dyn System>, bytes: usize) -> Result<Self, OsError> {
        let most = (u32::MAX as usize) * UNIT;
        let bytes = bytes.min(most).next_multiple_of(STEP);
        let span = system.reserve(bytes, block_bytes(SIZES - 1))?;
        Ok(Self {
            span,
            system,
            state: Lock::new(State {
                committed: 0,
                // Number 0 is none.
                used: UNIT,
                free: [0; SIZES],
                live: 0,
            }),
        })
    }

    /// The lock that must be taken around a fork.
    pub(super) fn raw_lock(&self) -> &RawLock {
        self.state.raw()
    }

    /// Bytes in use.
    pub(super) fn live(&self) -> usize {
        self.state.lock().live
    }

    /// A block of at least `bytes` bytes, aligned to its size. Its contents are whatever.
    pub(super) fn take(&self, bytes: usize) -> Result<BlockNumber, OsError> {
        let refused = OsError::new("metadata block", bytes, Errno::NOMEM);
        let size = size_of_block(bytes).ok_or(refused)?;
        let mut state = self.state.lock();
        let number = match self.split(&mut state, size) {
            Some(number) => number,
            None => self.fresh(&mut state, size).or_else(|error| {
                self.join(&mut state);
                self.split(&mut state, size).ok_or(error)
            })?,
        };
        state.live += block_bytes(size);
        Ok(number)
    }

    /// The smallest free block that is large enough; halves go until it is not too large.
    fn split(&self, state: &mut State, size: usize) -> Option<BlockNumber> {
        let larger = (size..SIZES).find(|&larger| state.free[larger] != 0)?;
        let number = state.free[larger];
        state.free[larger] = self.next(number);
        for half in (size..larger).rev() {
            let upper = number + units(half);
            // SAFETY: the upper half of a block that is this call's alone.
            unsafe { self.push(state, upper, half) };
        }
        Some(number)
    }

    /// Joins free halves to the blocks that they were, where the system gives no more: memory that was known of many small
    /// things serves a large one. It sorts all free blocks.
    #[cold]
    fn join(&self, state: &mut State) {
        for size in 0..SIZES - 1 {
            let mut list = self.sorted(core::mem::take(&mut state.free[size]));
            while list != 0 {
                let (number, next) = (list, self.next(list));
                let whole = number.is_multiple_of(2 * units(size)) && next == number + units(size);
                list = if whole { self.next(next) } else { next };
                // SAFETY: a free block, alone or with its other half.
                unsafe { self.push(state, number, size + usize::from(whole)) };
            }
        }
    }

    /// A list of free blocks by number: merge sort, which needs no memory.
    fn sorted(&self, mut list: BlockNumber) -> BlockNumber {
        // Element i is a sorted run of 2^i blocks, or none.
        let mut runs = [0; BlockNumber::BITS as usize];
        while list != 0 {
            let mut run = list;
            list = self.next(list);
            self.set_next(run, 0);
            for there in &mut runs {
                if *there == 0 {
                    *there = run;
                    break;
                }
                run = self.merged(core::mem::take(there), run);
            }
        }
        runs.into_iter()
            .fold(0, |sorted, run| self.merged(run, sorted))
    }

    fn merged(&self, mut a: BlockNumber, mut b: BlockNumber) -> BlockNumber {
        let (mut first, mut last) = (0, 0);
        while a != 0 || b != 0 {
            let least = if b == 0 || (a != 0 && a < b) {
                &mut a
            } else {
                &mut b
            };
            let number = *least;
            *least = self.next(number);
            if last == 0 {
                first = number;
            } else {
                self.set_next(last, number);
            }
            last = number;
        }
        first
    }

    /// The block behind a free one on its list.
    fn next(&self, number: BlockNumber) -> BlockNumber {
        // SAFETY: a free block is accessible, and its first word is the next one's number.
        unsafe { self.at(number).cast::<BlockNumber>().read() }
    }

    fn set_next(&self, number: BlockNumber, next: BlockNumber) {
        // SAFETY: as above.
        unsafe { self.at(number).cast::<BlockNumber>().write(next) };
    }

    /// Takes a block back that was asked for with the same number of bytes.
    ///
    /// # Safety
    /// The block came from [`take`](Self::take) with `bytes`, and is not used any more.
    pub(super) unsafe fn put(&self, number: BlockNumber, bytes: usize) {
        let Some(size) = size_of_block(bytes) else {
            return;
        };
        let mut state = self.state.lock();
        // SAFETY: the block is the caller's and has room for a number.
        unsafe { self.push(&mut state, number, size) };
        state.live -= block_bytes(size);
    }

    /// Where a block is.
    ///
    /// The pointer is dangling for numbers that never came from [`take`](Self::take).
    #[inline]
    pub(super) fn at(&self, number: BlockNumber) -> NonNull<u8> {
        let offset = number as usize * UNIT;
        debug_assert!(offset < self.span.len);
        // SAFETY: numbers come from `take`, so they lie inside the reservation.
        unsafe { self.span.at.add(offset) }
    }

    /// A block that was never given out.
    fn fresh(&self, state: &mut State, size: usize) -> Result<BlockNumber, OsError> {
        let bytes = block_bytes(size);
        let start = state.used.next_multiple_of(bytes);
        let end = start + bytes;
        if end > self.span.len {
            return Err(OsError::new("metadata block", bytes, Errno::NOMEM));
        }
        if end > state.committed {
            let mut commit = |upper: usize| {
                let part = self.span.part(state.committed, upper - state.committed);
                // SAFETY: this part was never accessible, so no thread uses it.
                unsafe { self.system.commit(part)? };
                state.committed = upper;
                Ok(())
            };
            let step = end.next_multiple_of(STEP).min(self.span.len);
            let need = end.next_multiple_of(crate::os::page_size());
            commit(step).or_else(|_: OsError| commit(need))?;
        }
        // What alignment skips becomes smaller blocks: from the next multiple of each size on, the next size fits.
        while state.used < start {
            let gap = (state.used.trailing_zeros() - UNIT.trailing_zeros()) as usize;
            let number = number_of(state.used);
            state.used += block_bytes(gap);
            // SAFETY: below `end`, so accessible; it was never given out.
            unsafe { self.push(state, number, gap) };
        }
        state.used = end;
        Ok(number_of(start))
    }

    /// # Safety
    /// The block is accessible and has no owner.
    unsafe fn push(&self, state: &mut State, number: BlockNumber, size: usize) {
        // The caller's promise makes it a free block; every block has room for a number.
        self.set_next(number, state.free[size]);
        state.free[size] = number;
    }
}

impl Drop for Meta {
    fn drop(&mut self) {
        // SAFETY: exactly what `reserve` returned; the users of the blocks are gone with the family. A refusal leaks addresses.
        let _ = unsafe { self.system.release(self.span) };
    }
}

fn block_bytes(size: usize) -> usize {
    UNIT << size
}

/// Units of a block.
fn units(size: usize) -> BlockNumber {
    1 << size
}

fn number_of(offset: usize) -> BlockNumber {
    (offset / UNIT) as BlockNumber
}

/// The smallest size that holds `bytes`; `None` beyond the largest.
fn size_of_block(bytes: usize) -> Option<usize> {
    let units = bytes.max(1).div_ceil(UNIT);
    let size = units.next_power_of_two().ilog2() as usize;
    (size < SIZES).then_some(size)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::os::testing::system;

    #[test]
    fn blocks_are_aligned_disjoint_and_used_again() {
        let meta = Meta::new(system(), 1 << 20).unwrap();
        let sizes = [32, 1, 100, 4096, 33, 65536, 64, 2000, 32, 32, 512];
        let mut taken: Vec<(usize, usize)> = Vec::new();
        for bytes in sizes {
            let at = meta.at(meta.take(bytes).unwrap()).as_ptr() as usize;
            let len = bytes.next_power_of_two().max(UNIT);
            assert_eq!(at % len, 0, "{bytes} bytes");
            assert!(
                taken.iter().all(|&(a, n)| at + len <= a || a + n <= at),
                "{bytes} bytes overlap another block"
            );
            taken.push((at, len));
        }
        let block = meta.take(500).unwrap();
        let live = meta.live();
        // SAFETY: taken just above, and not used.
        unsafe { meta.put(block, 500) };
        assert_eq!(meta.live(), live - 512);
        assert_eq!(meta.take(300), Ok(block), "the block of that size");
        assert!(meta.take(2 << 20).is_err(), "larger than any block");
    }

    #[test]
    fn what_alignment_skips_is_not_lost() {
        let meta = Meta::new(system(), 1 << 20).unwrap();
        meta.take(65536).unwrap();
        let used = meta.state.lock().used;
        for _ in 0..(65536 - UNIT) / UNIT {
            meta.take(UNIT).unwrap();
        }
        assert_eq!(
            meta.state.lock().used,
            used,
            "64 KiB less 32 bytes were skipped"
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter takes minutes for so many blocks")]
    fn many_small_blocks_become_a_large_one_where_there_is_no_more() {
        let meta = Meta::new(system(), STEP).unwrap();
        let mut small: Vec<_> = core::iter::from_fn(|| meta.take(UNIT).ok()).collect();
        assert_eq!(small.len(), STEP / UNIT - 1);
        assert!(meta.take(4096).is_err(), "all are in use");
        // In no order; one stays in use, and the first unit belongs to no block.
        small.sort_unstable_by_key(|number| number.wrapping_mul(0x9e37_79b1));
        let stays = small.pop().unwrap();
        for &number in &small {
            // SAFETY: taken above, and not used.
            unsafe { meta.put(number, UNIT) };
        }
        let large: Vec<_> = core::iter::from_fn(|| meta.take(4096).ok()).collect();
        let most = STEP / 4096;
        assert!((most - 2..most).contains(&large.len()), "{}", large.len());
        let pages: std::collections::HashSet<_> = large.iter().map(|n| n / 128).collect();
        assert_eq!(pages.len(), large.len(), "apart");
        assert!(!pages.contains(&0) && !pages.contains(&(stays / 128)));
        assert!(large.iter().all(|n| n.is_multiple_of(128)), "aligned");
        // Nothing is lost: what is left over is still had.
        let rest = core::iter::from_fn(|| meta.take(UNIT).ok()).count();
        assert_eq!(rest + 1 + large.len() * 128, STEP / UNIT - 1);
    }

    #[test]
    fn an_end_is_an_error() {
        let meta = Meta::new(system(), STEP).unwrap();
        let n = core::iter::from_fn(|| meta.take(4096).ok()).count();
        assert_eq!(n, STEP / 4096 - 1);
    }
}
