//! The mail's slab: a pointer that moves through an array.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// How far apart the pieces lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// One behind the other, as in the mail's program: pieces of several threads share a cache line.
    Close,
    /// Each on two lines of its own.
    Apart,
}

impl Spacing {
    /// By the name that a factor has.
    ///
    /// # Errors
    /// Names the two that there are.
    pub fn of(name: &str) -> anyhow::Result<Self> {
        match name {
            "his" => Ok(Self::Close),
            "apart" => Ok(Self::Apart),
            other => anyhow::bail!("slab '{other}' is unknown; it is 'his' or 'apart'"),
        }
    }
}

/// Two lines: the prefetcher of x86 fetches lines in pairs.
const APART: usize = 128;

/// Bytes of the array: the mail's 160024, and room for pieces that are rounded up.
const BYTES: usize = 160_024 + 128 * APART;

#[repr(align(128))]
#[derive(Debug)]
struct Lines(UnsafeCell<[u8; BYTES]>);

/// Memory that is handed out once and never taken back.
#[derive(Debug)]
pub struct Slab {
    memory: Box<Lines>,
    // The mail's mutex around `slab_top`; a request is rare.
    top: Mutex<usize>,
    spacing: Spacing,
}

// SAFETY: a byte of the array is handed out once, under the lock; afterwards it is its receiver's alone.
unsafe impl Sync for Slab {}

impl Slab {
    /// An empty slab.
    #[must_use]
    pub fn new(spacing: Spacing) -> Self {
        Self {
            memory: Box::new(Lines(UnsafeCell::new([0; BYTES]))),
            top: Mutex::new(0),
            spacing,
        }
    }

    /// The next piece, of no particular alignment; `None` when the array is used up.
    pub fn take(&self, bytes: usize) -> Option<NonNull<u8>> {
        let bytes = match self.spacing {
            Spacing::Close => bytes,
            Spacing::Apart => bytes.checked_next_multiple_of(APART)?,
        };
        let mut top = self.top.lock().unwrap_or_else(PoisonError::into_inner);
        let end = top.checked_add(bytes).filter(|end| *end <= BYTES)?;
        let at = *top;
        *top = end;
        // SAFETY: `at` is within the array.
        NonNull::new(unsafe { self.memory.0.get().cast::<u8>().add(at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_each_other_or_lie_apart() {
        for (spacing, distance) in [(Spacing::Close, 10), (Spacing::Apart, 128)] {
            let slab = Slab::new(spacing);
            let a = slab.take(10).expect("room");
            let b = slab.take(10).expect("room");
            assert_eq!(b.as_ptr().addr() - a.as_ptr().addr(), distance);
            assert!(slab.take(BYTES).is_none());
            assert!(slab.take(usize::MAX).is_none());
        }
        assert!(Spacing::of("near").is_err());
    }
}
