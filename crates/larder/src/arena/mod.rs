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
//! A *span* is what was added or imported; *segments* tile it. Each has a boundary tag (`tag`), out of line, in a ring
//! with its neighbours, so that freeing joins in constant time. Free segments lie on power-of-two lists (`list`), allocated
//! ones in a hash by address (`hash`), spans in a tree (`index`). `request` says what is wanted and where it fits, `fit`
//! finds a segment, `segments` cuts and joins, `span` brings spans and `idle` gives them back, `quantum` puts magazines in front.
//!
//! What differs from 2001: magazines are per CPU without a lock and their rounds are tags, not addresses, so that a segment's
//! owner is known without a lock and a second free is an error; the hash grows by one bucket at a time and never stalls;
//! tags come from the system in doubling chunks instead of from an arena below.

#![forbid(unsafe_code)]

#[allow(clippy::module_inception)]
mod arena;
mod audit;
mod builder;
mod error;
mod fit;
mod handle;
mod hash;
mod idle;
mod import;
mod index;
mod list;
mod quantum;
mod request;
mod segments;
mod span;
mod stats;
mod tag;
mod walk;

pub use arena::Arena;
pub use audit::Broken;
pub use builder::Builder;
pub use error::{ArenaError, BuildError, Refusal};
pub use handle::ArenaHandle;
pub use import::{Import, ImportedSpan};
pub use request::{Policy, Request};
pub use stats::{ArenaStats, QuantumStats};
pub use walk::{Segment, SegmentKind, Walk};
