//! Block caches.

pub(crate) mod cache;
pub(crate) mod cache_options;
pub(crate) mod file;
pub(crate) mod handle;
pub(crate) mod storage;
