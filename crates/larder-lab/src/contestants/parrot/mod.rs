//! The allocators that the mail on magazines for Parrot describes and measures, written anew from its text and from the
//! program attached to it.
//!
//! They are what the mail timed, not allocators for use: the magazines are arrays without a depot behind them, and the slab
//! never takes anything back. Two things differ from the mail's: a slot belongs to one thread, since two threads in one slot
//! without a lock lose blocks (the mail saw it coming: "this is dangerous"), and a full magazine drops the block where the
//! mail's writes past its end.

mod explicit;
mod global;
mod hashed;
mod lock;
mod slab;
mod stack;

pub use explicit::{ExplicitHandles, Interp};
pub use global::{GlobalLocked, GlobalRef};
pub use hashed::{Hashed, HashedLocal, HashedMutex, HashedMutexLocal};
pub use lock::PthreadMutex;
pub use slab::{Slab, Spacing};
pub use stack::{LockedStack, Stack, StackRef, UnlockedStack};

/// Most threads, as in the mail's program.
pub const MOST_THREADS: usize = 30;

/// The next number of a thread.
///
/// # Errors
/// More threads than the mail's arrays have elements.
fn next_number(counter: &std::sync::atomic::AtomicUsize) -> anyhow::Result<usize> {
    let number = counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    anyhow::ensure!(
        number < MOST_THREADS,
        "the mail's arrays have {MOST_THREADS} elements and thread {} has none; ask for fewer threads",
        number + 1
    );
    Ok(number)
}
