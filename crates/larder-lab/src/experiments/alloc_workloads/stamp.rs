//! Ownership of blocks: a number in each block that only its owner knows.
//!
//! The owner writes a number that was never used before into the block and keeps it beside the address; when it gives the
//! block up, the number must still stand there. An allocator that hands a block to two owners is caught by the one whose
//! number is gone. The accesses are relaxed atomics, which cost what plain ones do, so that a broken allocator is a wrong
//! number and not a data race.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::contestants::heaps::Heap;
use crate::contestants::timing::keep;

/// Bytes of the number, and the smallest block.
pub(super) const STAMP: usize = size_of::<u64>();

/// What a workload ends with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lost {
    /// There was no block.
    #[error("the allocator has no block of {0} bytes")]
    NoMemory(usize),
    /// The block has another owner too.
    #[error(
        "a block of {bytes} bytes was handed out twice or written to: {found:#x} stands where its owner wrote {wrote:#x}"
    )]
    NotOurs {
        /// Its size.
        bytes: usize,
        /// What the owner wrote.
        wrote: u64,
        /// What stands there.
        found: u64,
    },
    /// The workload's own result is wrong.
    #[error("{0}")]
    Wrong(String),
}

/// A block with its owner's number.
#[derive(Debug)]
pub(crate) struct Block {
    at: NonNull<u8>,
    bytes: usize,
    token: u64,
    tail: bool,
}

// SAFETY: a block belongs to the owner of this value; any thread may free it.
unsafe impl Send for Block {}

impl Block {
    /// Where it begins.
    #[inline(always)]
    pub(super) fn at(&self) -> NonNull<u8> {
        self.at
    }

    /// Its size.
    #[inline(always)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        // SAFETY: the block is at least as large, aligned as malloc's, and alive as long as this value.
        unsafe { AtomicU64::from_ptr(self.at.as_ptr().cast()) }
    }

    #[inline(always)]
    fn end(&self) -> &AtomicU64 {
        let offset = (self.bytes - STAMP) & !(STAMP - 1);
        // SAFETY: the last aligned word within the block.
        unsafe { AtomicU64::from_ptr(self.at.as_ptr().add(offset).cast()) }
    }

    /// Whether it is still this owner's alone.
    ///
    /// # Errors
    /// Another owner wrote to it.
    #[inline(always)]
    pub(super) fn check(&self) -> Result<(), Lost> {
        let found = self.head().load(Ordering::Relaxed);
        if found != self.token {
            return Err(self.not_ours(self.token, found));
        }
        if self.tail {
            let found = self.end().load(Ordering::Relaxed);
            if found != !self.token {
                return Err(self.not_ours(!self.token, found));
            }
        }
        Ok(())
    }

    #[cold]
    fn not_ours(&self, wrote: u64, found: u64) -> Lost {
        Lost::NotOurs {
            bytes: self.bytes,
            wrote,
            found,
        }
    }

    /// Checks it and gives it back.
    ///
    /// # Errors
    /// Another owner wrote to it; then it is given up, since its state is unknown.
    #[inline(always)]
    pub(super) fn give<H: Heap>(self, heap: &mut H) -> Result<(), Lost> {
        self.check()?;
        // SAFETY: the block came from a heap of the same kind with as many bytes, and this value was its only owner.
        unsafe { heap.free(self.at, self.bytes) };
        Ok(())
    }
}

/// Checks blocks and gives them back.
///
/// # Errors
/// One was written to by another owner; the rest is given up.
#[inline(always)]
pub(super) fn give_all<H: Heap>(
    blocks: impl IntoIterator<Item = Block>,
    heap: &mut H,
) -> Result<(), Lost> {
    blocks.into_iter().try_for_each(|block| block.give(heap))
}

/// Makes blocks its own.
#[derive(Debug)]
pub(crate) struct Owner {
    next: u64,
}

impl Owner {
    /// The owner of a number below 2^24: its numbers are like no other owner's.
    pub(super) fn new(number: usize) -> Self {
        Self {
            next: (number as u64 + 1) << 40,
        }
    }

    #[inline(always)]
    fn token(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A block of at least [`STAMP`] bytes with a number at its begin and, where there is room, at its end.
    ///
    /// # Errors
    /// No memory.
    #[inline(always)]
    pub(super) fn take<H: Heap>(&mut self, heap: &mut H, bytes: usize) -> Result<Block, Lost> {
        let block = self.take_head(heap, bytes)?;
        if block.bytes >= 2 * STAMP {
            block.end().store(!block.token, Ordering::Relaxed);
            return Ok(Block {
                tail: true,
                ..block
            });
        }
        Ok(block)
    }

    /// As [`take`](Self::take), with the number at the begin only: the rest is the workload's.
    ///
    /// # Errors
    /// No memory.
    #[inline(always)]
    pub(super) fn take_head<H: Heap>(&mut self, heap: &mut H, bytes: usize) -> Result<Block, Lost> {
        let bytes = bytes.max(STAMP);
        let at = heap.alloc(bytes).ok_or(Lost::NoMemory(bytes))?;
        let block = Block {
            at,
            bytes,
            token: self.token(),
            tail: false,
        };
        block.head().store(block.token, Ordering::Relaxed);
        // LLVM knows malloc and free by name and may remove a pair whose block no other code can see.
        keep(at.as_ptr());
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::heaps::{Broken, Heaps, SystemMalloc};

    #[test]
    fn the_first_owner_of_a_block_with_two_is_told() {
        for bytes in [8, 16, 100] {
            let broken = Broken::new(SystemMalloc, 2);
            let mut heap = broken.local().expect("a heap");
            let mut owner = Owner::new(3);
            let first = owner.take(&mut heap, bytes).expect("a block");
            let second = owner.take(&mut heap, bytes).expect("the same block");
            assert_eq!(first.at(), second.at());
            assert_eq!(second.check(), Ok(()));
            assert!(matches!(first.give(&mut heap), Err(Lost::NotOurs { .. })));
            second.give(&mut heap).expect("the last one that wrote");
        }
    }

    #[test]
    fn a_write_to_the_end_is_told() {
        let mut heap = SystemMalloc;
        let block = Owner::new(0).take(&mut heap, 33).expect("a block");
        // SAFETY: within the block.
        unsafe { block.at().as_ptr().add(24).write(0) };
        assert!(block.check().is_err());
    }
}
