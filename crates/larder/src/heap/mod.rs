//! Heaps: memory of any size, over caches of objects by size class.
//!
//! ```
//! use std::alloc::Layout;
//! use larder::{heap::{Classes, Heap}, objects::Family};
//!
//! let classes = Classes::new(&Family::new()?);         // shared by all heaps of a program, or of a part of it
//! let heap = Heap::new(&classes);                      // one owner: no lock, no atomic, no thread-local
//! let layout = Layout::new::<[u8; 100]>();
//! let object = heap.alloc(layout)?;
//! // SAFETY: taken above, put once.
//! unsafe { heap.dealloc(object, layout) };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | for | how |
//! |---|---|
//! | one owner that carries its heap with it (an interpreter, a request, a shard) | [`Heap::new`] |
//! | one owner whose objects all end together | [`Heap::private`] |
//! | any thread | [`Classes`] |
//! | a search for a mistake | `Classes::checked`, or `LARDER_HEAP_DEBUG=on`, with the feature `debug-heap` |
//! | a whole program | [`Larder`], or the malloc that can be preloaded |
//!
//! Sizes up to 4 MiB are rounded up to a size class; larger ones are runs of pages. All metadata lies out of line.

mod account;
#[cfg(feature = "allocator-api2")]
mod allocator;
pub(crate) mod call;
mod checked;
pub(crate) mod class;
mod classes;
#[cfg(feature = "debug-heap")]
pub mod debug;
mod error;
pub(crate) mod global;
mod growth;
mod guards;
mod one_owner;
mod output;
mod pattern;
mod profile;
mod resize;
mod stacks;
mod stderr;
mod table;

pub use account::HeapStats;
pub(crate) use call::{Call, Checker, Claim, Origin, Outcome};
pub(crate) use class::{CLASSES, GRAIN, SIZES, class_of, class_of_layout};
pub use classes::{Classes, Served};
pub use error::AllocError;
pub use global::{ClassStats, GlobalStats, HeapMode, Larder};
pub use one_owner::Heap;
