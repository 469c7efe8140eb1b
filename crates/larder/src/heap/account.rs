//! What a heap has taken, and when it has had enough.

use core::fmt;

use super::error::AllocError;

/// What a heap has taken and done.
///
/// ```
/// use std::alloc::Layout;
/// use larder::{heap::{Classes, Heap}, objects::Family};
/// let heap = Heap::new(&Classes::new(&Family::new()?));
/// heap.alloc(Layout::new::<[u8; 5_000_000]>())?;
/// let stats = heap.stats();
/// assert!(stats.large_bytes >= 5_000_000 && stats.charged_bytes >= stats.large_bytes);
/// assert_eq!((stats.stocked_bytes, stats.refills), (0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapStats {
    /// Bytes taken from the classes and not given back: objects in use, and free ones in the heap's magazines. What
    /// another heap frees stays on this one's account; what this one frees for others is taken off.
    pub charged_bytes: usize,
    /// Bytes of these in large objects.
    pub large_bytes: usize,
    /// Bytes of free objects in the heap's magazines, and of the run of pages that it keeps.
    pub stocked_bytes: usize,
    /// The limit in bytes.
    pub limit_bytes: usize,
    /// Allocations that found the loaded magazine empty, and large ones.
    pub refills: u64,
}

type Warning = Box<dyn Fn(HeapStats) + Send>;

/// The account. Objects are counted when they come in magazines, so that the fast path counts nothing.
pub(super) struct Account {
    pub(super) limit: usize,
    /// Below zero when a heap frees more than it allocated.
    charged: isize,
    large: isize,
    pub(super) refills: u64,
    /// Intervals of the family that the heap has seen.
    pub(super) intervals: u32,
    /// Collections of the classes that it has seen.
    pub(super) collections: u32,
    /// Refills by the last collection of its own.
    pub(super) collected: u64,
    warn_at: usize,
    warned: bool,
    warning: Option<Warning>,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            limit: usize::MAX,
            charged: 0,
            large: 0,
            refills: 0,
            intervals: 0,
            collections: 0,
            collected: 0,
            warn_at: usize::MAX,
            warned: false,
            warning: None,
        }
    }
}

impl Account {
    fn charged(&self) -> usize {
        usize::try_from(self.charged).unwrap_or(0)
    }

    /// Bytes that may still be taken, at least `size`.
    pub(super) fn room(&self, size: usize) -> Result<usize, AllocError> {
        let charged = self.charged();
        let room = self.limit.saturating_sub(charged);
        if room < size {
            return Err(AllocError::Limit {
                size,
                charged,
                limit: self.limit,
            });
        }
        Ok(room)
    }

    pub(super) fn take(&mut self, bytes: usize) {
        self.refills += 1;
        self.charged = self.charged.saturating_add_unsigned(bytes);
    }

    pub(super) fn give(&mut self, bytes: usize) {
        self.charged = self.charged.saturating_sub_unsigned(bytes);
        if self.charged() <= self.warn_at {
            self.warned = false;
        }
    }

    pub(super) fn take_large(&mut self, bytes: usize) {
        self.take(bytes);
        self.large = self.large.saturating_add_unsigned(bytes);
    }

    pub(super) fn give_large(&mut self, bytes: usize) {
        self.give(bytes);
        self.large = self.large.saturating_sub_unsigned(bytes);
    }

    /// What was charged with so many bytes counts as `bytes` from now on.
    pub(super) fn outgrow(&mut self, had: usize, large: bool, bytes: usize) {
        if large {
            self.large = self.large.saturating_sub_unsigned(had);
        }
        self.give(had.saturating_sub(bytes));
    }

    /// Returns the former function, for the caller to drop when nothing of the account is borrowed any more: what is in it
    /// may come back here.
    #[must_use]
    pub(super) fn set_warning(&mut self, bytes: usize, f: Warning) -> Option<Warning> {
        self.warn_at = bytes;
        self.warned = false;
        self.warning.replace(f)
    }

    /// Whether a warning is due, which counts as given.
    pub(super) fn is_due(&mut self) -> bool {
        let due = !self.warned && self.charged() > self.warn_at;
        self.warned |= due;
        due
    }

    /// The function, for the time in which it is called.
    pub(super) fn take_warning(&mut self) -> Option<Warning> {
        self.warning.take()
    }

    /// Keeps the function again, unless it has set another; then it comes back, to be dropped as in
    /// [`set_warning`](Self::set_warning).
    #[must_use]
    pub(super) fn keep_warning(&mut self, f: Warning) -> Option<Warning> {
        if self.warning.is_some() {
            return Some(f);
        }
        self.warning = Some(f);
        None
    }

    pub(super) fn stats(&self, stocked: usize) -> HeapStats {
        HeapStats {
            charged_bytes: self.charged(),
            large_bytes: usize::try_from(self.large).unwrap_or(0),
            stocked_bytes: stocked,
            limit_bytes: self.limit,
            refills: self.refills,
        }
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stats(0).fmt(f)
    }
}
