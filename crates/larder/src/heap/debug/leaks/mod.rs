//! Leaks: blocks that the program cannot reach any more.
//!
//! A conservative mark, as in Boehm and Weiser, "Garbage Collection in an Uncooperative Environment" (1988): whatever in
//! the roots looks like an address in a block keeps the block, and what lies in a block that is kept keeps others. Roots are
//! all private memory that the program can write, but for the heap's own: data of all modules, thread-local variables,
//! stacks from their tops on, registers, and what the program mapped itself. Other threads are stopped meanwhile by a signal.

mod mark;
mod memory;
mod report;
mod roots;
mod threads;

pub(crate) use threads::Here;

use super::heap::DebugHeap;
use super::say;

/// What the search found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LeakStats {
    /// Blocks that cannot be reached.
    pub blocks: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Live blocks that were looked at.
    pub live: usize,
}

impl DebugHeap {
    /// Searches, and reports what it found. `None` when there was no memory for it.
    pub(crate) fn leaks(&self, here: &Here) -> Option<LeakStats> {
        let inner = self.inner.lock();
        let found = mark::find(self, &inner, here).and_then(|found| {
            let stats = found.stats();
            Ok((found.groups(&inner)?, stats))
        });
        // Names are looked up without the lock.
        drop(inner);
        match found {
            Ok((groups, stats)) => {
                report::tell(self, &groups, stats);
                Some(stats)
            }
            Err(_) => {
                say(format_args!("leaks: there is no memory to search them"));
                None
            }
        }
    }
}
