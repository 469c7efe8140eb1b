//! The C interface of larder: page pools, arenas, identifiers, object caches, heaps, block caches and SQLite's page cache for programs in C and C++, and for every language that can call C.
//!
//! What C sees is `include/larder.h`, made from this crate. The rules of this side:
//!
//! - Names are C's, so that the header needs no table of renames.
//! - Every function that can fail goes through `call`, which turns a panic into [`larder_status::LARDER_PANIC`].
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
mod blocks;
mod buffer;
mod bulk;
mod busy;
mod call;
mod error;
mod heap;
mod helper;
mod ids;
mod mark;
mod numbers;
mod objects;
mod options;
mod page_handle;
mod pool;
mod run;
mod sqlite;
mod stats;
#[cfg(test)]
mod tests;
mod version;

// What is public in these modules is what C sees.
pub use arena::named::*;
pub use arena::options::*;
pub use arena::own::*;
pub use arena::request::*;
pub use arena::shared::*;
pub use arena::source::*;
pub use arena::stats::*;
pub use arena::walk::*;
pub use blocks::cache::*;
pub use blocks::cache_options::*;
pub use blocks::file::*;
pub use blocks::handle::*;
pub use blocks::storage::*;
pub use error::*;
pub use heap::classes::*;
pub use heap::one_owner::*;
pub use helper::*;
pub use ids::*;
pub use objects::cache::*;
pub use objects::cache_handle::*;
pub use objects::cache_options::*;
pub use objects::cache_stats::*;
pub use objects::family::*;
pub use options::*;
pub use page_handle::*;
pub use pool::*;
pub use run::*;
pub use sqlite::*;
pub use stats::*;
pub use version::*;
