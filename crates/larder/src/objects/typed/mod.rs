//! Caches of Rust values.

mod builder;
mod cache;
mod guard;
mod handle;
mod many;
mod owned;

pub use builder::ObjectCacheBuilder;
pub use cache::ObjectCache;
pub use guard::Object;
pub use handle::ObjectHandle;
pub use owned::OwnedObject;
