//! What a mount has done.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Counts since the mount was made, and what it holds now.
///
/// ```
/// let stats = larder_fs::MountStats::default();
/// assert_eq!(stats.hits, 0);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MountStats {
    /// The directory behind.
    pub source: PathBuf,
    /// Where it is mounted.
    pub mountpoint: PathBuf,
    /// Its mode.
    pub mode: String,
    /// The replacement rule.
    pub rule: String,
    /// Uses of blocks that were in memory.
    pub hits: u64,
    /// Uses of blocks that were not.
    pub misses: u64,
    /// Calls that read data of the source.
    pub backing_reads: u64,
    /// Bytes that they read.
    pub backing_read_bytes: u64,
    /// Calls that wrote data to the source.
    pub backing_writes: u64,
    /// Bytes that they wrote.
    pub backing_written_bytes: u64,
    /// Syncs of the source's files.
    pub backing_syncs: u64,
    /// Bytes that programs read.
    pub read_bytes: u64,
    /// Bytes that programs wrote.
    pub written_bytes: u64,
    /// Bytes that the source does not have yet.
    pub dirty_bytes: u64,
    /// Bytes that were written by programs and forgotten before they were written to the source: of files that were deleted or cut.
    pub never_written_bytes: u64,
    /// Bytes of blocks in memory.
    pub resident_bytes: u64,
    /// Most bytes of blocks.
    pub capacity_bytes: u64,
    /// Bytes of tables, about: blocks, inodes, handles.
    pub table_bytes: u64,
    /// Files and directories that the mount knows.
    pub inodes: u64,
    /// Most of them.
    pub most_inodes: u64,
    /// Names that the kernel was asked to forget, since there were too many.
    pub invalidated: u64,
    /// Open files and directories.
    pub open: u64,
    /// Files that were found changed by others.
    pub outside_changes: u64,
    /// Files that others had changed while they were dirty here: what was written here stays.
    pub conflicts: u64,
    /// Writes to the source that failed, and will be tried again.
    pub write_errors: u64,
    /// Folders that have a part of the cache for themselves. The counts above include theirs.
    pub folders: Vec<FolderStats>,
    /// Requests that came by io_uring.
    pub ring_requests: u64,
    /// What the replacement rule says of itself.
    pub explanation: BTreeMap<String, f64>,
    /// Requests of the kernel by name.
    pub operations: BTreeMap<String, OperationStats>,
}

/// A folder that has a part of the cache for itself.
///
/// ```
/// let stats = larder_fs::FolderStats::default();
/// assert_eq!(stats.capacity_bytes, 0);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FolderStats {
    /// Its path from the mountpoint on.
    pub folder: PathBuf,
    /// Its replacement rule.
    pub rule: String,
    /// Uses of its blocks that were in memory.
    pub hits: u64,
    /// Uses of its blocks that were not.
    pub misses: u64,
    /// Most bytes of its blocks.
    pub capacity_bytes: u64,
    /// Bytes of its blocks in memory.
    pub resident_bytes: u64,
    /// Bytes of them that the source does not have yet.
    pub dirty_bytes: u64,
}

/// Requests of one kind.
///
/// ```
/// let stats = larder_fs::OperationStats::default();
/// assert_eq!(stats.count, 0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OperationStats {
    /// How many.
    pub count: u64,
    /// How many were answered with an error.
    pub errors: u64,
    /// Half of them took this or less, in microseconds, to an eighth.
    pub p50_us: f64,
    /// 99 of 100 took this or less.
    pub p99_us: f64,
    /// All together, in seconds.
    pub seconds: f64,
}

/// Buckets of a histogram: eight for each power of two of nanoseconds.
const BUCKETS: usize = 8 * 40;

/// Times of one kind of request.
pub(crate) struct Times {
    errors: AtomicU64,
    nanoseconds: AtomicU64,
    buckets: Box<[AtomicU64; BUCKETS]>,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            errors: AtomicU64::new(0),
            nanoseconds: AtomicU64::new(0),
            buckets: Box::new([const { AtomicU64::new(0) }; BUCKETS]),
        }
    }
}

fn bucket(nanoseconds: u64) -> usize {
    let n = nanoseconds.max(8);
    let power = n.ilog2();
    (((power - 3) * 8) as usize + (n >> (power - 3)) as usize - 8).min(BUCKETS - 1)
}

/// The longest time of a bucket.
fn longest(bucket: usize) -> u64 {
    ((bucket % 8 + 9) as u64) << (bucket / 8)
}

impl Times {
    pub(crate) fn add(&self, time: Duration, failed: bool) {
        let n = time.as_nanos() as u64;
        self.buckets[bucket(n)].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(n, Ordering::Relaxed);
        if failed {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn stats(&self) -> OperationStats {
        let counts: Vec<u64> = self
            .buckets
            .iter()
            .map(|n| n.load(Ordering::Relaxed))
            .collect();
        let count: u64 = counts.iter().sum();
        let quantile = |share: f64| {
            let wanted = (count as f64 * share).ceil() as u64;
            let mut sum = 0;
            let at = counts.iter().position(|n| {
                sum += n;
                sum >= wanted
            });
            at.map_or(0.0, |at| longest(at) as f64 / 1000.0)
        };
        OperationStats {
            count,
            errors: self.errors.load(Ordering::Relaxed),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            seconds: self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
        }
    }
}

/// Names of requests, by the kernel's numbers of them.
pub(crate) const OPERATIONS: [&str; 54] = [
    "",
    "lookup",
    "forget",
    "getattr",
    "setattr",
    "readlink",
    "symlink",
    "",
    "mknod",
    "mkdir",
    "unlink",
    "rmdir",
    "rename",
    "link",
    "open",
    "read",
    "write",
    "statfs",
    "release",
    "",
    "fsync",
    "setxattr",
    "getxattr",
    "listxattr",
    "removexattr",
    "flush",
    "init",
    "opendir",
    "readdir",
    "releasedir",
    "fsyncdir",
    "getlk",
    "setlk",
    "setlkw",
    "access",
    "create",
    "interrupt",
    "bmap",
    "destroy",
    "ioctl",
    "poll",
    "notify_reply",
    "batch_forget",
    "fallocate",
    "readdirplus",
    "rename2",
    "lseek",
    "copy_file_range",
    "",
    "",
    "syncfs",
    "tmpfile",
    "statx",
    "copy_file_range_64",
];

/// Counts of the mount that the cache below does not have.
pub(crate) struct Counters {
    times: Box<[Times]>,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) by_ring: AtomicU64,
    pub(crate) invalidated: AtomicU64,
    pub(crate) outside_changes: AtomicU64,
    pub(crate) conflicts: AtomicU64,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            times: OPERATIONS.iter().map(|_| Times::default()).collect(),
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            by_ring: AtomicU64::new(0),
            invalidated: AtomicU64::new(0),
            outside_changes: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
        }
    }

    pub(crate) fn did(&self, operation: u32, begun: Instant, failed: bool) {
        if let Some(times) = self.times.get(operation as usize) {
            times.add(begun.elapsed(), failed);
        }
    }

    pub(crate) fn operations(&self) -> BTreeMap<String, OperationStats> {
        let all = OPERATIONS.iter().zip(&self.times);
        let named = all.filter(|(name, _)| !name.is_empty());
        named
            .map(|(name, times)| ((*name).to_owned(), times.stats()))
            .filter(|(_, stats)| stats.count > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_an_eighth_wide() {
        let mut last = 0;
        for n in 8..100_000_u64 {
            let at = bucket(n);
            assert!(at == last || at == last + 1, "{n} is in {at} after {last}");
            assert!(
                longest(at) > n && longest(at) <= n + n / 8 + 1,
                "{n}: {}",
                longest(at)
            );
            last = at;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_name_the_slow_ones() {
        let times = Times::default();
        for _ in 0..98 {
            times.add(Duration::from_micros(10), false);
        }
        times.add(Duration::from_millis(1), true);
        times.add(Duration::from_millis(1), true);
        let stats = times.stats();
        assert_eq!((stats.count, stats.errors), (100, 2));
        assert!(stats.p50_us < 12.0 && stats.p99_us >= 1000.0, "{stats:?}");
    }
}
