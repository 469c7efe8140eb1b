//! Why a mount could not be made, or could not do what was asked.

use std::io;
use std::path::PathBuf;

use larder_cache::CacheError;

/// Why a mount could not be made or ended. Its text says what to do about it.
///
/// ```
/// use larder_fs::{FsError, MountOptions};
/// let none = MountOptions::new("/no/such/source", "/no/such/mountpoint").mount();
/// assert!(matches!(none, Err(FsError::Source { .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FsError {
    /// The source is no directory that can be opened.
    #[error("source {}: {error}; name a directory that you may read", path.display())]
    Source {
        /// The source.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The mountpoint is no directory on which something can be mounted.
    #[error("mountpoint {}: {error}; name an empty directory that is yours", path.display())]
    Mountpoint {
        /// The mountpoint.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Source and mountpoint lie within each other.
    #[error(
        "source {} and mountpoint {} lie within each other: the mount would serve itself; mount elsewhere",
        source_path.display(), mountpoint.display()
    )]
    Nested {
        /// The source.
        source_path: PathBuf,
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// Another mount has this source, or a directory above or below it.
    #[error(
        "source {} or a directory within it is mounted already; unmount the other one, or mount both read-only; or what was unmounted \
         is still being written back, or another program has locked it (flock)",
        path.display()
    )]
    Busy {
        /// What another mount has, or has something of.
        path: PathBuf,
    },
    /// The system has no FUSE, or this user may not use it.
    #[error(
        "FUSE: {what}: {error}; needs /dev/fuse and, without root, fusermount3 (Debian: apt install fuse3)"
    )]
    Fuse {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
    /// The kernel cannot do what the mode needs.
    #[error("mode {mode}: {what}; take mode own or shared")]
    Mode {
        /// The mode.
        mode: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// Requests cannot come by io_uring.
    #[error("requests by io_uring: {0}")]
    IoUring(String),
    /// The budget is too small for the buffers, and for the tables of the largest size that it may have.
    #[error(
        "a cache of {bytes} bytes was asked for; it needs at least {least}; give it more, fewer threads, or a smaller size to grow to \
         (--most-cache)"
    )]
    Budget {
        /// Bytes asked for.
        bytes: usize,
        /// Fewest bytes.
        least: usize,
    },
    /// More was asked for than the mount's tables were made for.
    #[error(
        "a cache of {bytes} bytes was asked for; this mount can have {most}; mount with a larger --most-cache"
    )]
    Most {
        /// Bytes asked for.
        bytes: usize,
        /// Most bytes.
        most: usize,
    },
    /// A part of the cache was asked for, for what is no folder of the mount.
    #[error(
        "budget of '{}': name a folder by its path from the mountpoint on, as in logs or home/ann; the whole mount has --cache",
        path.display()
    )]
    Folder {
        /// What was named.
        path: PathBuf,
    },
    /// The block cache.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Memory for the tables.
    #[error("no memory for the mount's tables: {0}")]
    Memory(String),
    /// What was written through the mount could not be written to the source. It is kept.
    #[error("writing to the source: {0}; it is kept, make room or mend the source and try again")]
    WriteBack(io::Error),
    /// The mount has ended, and what was left could not be written to the source.
    #[error("writing to the source: {0}; the mount has ended, and what was not written is lost")]
    Lost(io::Error),
    /// The mount is in use.
    #[error("{} is in use; end the programs that have files open there (fuser -vm shows them)", path.display())]
    InUse {
        /// The mountpoint.
        path: PathBuf,
    },
    /// No mount listens for this mountpoint.
    #[error("{}: no larder mount answers there: {error}", path.display())]
    NoMount {
        /// The mountpoint.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What a mount answered to a command.
    #[error("the mount says: {0}")]
    Refused(String),
    /// Files of the mount itself: its trace, its socket, its threads.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}
