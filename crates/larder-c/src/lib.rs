//! The C interface of larder: page pools for programs in C and C++, and for whoever can call them.
//!
//! What C sees is `include/larder.h`, made from this crate. The rules of this side:
//!
//! - Names are C's, so that the header needs no table of renames.
//! - Every function goes through `guard`, which turns a panic into [`larder_status::LARDER_PANIC`].
//! - Handles carry a mark, so that NULL, a handle of another kind and one that was freed are told apart.
//! - Structs that may grow begin with their size, so that an old program works with a new library.
//!
//! The model is rustls-ffi: one crate over a library that knows nothing of C.

#![allow(non_camel_case_types)]
#![allow(clippy::missing_safety_doc)] // Each function says what its pointers must be, for the C reader.

mod buffer;
mod error;
mod guard;
mod helper;
mod mark;
mod options;
mod page_handle;
mod pool;
mod run;
mod stats;
mod version;

pub use error::{LARDER_ERROR_BYTES, larder_error, larder_status, larder_strerror};
pub use helper::{
    larder_helper_options, larder_helper_options_init, larder_pool_start_helper,
    larder_pool_stop_helper,
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
