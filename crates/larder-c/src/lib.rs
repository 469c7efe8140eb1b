//! The C interface of larder: page pools, arenas, object caches and heaps for programs in C and C++, and for every language that can call C.
//!
//! What C sees is `include/larder.h`, made from this crate. The rules of this side:
//!
//! - Names are C's, so that the header needs no table of renames.
//! - Every function goes through `guard`, which turns a panic into [`larder_status::LARDER_PANIC`].
//! - Handles carry a mark, so that NULL, a handle of another kind and one that was freed are told apart.
//! - Structs that may grow begin with their size, so that an old program works with a new library.
//!
//! The model is rustls-ffi: one crate over a library that knows nothing of C.
//!
//! Programs in C and C++ that use all of it are in `examples/`. A Rust program would use [`larder`] itself; the functions can be
//! called from Rust as from C:
//!
//! ```
//! use std::ptr::{null, null_mut};
//! use larder_c::*;
//!
//! let (mut pool, mut page) = (null_mut(), null_mut());
//! // SAFETY: what is passed is NULL or can be written, and the pool is live until it is freed.
//! unsafe {
//!     assert_eq!(larder_pool_new(null(), &raw mut pool, null_mut()), larder_status::LARDER_OK);
//!     assert_eq!(larder_pool_get(pool, &raw mut page, null_mut()), larder_status::LARDER_OK);
//!     assert_eq!(larder_pool_put(pool, null_mut()), larder_status::LARDER_NULL);
//!     assert_eq!(larder_pool_put(pool, page), larder_status::LARDER_OK);
//!     larder_pool_free(pool);
//! }
//! ```

#![allow(non_camel_case_types)]

mod arena;
mod buffer;
mod busy;
mod error;
#[cfg(test)]
mod faults;
mod guard;
mod heap;
mod helper;
mod mark;
mod numbers;
mod objects;
mod options;
mod page_handle;
mod pool;
mod run;
mod stats;
mod version;

pub use arena::options::{larder_arena_options, larder_arena_options_init};
pub use arena::own::{
    larder_arena_handle, larder_arena_handle_alloc, larder_arena_handle_dealloc,
    larder_arena_handle_free, larder_arena_handle_new,
};
pub use arena::quantum_stats::{
    larder_arena_quantum_caches, larder_arena_quantum_stats_read, larder_quantum_stats,
};
pub use arena::request::{
    LARDER_FIT_BEST, LARDER_FIT_DEFAULT, LARDER_FIT_INSTANT, LARDER_FIT_NEXT, larder_arena_request,
    larder_arena_request_init,
};
pub use arena::source::{larder_import_fn, larder_release_fn, larder_span};
pub use arena::stats::{larder_arena_stats, larder_arena_stats_json, larder_arena_stats_read};
pub use arena::walk::{
    LARDER_SEGMENT_ADDED_SPAN, LARDER_SEGMENT_ALLOCATED, LARDER_SEGMENT_CACHED,
    LARDER_SEGMENT_FREE, LARDER_SEGMENT_IMPORTED_SPAN, larder_arena_walk, larder_segment,
    larder_visit_fn,
};
pub use arena::{
    larder_arena, larder_arena_add, larder_arena_alloc, larder_arena_audit, larder_arena_contains,
    larder_arena_dealloc, larder_arena_destroy, larder_arena_drain, larder_arena_free,
    larder_arena_in_use, larder_arena_new, larder_arena_quantum, larder_arena_reap,
    larder_arena_set_limit, larder_arena_xalloc,
};
pub use error::{LARDER_ERROR_BYTES, larder_error, larder_status, larder_strerror};
pub use heap::bulk::{larder_heap_alloc_many, larder_heap_dealloc_many};
pub use heap::classes::{
    larder_classes, larder_classes_alloc, larder_classes_alloc_aligned,
    larder_classes_alloc_zeroed, larder_classes_dealloc, larder_classes_dealloc_aligned,
    larder_classes_dealloc_sized, larder_classes_free, larder_classes_new, larder_classes_realloc,
    larder_classes_usable_bytes,
};
pub use heap::heap_stats::{larder_heap_stats, larder_heap_stats_json, larder_heap_stats_read};
pub use heap::limits::{
    larder_heap_set_limit, larder_heap_set_warning, larder_heap_trim, larder_warning_fn,
};
pub use heap::one_owner::{
    larder_heap, larder_heap_alloc, larder_heap_alloc_aligned, larder_heap_alloc_zeroed,
    larder_heap_dealloc, larder_heap_dealloc_aligned, larder_heap_dealloc_sized, larder_heap_free,
    larder_heap_new, larder_heap_new_private, larder_heap_realloc, larder_heap_usable_bytes,
};
pub use helper::{
    larder_helper_options, larder_helper_options_init, larder_pool_start_helper,
    larder_pool_stop_helper,
};
pub use objects::bulk::{larder_cache_get_many, larder_cache_put_many};
pub use objects::cache::{
    larder_cache, larder_cache_destroy, larder_cache_drain, larder_cache_free, larder_cache_get,
    larder_cache_new, larder_cache_number, larder_cache_put, larder_cache_put_checked,
    larder_cache_reap, larder_cache_stride,
};
pub use objects::cache_handle::{
    larder_cache_handle, larder_cache_handle_flush, larder_cache_handle_free,
    larder_cache_handle_get, larder_cache_handle_len, larder_cache_handle_new,
    larder_cache_handle_put,
};
pub use objects::cache_options::{
    LARDER_CACHE_NO_COLOUR, LARDER_CACHE_TYPE_STABLE, larder_cache_end_fn, larder_cache_options,
    larder_cache_options_init, larder_construct_fn, larder_destruct_fn, larder_reclaim_fn,
};
pub use objects::cache_stats::{
    LARDER_NAME_BYTES, larder_cache_stats, larder_cache_stats_json, larder_cache_stats_read,
};
pub use objects::family::{
    larder_family, larder_family_drain, larder_family_free, larder_family_new, larder_family_owner,
    larder_family_pool, larder_family_reap, larder_family_start_reaper, larder_family_stop_reaper,
};
pub use objects::family_options::{larder_family_options, larder_family_options_init};
pub use objects::family_stats::{
    larder_family_stats, larder_family_stats_json, larder_family_stats_read,
};
pub use objects::large::{
    larder_family_get_large, larder_family_large_bytes, larder_family_put_large,
};
pub use options::{
    LARDER_MODE_AUTO, LARDER_MODE_LOCKED, LARDER_POOL_FREE_LAZILY, LARDER_POOL_HUGE_PAGES,
    LARDER_POOL_IGNORE_ENVIRONMENT, LARDER_POOL_NO_POPULATE, larder_pool_options,
    larder_pool_options_init,
};
pub use page_handle::{
    larder_page_handle, larder_page_handle_free, larder_page_handle_get,
    larder_page_handle_get_zeroed, larder_page_handle_len, larder_page_handle_new,
    larder_page_handle_put,
};
pub use pool::{
    larder_pool, larder_pool_cluster_pages, larder_pool_free, larder_pool_get,
    larder_pool_get_many, larder_pool_get_zeroed, larder_pool_get_zeroed_sparse,
    larder_pool_maintain, larder_pool_new, larder_pool_page_size, larder_pool_put,
    larder_pool_put_many, larder_pool_set_cluster, larder_pool_set_limit, larder_pool_trim,
};
pub use run::{
    larder_pool_get_run, larder_run, larder_run_bytes, larder_run_data, larder_run_free,
};
pub use stats::{larder_pool_stats, larder_pool_stats_json, larder_pool_stats_read};
pub use version::{larder_mode, larder_version};
