//! What a mount is asked to be.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which accesses reach the cache.
///
/// ```
/// use larder_fs::Mode;
/// assert_eq!("shared".parse(), Ok(Mode::Shared));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Every read and write reaches this cache; the kernel keeps no pages, but those of mapped files.
    #[default]
    Own,
    /// The kernel's page cache lies above this one, and answers what it has.
    Shared,
    /// The kernel reads and writes the source's files by itself: no cache here. An upper bound to measure against.
    Bypass,
}

impl Mode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Shared => "shared",
            Self::Bypass => "bypass",
        }
    }
}

impl FromStr for Mode {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let all = [Self::Own, Self::Shared, Self::Bypass];
        let found = all.into_iter().find(|mode| mode.name() == name);
        found.ok_or_else(|| format!("mode {name}: there are own, shared and bypass"))
    }
}

/// When the mount looks whether the source was changed behind its back.
///
/// ```
/// use larder_fs::Coherence;
/// use std::time::Duration;
/// assert_eq!("ttl=30s".parse(), Ok(Coherence::Ttl(Duration::from_secs(30))));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coherence {
    /// At every access to names and attributes.
    Strict,
    /// When a file is opened, and for names and attributes once a second.
    #[default]
    Open,
    /// Once in this time.
    Ttl(Duration),
    /// Never: no other program changes the source. In mode `shared`, and where closing a file writes nothing, the kernel then opens
    /// and closes files without asking (Linux 6.18.10).
    Exclusive,
}

impl Coherence {
    /// How long names and attributes are believed.
    pub(crate) fn ttl(self) -> Duration {
        match self {
            Self::Strict => Duration::ZERO,
            Self::Open => Duration::from_secs(1),
            Self::Ttl(ttl) => ttl,
            Self::Exclusive => Duration::from_secs(365 * 86_400),
        }
    }
}

impl FromStr for Coherence {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let ttl = || {
            let time = text.strip_prefix("ttl=")?;
            let (number, unit) = match time.strip_suffix("ms") {
                Some(number) => (number, 0.001),
                None => (time.strip_suffix('s').unwrap_or(time), 1.0),
            };
            let seconds = number.parse::<f64>().ok()? * unit;
            Duration::try_from_secs_f64(seconds).ok().map(Self::Ttl)
        };
        match text {
            "strict" => Ok(Self::Strict),
            "open" => Ok(Self::Open),
            "exclusive" => Ok(Self::Exclusive),
            _ => ttl().ok_or_else(|| {
                format!("coherence {text}: there are strict, open, ttl=1s and exclusive")
            }),
        }
    }
}

/// A slow disk before the source, to measure with: one queue, so that transfers wait for each other.
///
/// ```
/// use larder_fs::DiskModel;
/// use std::time::Duration;
/// let disk = DiskModel { seek: Duration::from_millis(6), bytes_per_second: 30_000_000, per_call: Duration::ZERO };
/// assert_ne!(disk, DiskModel::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskModel {
    /// Added to a transfer that does not begin where the last one ended.
    pub seek: Duration,
    /// Speed of a transfer; 0 is no limit.
    pub bytes_per_second: u64,
    /// Added to each call of the source, names and attributes included, and not serial: the delay of a network.
    pub per_call: Duration,
}

/// A part of the cache for a folder of the mount, with all below it.
///
/// ```
/// use larder_fs::{FolderBudget, MountOptions};
/// let logs = FolderBudget { folder: "var/log".into(), bytes: Some(4 << 20), rule: Some("fifo".into()) };
/// let options = MountOptions::new("/mnt/slow", "/mnt/fast").budget(logs);
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderBudget {
    /// Its path from the mountpoint on. It need not be there yet.
    pub folder: PathBuf,
    /// Bytes of blocks; `None` is no part of its own any more.
    pub bytes: Option<usize>,
    /// Its replacement rule; without one that which it has, at first the mount's.
    pub rule: Option<String>,
}

/// What to mount where, and how. `new` has the defaults.
///
/// ```no_run
/// use larder_fs::MountOptions;
/// let mount = MountOptions::new("/mnt/slow", "/mnt/fast").cache_bytes(512 << 20).rule("adaptive").mount()?;
/// println!("{} hits", mount.stats().hits);
/// mount.unmount()?;
/// # Ok::<(), larder_fs::FsError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct MountOptions {
    pub(crate) source: PathBuf,
    pub(crate) mountpoint: PathBuf,
    pub(crate) cache_bytes: usize,
    pub(crate) most_bytes: Option<usize>,
    pub(crate) rule: String,
    pub(crate) budgets: Vec<FolderBudget>,
    pub(crate) mode: Mode,
    pub(crate) dirty_share: f64,
    pub(crate) dirty_age: Duration,
    pub(crate) write_through: bool,
    pub(crate) close_to_open: Option<bool>,
    pub(crate) coherence: Coherence,
    pub(crate) read_only: bool,
    pub(crate) read_ahead: usize,
    pub(crate) threads: Option<usize>,
    pub(crate) io_uring: bool,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) disk: Option<DiskModel>,
    pub(crate) fuse_options: Vec<String>,
}

impl MountOptions {
    /// A mount of 64 MiB in mode `own` under the rule `adaptive`.
    pub fn new(source: impl AsRef<Path>, mountpoint: impl AsRef<Path>) -> Self {
        Self {
            source: source.as_ref().to_owned(),
            mountpoint: mountpoint.as_ref().to_owned(),
            cache_bytes: 64 << 20,
            most_bytes: None,
            rule: "adaptive".to_owned(),
            budgets: Vec::new(),
            mode: Mode::default(),
            dirty_share: 0.25,
            dirty_age: Duration::from_secs(5),
            write_through: false,
            close_to_open: None,
            coherence: Coherence::default(),
            read_only: false,
            read_ahead: 128 << 10,
            threads: None,
            io_uring: false,
            trace: None,
            disk: None,
            fuse_options: Vec::new(),
        }
    }

    /// Bytes of blocks, tables, inodes and buffers together.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Most bytes that [`tune`](crate::Mount::tune) may ask for; by default those of the start.
    pub fn most_bytes(mut self, bytes: usize) -> Self {
        self.most_bytes = Some(bytes);
        self
    }

    /// The replacement rule, by a name that `larder_policy::rules` lists.
    pub fn rule(mut self, name: &str) -> Self {
        name.clone_into(&mut self.rule);
        self
    }

    /// Gives a folder a part of the cache for itself; may be called for several.
    pub fn budget(mut self, budget: FolderBudget) -> Self {
        self.budgets.push(budget);
        self
    }

    /// Which accesses reach the cache.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Share of the cache that may be dirty, 0 to 1; beyond it writers write back themselves.
    pub fn dirty_share(mut self, share: f64) -> Self {
        self.dirty_share = share;
        self
    }

    /// How long a block may be dirty before it is written to the source.
    pub fn dirty_age(mut self, age: Duration) -> Self {
        self.dirty_age = age;
        self
    }

    /// Each write is written to the source before it returns.
    pub fn write_through(mut self, yes: bool) -> Self {
        self.write_through = yes;
        self
    }

    /// Closing a file writes it to the source; by default so on network file systems.
    pub fn close_to_open(mut self, yes: bool) -> Self {
        self.close_to_open = Some(yes);
        self
    }

    /// When changes of the source by others are looked for.
    pub fn coherence(mut self, coherence: Coherence) -> Self {
        self.coherence = coherence;
        self
    }

    /// Nothing can be changed through the mount.
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Most bytes read ahead of a sequential reader; 0 is off.
    pub fn read_ahead(mut self, bytes: usize) -> Self {
        self.read_ahead = bytes;
        self
    }

    /// Threads that answer the kernel; by default as many as CPUs, from 2 to 16.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Requests come by io_uring (Linux 6.14, `/sys/module/fuse/parameters/enable_uring` at Y). Where that cannot be had the mount is
    /// refused with [`FsError::IoUring`](crate::FsError::IoUring), which says what to do.
    pub fn io_uring(mut self, yes: bool) -> Self {
        self.io_uring = yes;
        self
    }

    /// Writes each use of a block to this file, as CSV that `larder sim` replays.
    pub fn trace(mut self, path: impl AsRef<Path>) -> Self {
        self.trace = Some(path.as_ref().to_owned());
        self
    }

    /// Puts a slow disk before the source.
    pub fn disk(mut self, model: DiskModel) -> Self {
        self.disk = Some(model);
        self
    }

    /// Further options of the kernel's mount, such as `suid`, `dev` or `noexec`.
    pub fn fuse_options<S: Into<String>>(mut self, options: impl IntoIterator<Item = S>) -> Self {
        self.fuse_options
            .extend(options.into_iter().map(Into::into));
        self
    }
}
