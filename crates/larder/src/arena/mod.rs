//! Arenas: ranges of any integer resource, in constant time (vmem).
//!
//! Addresses, page numbers and identifiers are all numbers in spans, of which callers want so many in a row. This is Bonwick
//! and Adams' vmem ("Magazines and Vmem: Extending the Slab Allocator to Many CPUs and Arbitrary Resources", USENIX 2001),
//! which never looks at what it hands out.
//!
//! ```
//! use larder::arena::{Arena, Request};
//!
//! let ports = Arena::builder("ports").quantum_max(4).build()?;
//! ports.add(1024, 64512)?;
//! let port = ports.alloc(1)?;                                  // from a quantum cache: no lock
//! let pair = ports.xalloc(&Request::new(2).align(2))?;         // an even one and the next
//! ports.free(pair, 2)?;
//! assert!(ports.free(port, 2).is_err(), "the size is checked, and so is the address");
//! ports.free(port, 1)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! | level | modules |
//! |---|---|
//! | an arena and its handles: the quantum caches first, then the ranges | `arena`, `handle`, `walk`, `stats`, `builder` |
//! | quantum caches: magazines of segments over the ranges | `quantum` |
//! | ranges: a core behind a lock, with spans from a source | `ranges`, `import`, `request`, `check` |
//! | the core: segments and fits, below all that hands out memory | `core` |
//!
//! What differs from 2001: magazines are per CPU without a lock and their rounds are tags, not addresses, so that a segment's
//! owner is known without a lock and a second free is an error; the hash grows by one bucket at a time and never stalls;
//! tags come from the system in one range of addresses instead of from an arena below.

#![forbid(unsafe_code)]

#[allow(clippy::module_inception)]
mod arena;
mod builder;
mod check;
pub(crate) mod core;
mod error;
mod handle;
mod import;
mod quantum;
mod ranges;
mod request;
mod stats;
mod walk;

pub use self::core::{Extent, Fit};
pub use crate::magazine::StockStats;
pub use arena::Arena;
pub use builder::ArenaBuilder;
pub use error::{ArenaError, Refusal};
pub use handle::ArenaHandle;
pub use import::Import;
pub use request::Request;
pub use stats::ArenaStats;
pub use walk::{Segment, SegmentKind};
