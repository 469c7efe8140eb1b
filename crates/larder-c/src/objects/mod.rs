//! Families of object caches.

pub(crate) mod cache;
pub(crate) mod cache_handle;
pub(crate) mod cache_options;
pub(crate) mod cache_stats;
pub(crate) mod family;
