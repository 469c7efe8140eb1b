//! One byte for each identifier: free or allocated. Memory follows use, by chunks of a page.

use std::sync::Arc;

use super::gate::{self, FREE, LEAVING, LIVE};
use super::sync::{AtomicU8, Ordering};
use crate::ids::IdError;
use crate::os::System;

/// Identifiers of a chunk.
const CHUNK: usize = 4096;

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

    /// Frees an offset; false when it is not allocated.
    #[inline]
    pub(super) fn leave(&self, at: usize) -> bool {
        self.cell(at).is_some_and(gate::leave)
    }

    /// First half of a free of several: false when the offset is not allocated.
    pub(super) fn begin_to_leave(&self, at: usize) -> bool {
        self.cell(at).is_some_and(|cell| {
            cell.compare_exchange(LIVE, LEAVING, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Second half. A fence must follow before the gate is looked at.
    pub(super) fn end_leaving(&self, at: usize) {
        if let Some(cell) = self.cell(at) {
            cell.store(FREE, Ordering::SeqCst);
        }
    }

    pub(super) fn is_allocated(&self, at: usize) -> bool {
        self.cell(at)
            .is_some_and(|cell| cell.load(Ordering::Acquire) != FREE)
    }

    /// The lowest allocated offset that is not below `from`.
    pub(super) fn next_allocated(&self, from: usize) -> Option<usize> {
        self.used_chunks()
            .filter(|(base, cells)| base + cells.len() > from)
            .find_map(|(base, cells)| {
                let skip = from.saturating_sub(base);
                let found = cells[skip..]
                    .iter()
                    .position(|cell| cell.load(Ordering::Acquire) != FREE)?;
                Some(base + skip + found)
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

    /// Cells that are not free. Read without stopping anybody.
    pub(super) fn allocated(&self) -> u64 {
        self.used_chunks()
            .flat_map(|(_, cells)| cells)
            .map(|cell| u64::from(cell.load(Ordering::Relaxed) != FREE))
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
            // SAFETY: the region was made with at least `len` bytes, zero at first, and lives as long as this value.
            // An atomic byte has the size and alignment of a byte, every byte is a value of it, and the region is private
            // to this type and read and written through this slice only, so nobody accesses it other than atomically.
            unsafe { core::slice::from_raw_parts(self.region.span().at.as_ptr().cast(), self.len) }
        }
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
}

use cells::Cells;
