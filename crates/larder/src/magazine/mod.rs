//! The stock layer: magazines of rounds between a slow supplier and an impatient consumer.
//!
//! A *round* is one word (an address, an identifier). A *magazine* is an array of rounds. A [`Stock`] keeps two
//! magazines for every CPU (`cpu_layer`); a [`StockHandle`] keeps one of its own, as large as two. Behind both stands the depot, a lock-free
//! stack of full magazines beside one of empty ones, which several stocks may share, and behind the depot a [`Supply`]. The
//! scheme is Bonwick and Adams' ("Magazines and Vmem", USENIX 2001) with three changes:
//!
//! - A CPU's stock is two words, each the address of the top slot of a size-aligned magazine, so empty and full can
//!   be read off the low bits, and pop, push and the exchange of a whole magazine each commit with one store. So each
//!   is one restartable section: no lock, no atomic instruction. (`sections`, or `locked` where rseq is missing.)
//! - There is no loaded-previous swap, which would need two stores. Pop takes from the first magazine that has a
//!   round and push gives to the first that has room; the pair still absorbs any back-and-forth shorter than a magazine.
//! - The depot has no lock that a descheduled thread could hold: magazines are immortal, and their stacks carry tags.
//!
//! Nothing here knows what a round means. Pages are one user; identifiers and objects need no change.

mod backoff;
mod cpu_layer;
mod depot;
mod handle;
mod magazines;
mod own;
mod owned;
mod refill_limiter;
mod slot;
mod stack;
mod stock;
mod supply;
pub(crate) mod sync;

#[cfg(loom)]
#[path = "sections_loom.rs"]
mod sections;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(miri, loom))))]
#[path = "sections_x86_64.rs"]
mod sections;
#[cfg(not(any(loom, all(target_arch = "x86_64", target_os = "linux", not(miri)))))]
#[path = "sections_none.rs"]
mod sections;

mod locked;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod memory_tests;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use handle::StockHandle;
pub(crate) use locked::thread_number;
pub(crate) use magazines::Magazines;
pub(crate) use own::OwnMagazine;
pub use stock::StockStats;
pub(crate) use stock::{Stock, StockConfig};
pub(crate) use supply::Supply;

/// Most rounds in a magazine: with the header word it fills 2 KiB.
pub const MAX_ROUNDS: usize = 255;

/// Bytes of a magazine, and its alignment.
pub(crate) const MAGAZINE_BYTES: usize = (MAX_ROUNDS + 1) * WORD;

/// Bytes of a round.
pub(crate) const WORD: usize = size_of::<usize>();

/// Selects the part of a top-slot address that says how many bytes of rounds lie below it.
pub(crate) const FILL_MASK: usize = MAGAZINE_BYTES - 1;
