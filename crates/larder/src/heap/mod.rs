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
//! | a search for a mistake | [`Classes::checked`], or `LARDER_HEAP_DEBUG=on` |
//! | a whole program | [`Larder`](global::Larder), or the malloc that can be preloaded |
//!
//! Sizes up to [`MAX_SMALL`] are rounded up to a [size class](SIZES); larger ones are runs of pages. All metadata lies out
//! of line.

mod account;
#[cfg(feature = "allocator-api2")]
mod allocator;
mod at_hand;
mod checked;
mod class;
mod classes;
pub mod debug;
mod error;
pub mod global;
mod growth;
#[allow(clippy::module_inception)]
mod heap;
mod limit;
mod many;
mod resize;
mod served;
mod upkeep;

pub use account::HeapStats;
pub use class::{CLASSES, GRAIN, MAX_SMALL, SIZES, class_of, class_of_layout};
pub use classes::Classes;
pub use error::AllocError;
pub use heap::Heap;
pub use served::Served;
