//! larder allocates what storage engines, file systems and language runtimes live on, and lets its companion program
//! measure on the user's machine what each of these costs.
//!
//! | module | what it is |
//! |---|---|
//! | [`pages`] | page buffers: a pool of whole pages, recycled before the kernel is asked |
//! | [`heap`] | memory of any size: heaps of one owner, a front for all threads |
//! | [`objects`] | caches of objects of one size, constructed once, over slabs |
//! | [`arena`] | vmem: ranges of any integer resource, by boundary tags, in spans from a source |
//! | [`ids`] | identifiers of a range, by reuse rule; the only part that is there without the feature `std` |
//! | [`os`] | the only module that makes system calls |
//! | [`settings`] | the file that the lab writes and the library reads |
//!
//! Blocks of files in memory are in the crate `larder-cache`, and the rules by which they leave in `larder-policy`.
//!
//! ```
//! let pool = larder::pages::PagePool::new()?;
//! let mut page = pool.get()?;
//! page.fill(1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;
#[cfg(all(test, not(feature = "std")))]
extern crate std;

/// Variables that the making of a heap touches. They lie beside the program's initialised data, a page that is written anyway: among
/// the zeroed arrays each would cost every start of a program a page fault, or two.
#[cfg(feature = "std")]
macro_rules! touched_at_start {
    ($($variable:item)*) => {
        // SAFETY: a section for variables, like the one for zeroes.
        $(#[unsafe(link_section = ".data")] $variable)*
    };
}

#[cfg(feature = "std")]
pub mod arena;
#[cfg(feature = "std")]
pub mod heap;
pub mod ids;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod internal;
#[cfg(feature = "std")]
mod magazine;
#[cfg(feature = "std")]
pub mod objects;
#[cfg(feature = "std")]
pub mod os;
#[cfg(feature = "std")]
pub mod pages;
#[cfg(feature = "settings")]
pub mod settings;

#[cfg(feature = "std")]
pub use heap::Larder;

#[cfg(all(doctest, feature = "settings"))]
mod documents {
    #[doc = include_str!("../docs/arena.md")]
    struct Arena;
    #[doc = include_str!("../docs/heap.md")]
    struct Heap;
    #[doc = include_str!("../docs/ids.md")]
    struct Ids;
    #[doc = include_str!("../docs/objects.md")]
    struct Objects;
    #[doc = include_str!("../docs/pages.md")]
    struct Pages;
    #[doc = include_str!("../docs/settings.md")]
    struct Settings;
}
