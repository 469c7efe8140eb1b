//! What a heap may take, and what it calls when it takes more than it should.

use super::{Heap, HeapStats};

impl Heap {
    /// Bounds what the heap takes, in bytes: objects in use and free ones in its magazines, by the sizes of their
    /// classes. Checked when a magazine is empty, so up to a magazine's worth may be in use already.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let layout = Layout::new::<[u64; 4]>();
    /// heap.set_limit(1 << 20);
    /// assert!(heap.alloc(Layout::new::<[u8; 2 << 20]>()).is_err());
    /// assert!(heap.alloc(layout).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_limit(&self, bytes: usize) {
        self.account().limit = bytes;
    }

    /// Calls `f` when the heap takes memory beyond `bytes`; once until it has fallen below again.
    ///
    /// ```
    /// use std::{alloc::Layout, sync::atomic::{AtomicUsize, Ordering}};
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// static TOLD: AtomicUsize = AtomicUsize::new(0);
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// heap.set_warning(1 << 20, |stats| TOLD.store(stats.charged_bytes, Ordering::Relaxed));
    /// heap.alloc(Layout::new::<[u8; 2 << 20]>())?;
    /// assert!(TOLD.load(Ordering::Relaxed) > 1 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_warning(&self, bytes: usize, f: impl Fn(HeapStats) + Send + 'static) {
        let former = self.account().set_warning(bytes, Box::new(f));
        drop(former);
    }
}
