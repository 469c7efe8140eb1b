//! One byte for each identifier: free or allocated. Memory follows use, by chunks of a page.

use std::sync::Arc;

use super::gate::{self, FREE, LEAVING, LIVE, ORPHAN, UNOWNED};
use super::sync::{AtomicU8, Ordering, fence};
use crate::ids::IdError;
use crate::os::System;

/// Identifiers of a chunk.
const CHUNK: usize = 4096;

/// Cells that are looked at together: those of a cache line, and as many as a word has bits.
pub(super) const LINE: usize = if cfg!(shuttle) { 4 } else { 64 };

/// Which of up to `LINE` cells are `UNOWNED`, as bits.
fn one_by_one(cells: &[AtomicU8]) -> u64 {
    cells.iter().enumerate().fold(0, |bits, (i, cell)| {
        bits | u64::from(cell.load(Ordering::Relaxed) == UNOWNED) << i
    })
}

/// The cells of all identifiers of a space, and which chunks of them were ever used.
#[derive(Debug)]
pub(super) struct States {
    cells: Cells,
    touched: Box<[AtomicU8]>,
}

impl States {
    /// `len` cells, all free.
    pub(super) fn new(system: Arc<dyn System>, len: usize) -> Result<Self, IdError> {
        let mut touched = Vec::new();
        let chunks = len.div_ceil(CHUNK);
        touched
            .try_reserve_exact(chunks)
            .map_err(|_| IdError::OutOfMemory)?;
        touched.extend((0..chunks).map(|_| AtomicU8::new(0)));
        Ok(Self {
            cells: Cells::new(system, len)?,
            touched: touched.into_boxed_slice(),
        })
    }

    /// The cell of offset `at`, if there is one.
    #[inline]
    pub(super) fn cell(&self, at: usize) -> Option<&AtomicU8> {
        self.cells.all().get(at)
    }

    /// Remembers that the offset may be handed out from now on. Under the map's lock.
    pub(super) fn touch(&self, at: u64) {
        if let Some(chunk) = self.touched.get(at as usize / CHUNK)
            && chunk.load(Ordering::Relaxed) == 0
        {
            chunk.store(1, Ordering::Relaxed);
        }
    }

    /// Marks an offset that the caller alone holds as allocated. False when there is no such offset.
    #[inline]
    pub(super) fn enter(&self, at: usize) -> bool {
        self.cell(at).map(gate::enter).is_some()
    }

    /// Frees an offset, whose cell then reads `state`; false when it is not allocated.
    #[inline]
    pub(super) fn leave(&self, at: usize, state: u8) -> bool {
        self.cell(at).is_some_and(|cell| gate::leave(cell, state))
    }

    /// Which of the `LINE` offsets from `base` on are `UNOWNED`, as bits. Under the map's lock they stay so.
    #[inline]
    pub(super) fn unowned(&self, base: usize) -> u64 {
        let unowned = match self.cells.all().get(base..base + LINE) {
            Some(line) => cells::unowned(line),
            // The last line of a range that is no multiple of it.
            None => one_by_one(self.cells.all().get(base..).unwrap_or_default()),
        };
        // What its last owner did comes before what the next one does.
        fence(Ordering::Acquire);
        unowned
    }

    /// Lists the `UNOWNED` offsets from `from` on in `out`: those of the lines that begin below `end`, and no more than it
    /// holds. Says how many, and the offset that it did not look at any more. Under the map's lock they stay `UNOWNED`.
    pub(super) fn list_unowned(&self, from: usize, end: usize, out: &mut [u64]) -> (usize, u64) {
        let mut base = from & !(LINE - 1);
        let mut unowned = self.unowned(base) & (u64::MAX << (from - base));
        let mut n = 0;
        loop {
            while unowned != 0 {
                let found = base as u64 + u64::from(unowned.trailing_zeros());
                let Some(slot) = out.get_mut(n) else {
                    return (n, found);
                };
                *slot = found;
                n += 1;
                unowned &= unowned - 1;
            }
            base += LINE;
            if base >= end || n == out.len() {
                return (n, base.min(self.cells.all().len()) as u64);
            }
            unowned = self.unowned(base);
        }
    }

    /// Takes an `UNOWNED` or `ORPHAN` offset out of its cell: from here on it is in the map, or in a batch. Under the map's lock.
    #[inline]
    pub(super) fn pick_up(&self, at: usize) {
        if let Some(cell) = self.cell(at) {
            cell.store(FREE, Ordering::Release);
        }
    }

    /// Lays an offset of the map into its cell. Under the map's lock.
    #[inline]
    pub(super) fn lay_down(&self, at: usize) {
        if let Some(cell) = self.cell(at) {
            cell.store(UNOWNED, Ordering::Release);
        }
    }

    /// Whether the offset lies in its cell. Under the map's lock it stays so.
    pub(super) fn is_unowned(&self, at: usize) -> bool {
        self.cell(at)
            .is_some_and(|cell| cell.load(Ordering::Acquire) == UNOWNED)
    }

    /// Marks a free offset that the map had no memory for. Under the map's lock.
    pub(super) fn orphan(&self, at: usize) {
        if let Some(cell) = self.cell(at) {
            cell.store(ORPHAN, Ordering::Release);
        }
    }

    /// Whether the map had no memory for the offset. Under the map's lock it stays so.
    pub(super) fn is_orphan(&self, at: usize) -> bool {
        self.cell(at)
            .is_some_and(|cell| cell.load(Ordering::Acquire) == ORPHAN)
    }

    /// The lines of the chunks that were ever used, by their first offsets.
    pub(super) fn used_lines(&self) -> impl Iterator<Item = usize> {
        self.used_chunks()
            .flat_map(|(base, cells)| (base..base + cells.len()).step_by(LINE))
    }

    /// First half of a free of several: false when the offset is not allocated.
    pub(super) fn begin_to_leave(&self, at: usize) -> bool {
        self.cell(at).is_some_and(|cell| {
            cell.compare_exchange(LIVE, LEAVING, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Second half: the cell reads `state` then. A fence must follow before the gate is looked at.
    pub(super) fn end_leaving(&self, at: usize, state: u8) {
        if let Some(cell) = self.cell(at) {
            cell.store(state, Ordering::SeqCst);
        }
    }

    pub(super) fn is_allocated(&self, at: usize) -> bool {
        self.cell(at)
            .is_some_and(|cell| gate::is_in_use(cell.load(Ordering::Acquire)))
    }

    /// The lowest allocated offset that is not below `from`.
    pub(super) fn next_allocated(&self, from: usize) -> Option<usize> {
        self.used_chunks()
            .filter(|(base, cells)| base + cells.len() > from)
            .find_map(|(base, cells)| {
                let skip = from.saturating_sub(base);
                let found = cells[skip..]
                    .iter()
                    .position(|cell| gate::is_in_use(cell.load(Ordering::Acquire)))?;
                Some(base + skip + found)
            })
    }

    /// The lowest offset that is not allocated and not below `from`.
    pub(super) fn next_vacant(&self, from: usize) -> Option<usize> {
        let chunks = self.touched.iter().zip(self.cells.all().chunks(CHUNK));
        chunks
            .enumerate()
            .skip(from / CHUNK)
            .find_map(|(i, (touched, cells))| {
                let base = i * CHUNK;
                let skip = from.saturating_sub(base);
                let cells = cells.get(skip..)?;
                let found = if touched.load(Ordering::Relaxed) == 0 {
                    // None of them was ever used.
                    (!cells.is_empty()).then_some(0)
                } else {
                    let held = |cell: &AtomicU8| gate::is_in_use(cell.load(Ordering::Acquire));
                    cells.iter().position(|cell| !held(cell))
                };
                found.map(|found| base + skip + found)
            })
    }

    /// Cells that are free: see [`gate::vacant`].
    pub(super) fn vacant(&self) -> u64 {
        let mut vacant = self.cells.all().len() as u64;
        for (_, cells) in self.used_chunks() {
            vacant -= cells.len() as u64;
            vacant += gate::vacant(cells);
        }
        vacant
    }

    /// Cells of what is in use. Read without stopping any thread.
    pub(super) fn allocated(&self) -> u64 {
        self.used_chunks()
            .flat_map(|(_, cells)| cells)
            .map(|cell| u64::from(gate::is_in_use(cell.load(Ordering::Relaxed))))
            .sum()
    }

    /// Bytes that are backed by memory.
    pub(super) fn bytes(&self) -> usize {
        self.used_chunks().count() * CHUNK + self.touched.len()
    }

    fn used_chunks(&self) -> impl Iterator<Item = (usize, &[AtomicU8])> {
        self.touched
            .iter()
            .zip(self.cells.all().chunks(CHUNK))
            .enumerate()
            .filter(|(_, (touched, _))| touched.load(Ordering::Relaxed) != 0)
            .map(|(i, (_, cells))| (i * CHUNK, cells))
    }
}

#[cfg(not(any(loom, shuttle)))]
mod cells {
    use super::{AtomicU8, IdError, System};
    use crate::os::MetaRegion;
    use std::sync::Arc;

    /// The cells in memory of the system's, which backs what is touched.
    #[derive(Debug)]
    pub(super) struct Cells {
        region: MetaRegion,
        len: usize,
    }

    impl Cells {
        pub(super) fn new(system: Arc<dyn System>, len: usize) -> Result<Self, IdError> {
            let region = MetaRegion::new(system, len, 64).map_err(|_| IdError::OutOfMemory)?;
            Ok(Self { region, len })
        }

        #[inline]
        pub(super) fn all(&self) -> &[AtomicU8] {
            // SAFETY: the region was made with at least `len` bytes, zero at first, and lives as long as this value. An
            // atomic byte has the size and alignment of a byte, every byte is a value of it, and the region is private
            // to this type and read and written through this slice only, so all accesses to it are atomic.
            unsafe { core::slice::from_raw_parts(self.region.span().at.as_ptr().cast(), self.len) }
        }
    }

    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    pub(super) use super::one_by_one as unowned;

    /// Which of `LINE` cells are `UNOWNED`, as bits: 16 cells at a time, 24 instructions in all.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline]
    pub(super) fn unowned(line: &[AtomicU8]) -> u64 {
        const WANTED: u32 = u32::from_ne_bytes([super::UNOWNED; 4]);
        if line.len() != super::LINE {
            return super::one_by_one(line);
        }
        let [a, b, c, d]: [u32; 4];
        // SAFETY: `line` has 64 bytes, and the instructions read these and nothing else, and write only registers that
        // they name. Others may store into the bytes meanwhile, atomically and one by one; each load does what 16 relaxed
        // loads of a byte would do, for the processor never delivers a byte that was not stored. It is written in
        // assembler since the language knows no load of 16 atomic bytes; to the compiler it is a call of a function that
        // reads memory. Every x86-64 processor has SSE2.
        unsafe {
            core::arch::asm!(
                "movd {wanted}, {a:e}",
                "pshufd {wanted}, {wanted}, 0",
                "movdqu {states}, [{line}]",
                "pcmpeqb {states}, {wanted}",
                "pmovmskb {a:e}, {states}",
                "movdqu {states}, [{line} + 16]",
                "pcmpeqb {states}, {wanted}",
                "pmovmskb {b:e}, {states}",
                "movdqu {states}, [{line} + 32]",
                "pcmpeqb {states}, {wanted}",
                "pmovmskb {c:e}, {states}",
                "movdqu {states}, [{line} + 48]",
                "pcmpeqb {states}, {wanted}",
                "pmovmskb {d:e}, {states}",
                line = in(reg) line.as_ptr(),
                wanted = out(xmm_reg) _,
                states = out(xmm_reg) _,
                a = inout(reg) WANTED => a,
                b = out(reg) b,
                c = out(reg) c,
                d = out(reg) d,
                options(nostack, readonly, preserves_flags),
            );
        }
        u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48
    }
}

#[cfg(any(loom, shuttle))]
mod cells {
    use super::{AtomicU8, IdError, System};
    use std::sync::Arc;

    /// The cells as values that the model checker knows.
    #[derive(Debug)]
    pub(super) struct Cells(Vec<AtomicU8>);

    impl Cells {
        pub(super) fn new(_: Arc<dyn System>, len: usize) -> Result<Self, IdError> {
            Ok(Self((0..len).map(|_| AtomicU8::new(0)).collect()))
        }

        pub(super) fn all(&self) -> &[AtomicU8] {
            &self.0
        }
    }

    pub(super) use super::one_by_one as unowned;
}

use cells::Cells;
