//! A mounted caching file system: any directory, behind a cache with an exact budget and a replacement rule by name.
//!
//! ```no_run
//! use larder_fs::MountOptions;
//!
//! let mount = MountOptions::new("/mnt/slow", "/mnt/fast").cache_bytes(512 << 20).rule("adaptive").mount()?;
//! println!("{} hits", mount.stats().hits);
//! mount.unmount()?;                               // writes back what is dirty, and says if that fails
//! # Ok::<(), larder_fs::FsError>(())
//! ```
//!
//! It speaks the kernel's FUSE protocol itself; there is no library of C below. Blocks live in a [`larder_cache::BlockCache`],
//! inodes in a [`larder::objects::ObjectCache`], both in pages of one pool; node ids and handles have generations
//! ([`larder::ids::Tagged`]), so a late one is refused. The guide, `docs/fs.md`, has the promises in words.

#![cfg_attr(test, allow(clippy::unwrap_used))]

// A file uses what lies below it:
//
//     mount > control > attach > upkeep, transport > data, directories, names, attributes, folders > filesystem
//           > inode > source, table > waiting > reply > ring > gate, stats, system, options, error
//
// `transport` hands its numbers of open files to `inode` and `data`, which only keep them.
mod attach;
mod attributes;
mod control;
mod data;
mod directories;
mod error;
mod filesystem;
mod folders;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gate;
mod inode;
mod mount;
mod names;
mod options;
mod reply;
mod ring;
mod source;
mod stats;
mod system;
mod table;
mod transport;
mod upkeep;
mod waiting;

pub use control::{Control, Tune, mounts, unanswered};
pub use error::FsError;
pub use mount::Mount;
pub use options::{Coherence, DiskModel, FolderBudget, Mode, MountOptions};
pub use stats::{FolderStats, MountStats, OperationStats};

#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../docs/fs.md")]
    struct Guide;
}
