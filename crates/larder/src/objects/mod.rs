//! Objects of one size, recycled before a page is asked for, and constructed once.
//!
//! ```
//! use std::alloc::Layout;
//! use larder::objects::{Family, RawCache};
//!
//! let family = Family::new()?;                       // one reservation, shared by its caches
//! let cache = RawCache::new(&family, Layout::new::<[u64; 8]>())?;
//! let object = cache.get()?;                         // contents: whatever a former owner left
//! // SAFETY: taken above, put once.
//! unsafe { cache.put(object) };                      // back to this CPU's stock
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! The scheme is Bonwick's slab allocator ("The Slab Allocator", USENIX 1994) with magazines (Bonwick and Adams,
//! "Magazines and Vmem", USENIX 2001). A *slab* is a run of pages cut into objects. Everything known of it lies out of
//! line: objects carry no links, so what was constructed stays so, and freed memory cannot corrupt the allocator. In
//! front of the slabs stands the stock layer (`magazine`), which does not know what it keeps.
//!
//! A [`Family`] is what caches share: a pool of pages with one reservation, and for each page of it the number of the
//! cache that owns it. So an address alone leads to its cache.
//!
//! # What goes back
//!
//! Magazines that an interval did not need go to the slabs, slabs that it did not need to the pool, and pages that it
//! did not need to the system. Slow paths do that when the interval is over; [`Family::maintain`] does it now, and the
//! thread that [`Family::start_helper`] starts does it periodically.
//!
//! # fork
//!
//! The child of a fork may go on using its copy of everything. Objects that other threads were just moving are lost to
//! it. The reaper does not exist in the child.

mod bound;
mod builder;
mod cache;
mod caches;
mod error;
mod family;
mod grow;
mod handle;
#[cfg(all(test, not(loom)))]
mod heap_tests;
mod large;
mod large_list;
mod links;
mod map;
mod meta;
mod outgrown;
mod raw;
mod reaper;
mod shape;
mod slab;
mod slabs;
mod stats;
mod supply;
mod table;
mod typed;
mod under_heap;
mod upkeep;

pub use builder::{Callbacks, RawCacheBuilder};
pub use error::{Misuse, ObjectError};
pub use family::{Family, FamilyBuilder, Owner};
pub use handle::RawHandle;
pub(crate) use large_list::LargeList;
pub(crate) use map::{PLACE_BYTES, View};
pub use raw::RawCache;
pub use shape::MAX_OBJECT;
pub use stats::{CacheStats, Name};
pub(crate) use table::KEPT;
pub use typed::{Object, ObjectCache, ObjectCacheBuilder, ObjectHandle, OwnedObject};
