//! Families of object caches.

pub(crate) mod bulk;
pub(crate) mod cache;
pub(crate) mod cache_handle;
pub(crate) mod cache_options;
pub(crate) mod cache_stats;
pub(crate) mod family;
pub(crate) mod family_options;
pub(crate) mod family_stats;
pub(crate) mod large;
