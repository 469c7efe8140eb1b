//! What the program's heap holds.

use super::{HeapMode, bootstrap, slot, state};
use crate::heap::{CLASSES, Heap, SIZES};

/// One size class.
///
/// ```
/// # #[global_allocator] static ALLOCATOR: larder::Larder = larder::Larder;
/// let boxed = Box::new([0_u8; 10]);
/// let class = larder::Larder::stats().classes[0];
/// assert_eq!(class.size, 16);
/// assert!(class.out >= 1 && class.held_bytes > 0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// Bytes of an object.
    pub size: usize,
    /// Bytes of its slabs.
    pub held_bytes: usize,
    /// Objects that are not in slabs: in use, or ready in magazines.
    pub out: usize,
    /// Slabs.
    pub slabs: usize,
}

/// What the program's heap holds. Read without stopping any thread, so the numbers are of slightly different moments.
///
/// ```
/// # #[global_allocator] static ALLOCATOR: larder::Larder = larder::Larder;
/// let large = vec![1_u8; 5_000_000];
/// let stats = larder::Larder::stats();
/// assert!(stats.large_bytes >= 5_000_000 && stats.held_bytes >= stats.out_bytes);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalStats {
    /// How objects are kept ready; `None` where there is no heap yet.
    pub mode: Option<HeapMode>,
    /// The size classes.
    pub classes: [ClassStats; CLASSES],
    /// Bytes of large objects, and of those that other threads keep to use them again.
    pub large_bytes: usize,
    /// Bytes of pages that the heap holds, in use or not.
    pub held_bytes: usize,
    /// Bytes of pages that are in slabs or large objects.
    pub out_bytes: usize,
    /// Bytes in use for what is known of slabs.
    pub metadata_bytes: usize,
    /// Bytes of objects of the size classes that are in use. Those that are ready in the magazines of other threads count as such.
    pub in_use_bytes: usize,
    /// Bytes that were given out before there was a heap.
    pub bootstrap_bytes: usize,
}

pub(super) fn stats() -> GlobalStats {
    let mut stats = GlobalStats {
        mode: state::global().map(|global| global.mode),
        classes: SIZES.map(|size| ClassStats {
            size,
            ..ClassStats::default()
        }),
        large_bytes: 0,
        held_bytes: 0,
        out_bytes: 0,
        metadata_bytes: 0,
        in_use_bytes: 0,
        bootstrap_bytes: bootstrap::used(),
    };
    if let Some(global) = state::global() {
        let family = global.classes.family();
        let pool = family.pool().stats();
        let heap = slot::heap().or_else(|| slot::hardened().map(|thread| &thread.heap));
        let kept = heap.map_or(0, Heap::kept_bytes);
        stats.large_bytes = family.large_held_bytes().saturating_sub(kept);
        stats.held_bytes = pool.held_bytes;
        stats.out_bytes = pool.out_bytes;
        stats.metadata_bytes = family.metadata_bytes();
        let mut in_use = 0;
        for (class, stats) in stats.classes.iter_mut().enumerate() {
            if let Some(cache) = global.classes.cache(class) {
                let of = cache.stats();
                (stats.held_bytes, stats.out, stats.slabs) = (of.held_bytes, of.out, of.slabs);
                let ready = cache.stock().full_rounds();
                in_use += of.out.saturating_sub(ready) * stats.size;
            }
        }
        let ready = slot::heap().map_or(0, |heap| heap.stats().stocked_bytes - kept);
        stats.in_use_bytes = in_use.saturating_sub(ready);
    }
    stats
}
