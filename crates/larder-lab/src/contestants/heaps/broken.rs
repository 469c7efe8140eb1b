//! An allocator that is wrong on purpose: a workload must detect a broken allocator.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Heap, Heaps};

/// Hands out, every n-th time, a block that is still in use, if one of the size is.
///
/// Every call takes a lock and walks a list: it is for tests.
#[derive(Debug)]
pub struct Broken<A> {
    inner: A,
    every: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: u64,
    planted: u64,
    /// Blocks that are out, the oldest first.
    out: Vec<Out>,
}

#[derive(Debug, Clone, Copy)]
struct Out {
    address: usize,
    bytes: usize,
    owners: usize,
}

impl<A: Heaps> Broken<A> {
    /// Breaks `inner`: each `every`-th block has an owner already. 0 never does.
    pub fn new(inner: A, every: u64) -> Self {
        Self {
            inner,
            every,
            state: Mutex::default(),
        }
    }

    /// How many blocks were handed out twice.
    pub fn planted(&self) -> u64 {
        self.state().planted
    }

    /// How many blocks were asked for.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// How many blocks are out.
    pub fn out(&self) -> usize {
        self.state().out.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's way into a [`Broken`] allocator.
#[derive(Debug)]
pub struct BrokenLocal<'a, A: Heaps + 'a> {
    shared: &'a Broken<A>,
    inner: A::Local<'a>,
}

impl<A: Heaps> Heap for BrokenLocal<'_, A> {
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let mut state = self.shared.state();
        state.calls += 1;
        let planted = self.shared.every > 0 && state.calls.is_multiple_of(self.shared.every);
        if planted && let Some(victim) = state.out.iter_mut().find(|out| out.bytes >= bytes) {
            victim.owners += 1;
            let address = victim.address;
            state.planted += 1;
            return NonNull::new(std::ptr::with_exposed_provenance_mut(address));
        }
        let block = self.inner.alloc(bytes)?;
        state.out.push(Out {
            address: block.as_ptr().expose_provenance(),
            bytes,
            owners: 1,
        });
        Some(block)
    }

    unsafe fn free(&mut self, block: NonNull<u8>, _bytes: usize) {
        let mut state = self.shared.state();
        let address = block.as_ptr().addr();
        let Some(at) = state.out.iter().position(|out| out.address == address) else {
            return;
        };
        state.out[at].owners -= 1;
        if state.out[at].owners == 0 {
            let out = state.out.remove(at);
            // SAFETY: allocated by `inner` with as many bytes, and its last owner gave it up.
            unsafe { self.inner.free(block, out.bytes) };
        }
    }
}

impl<A: Heaps> Heaps for Broken<A> {
    type Local<'a>
        = BrokenLocal<'a, A>
    where
        Self: 'a;

    fn local(&self) -> anyhow::Result<BrokenLocal<'_, A>> {
        Ok(BrokenLocal {
            shared: self,
            inner: self.inner.local()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::SystemMalloc;
    use super::*;

    #[test]
    fn every_third_block_is_the_first_one_again() {
        let broken = Broken::new(SystemMalloc, 3);
        let mut heap = broken.local().expect("a heap");
        let blocks: Vec<_> = (0..6).map(|_| heap.alloc(32).expect("a block")).collect();
        assert_eq!(blocks[2], blocks[0]);
        assert_eq!(blocks[5], blocks[0]);
        assert_ne!(blocks[1], blocks[0]);
        assert_eq!(broken.planted(), 2);
        for block in blocks {
            // SAFETY: from this heap; it counts the owners.
            unsafe { heap.free(block, 32) };
        }
        assert_eq!(broken.out(), 0);
    }
}
