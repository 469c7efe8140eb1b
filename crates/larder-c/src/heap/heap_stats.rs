//! What a heap has taken and done.

use core::ffi::c_char;

use larder::heap::HeapStats;

use super::one_owner::{Carried, larder_heap};
use crate::error::{larder_error, larder_status};
use crate::numbers::{self, numbers};

/// Numbers of a heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_heap_stats {
    /// Bytes of this struct as the program knows it; set it before the call.
    pub size: usize,
    /// Bytes taken and not given back: objects in use, and free ones in the heap's magazines. What another heap gives back stays on
    /// this one's account.
    pub charged_bytes: u64,
    /// Bytes of these in large objects.
    pub large_bytes: u64,
    /// Bytes of free objects in the heap's magazines.
    pub stocked_bytes: u64,
    /// Most that may be taken; UINT64_MAX without a limit.
    pub limit_bytes: u64,
    /// Allocations that found the loaded magazine empty, and large ones.
    pub refills: u64,
}

numbers!(larder_heap_stats {
    charged_bytes,
    large_bytes,
    stocked_bytes,
    limit_bytes,
    refills
});

pub(super) fn filled(stats: HeapStats) -> larder_heap_stats {
    larder_heap_stats {
        size: size_of::<larder_heap_stats>(),
        charged_bytes: stats.charged_bytes as u64,
        large_bytes: stats.large_bytes as u64,
        stocked_bytes: stats.stocked_bytes as u64,
        limit_bytes: numbers::limit(stats.limit_bytes as u64),
        refills: stats.refills,
    }
}

fn take(heap: &Carried) -> larder_heap_stats {
    filled(heap.enter().stats())
}

/// Reads the numbers; as larder_pool_stats_read.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; `stats` is NULL or has as many writable bytes as its
/// first field says; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_stats_read(
    heap: *const larder_heap,
    stats: *mut larder_heap_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises the same.
    unsafe { numbers::read(heap, stats, error, take) }
}

/// Writes the numbers as one JSON object; as larder_pool_stats_json.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; `buffer` points to `bytes` writable bytes; `needed` and
/// `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_stats_json(
    heap: *const larder_heap,
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises the same.
    unsafe { numbers::json(heap, (buffer, bytes, needed), error, take) }
}
