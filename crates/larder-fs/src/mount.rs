//! A mount from its beginning to its end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use larder::objects::Family;
use larder_cache::{Access, AccessKind, BlockCache};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::attach::{attach, break_off, connection, detach, is_mounted, is_source};
use crate::control::{Socket, Tune, connected};
use crate::error::FsError;
use crate::filesystem::FileSystem;
use crate::folders::Folders;
use crate::gate::Room;
use crate::inode::{INODE_BYTES, Inodes};
use crate::options::{Mode, MountOptions};
use crate::reply::Device;
use crate::ring::{Cpus, Plan, Ring, entry_bytes, missing, unavailable};
use crate::source::Source;
use crate::stats::{Counters, MountStats};
use crate::system::{Identity, ProcFds, is_network, raise_descriptors, stat};
use crate::table::Table;
use crate::transport::{
    Agreed, HEADERS, NO_RING, Requests, Worker, clone_device, forget_name, forget_pages, greet,
    may_pass_files,
};
use crate::waiting::{WAITING_BYTES, Waiting};

/// The smallest cache.
const LEAST_BYTES: usize = 1 << 20;

/// Fewest bytes of inodes.
const LEAST_INODE_BYTES: usize = 256 << 10;

/// Fewest inodes, where the system has few descriptors.
const LEAST_INODES: usize = 256;

/// Fewest pages of blocks.
const LEAST_PAGES: usize = 64;

/// Bytes beside each page: its place in the tables, what the rule and write-back keep of it, and ghosts.
const PAGE_TABLES: usize = 64;

/// Largest request of a mount whose requests come by io_uring: each entry has a buffer for it.
const RING_WRITE: usize = 128 << 10;

/// For what the source does not take at the end.
const LAST_CHANCE: Duration = Duration::from_secs(60);

/// A mount that was ended may take so long to write back before another one of its source is refused.
const LAST_OF_ANOTHER: Duration = Duration::from_secs(10);

/// How a number of bytes is shared out. Most of it stays as it is while the mount lives, whatever size [`tune`](Mount::tune) gives the
/// cache; inodes and blocks share the rest.
#[derive(Debug, Clone, Copy)]
struct Budget {
    /// Largest request.
    max_write: usize,
    /// Reads that may wait for the source while no thread waits with them, and as many other requests with their bytes.
    aside: Room,
    /// Bytes of the entries of rings.
    rings: usize,
    /// Bytes of the threads' buffers, of rings, and of what waits.
    buffers: usize,
    /// Pages of the largest size of the cache, for which there are tables from the start.
    most_pages: usize,
    /// Inodes for which the system has descriptors.
    most_inodes: usize,
}

/// What a size of the cache leaves for blocks and for inodes.
#[derive(Debug, Clone, Copy)]
struct Shares {
    /// Bytes of them.
    blocks: usize,
    /// Number of them.
    inodes: usize,
}

impl Budget {
    fn inode_bytes(bytes: usize) -> usize {
        (bytes / 8).max(LEAST_INODE_BYTES)
    }

    fn tables(&self) -> usize {
        self.most_pages * PAGE_TABLES
    }

    /// Bytes that a cache of so many leaves for blocks.
    fn rest(&self, bytes: usize) -> usize {
        bytes.saturating_sub(Self::inode_bytes(bytes) + self.buffers + self.tables())
    }

    /// The smallest cache. It has a quarter for rings, another one for tables, and an eighth and some pages for blocks.
    fn least(&self) -> usize {
        let fixed = self.buffers + self.tables();
        let (inodes, blocks) = (LEAST_INODE_BYTES, LEAST_PAGES * larder::os::page_size());
        let all = [
            4 * self.rings,
            4 * self.tables(),
            // Inodes have their fewest bytes.
            fixed + inodes + blocks,
            (fixed + inodes).div_ceil(7) * 8,
            // They have an eighth.
            (fixed + blocks).div_ceil(7) * 8,
            fixed.div_ceil(3) * 4,
        ];
        all.into_iter().fold(LEAST_BYTES, usize::max)
    }

    fn shares(&self, bytes: usize) -> Result<Shares, FsError> {
        let least = self.least();
        if bytes < least {
            return Err(FsError::Budget { bytes, least });
        }
        let page = larder::os::page_size();
        let inodes = Self::inode_bytes(bytes) / INODE_BYTES;
        Ok(Shares {
            blocks: (self.rest(bytes) / page).min(self.most_pages) * page,
            inodes: inodes.min(self.most_inodes).max(LEAST_INODES),
        })
    }
}

/// Largest request by the descriptor. Each thread has a buffer for it, and a few that are set aside are to have room.
fn largest_request(bytes: usize, threads: usize) -> usize {
    let least = (bytes / 16).clamp(4096, 128 << 10);
    let most = (bytes / 512).min(bytes / 8 / threads).clamp(least, 1 << 20);
    1 << most.ilog2()
}

/// What the mount's threads and its owner share.
pub(crate) struct Shared {
    system: FileSystem,
    source: PathBuf,
    mountpoint: PathBuf,
    /// The kernel's number of it.
    connection: Option<u32>,
    threads: usize,
    /// Of them, those that serve at a time.
    at_a_time: usize,
    budget: Budget,
    /// Most that [`tune`](Mount::tune) gives the cache.
    most_bytes: usize,
    /// The outcome of the last write-back, when all threads have ended.
    finished: Mutex<Option<Result<(), Errno>>>,
    end: Condvar,
    claim: Claim,
    /// The threads that answer requests have it: when they end the connection does.
    device: Weak<OwnedFd>,
}

/// Keeps other mounts from the source until it has everything, and from directories above and below it: each file is to have one cache
/// that writes.
struct Claim {
    locks: Vec<OwnedFd>,
}

impl Claim {
    /// The source for one mount alone, or for several that are read-only. No other may have a directory above it for itself.
    fn new(source: &Path, shared: bool) -> Result<Self, FsError> {
        let mut locks = Vec::new();
        let alone = match shared {
            true => FlockOperation::NonBlockingLockShared,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for path in source.ancestors() {
            let (how, is_source) = match locks.is_empty() {
                true => (alone, true),
                false => (FlockOperation::NonBlockingLockShared, false),
            };
            let locked = rustix::fs::open(path, flags, rustix::fs::Mode::empty())
                .map(|directory| locks.push(directory))
                .and_then(|()| rustix::fs::flock(&locks[locks.len() - 1], how));
            match locked {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    let path = path.to_owned();
                    return Err(FsError::Busy { path });
                }
                // The file system has no locks.
                Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::INVAL | Errno::BADF) => {}
                // A directory above the source may be closed to this user.
                Err(_) if !is_source => {}
                Err(error) => {
                    return Err(FsError::Source {
                        path: path.to_owned(),
                        error: error.into(),
                    });
                }
            }
        }
        Ok(Self { locks })
    }

    fn release(&self) {
        for lock in &self.locks {
            let _ = rustix::fs::flock(lock, FlockOperation::Unlock);
        }
    }
}

/// Takes what one mount has at a time. A mount that `umount` ended has it until its source has everything: that is waited for.
fn after_the_last<T>(
    has_ended: impl Fn() -> bool,
    take: impl Fn() -> Result<T, FsError>,
) -> Result<T, FsError> {
    let begun = Instant::now();
    loop {
        let taken = take();
        let busy = match &taken {
            Err(FsError::Busy { .. }) => true,
            Err(FsError::Io { error, .. }) => error.kind() == io::ErrorKind::AddrInUse,
            _ => false,
        };
        if !busy || !has_ended() || begun.elapsed() > LAST_OF_ANOTHER {
            return taken;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A directory that is mounted. Dropping it unmounts, also while programs use it, and waits as [`wait`](Self::wait) does.
///
/// ```no_run
/// use larder_fs::MountOptions;
/// let mount = MountOptions::new("/mnt/nfs", "/mnt/fast").cache_bytes(1 << 30).mount()?;
/// mount.wait()?;                                 // until it is unmounted
/// # Ok::<(), larder_fs::FsError>(())
/// ```
pub struct Mount {
    shared: Arc<Shared>,
    socket: PathBuf,
    /// They end with the mount.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl MountOptions {
    /// Mounts.
    ///
    /// # Errors
    /// [`FsError`]: source or mountpoint cannot be used, another mount has the source, the system has no FUSE, or options that
    /// cannot be had.
    pub fn mount(self) -> Result<Mount, FsError> {
        let at_source = |error: io::Error| FsError::Source {
            path: self.source.clone(),
            error,
        };
        let source = self.source.canonicalize().map_err(at_source)?;
        if !source.is_dir() {
            return Err(at_source(io::ErrorKind::NotADirectory.into()));
        }
        let at_mountpoint = |error: io::Error| FsError::Mountpoint {
            path: self.mountpoint.clone(),
            error,
        };
        recover(&self.mountpoint);
        let mountpoint = self.mountpoint.canonicalize().map_err(at_mountpoint)?;
        if !mountpoint.is_dir() {
            return Err(at_mountpoint(io::ErrorKind::NotADirectory.into()));
        }
        if source.starts_with(&mountpoint) || mountpoint.starts_with(&source) {
            return Err(FsError::Nested {
                source_path: source,
                mountpoint,
            });
        }
        let claim = || Claim::new(&source, self.read_only);
        let claim = after_the_last(|| !is_source(&source), claim)?;
        let system = self.prepare(&source)?;
        self.start(system, source, mountpoint, claim)
    }

    /// Threads that answer at a time. A small cache has no room for the buffers of many.
    fn at_a_time(&self) -> usize {
        let cpus = std::thread::available_parallelism().map_or(2, usize::from);
        let wanted = self.threads.unwrap_or(cpus.clamp(2, 16)).clamp(1, 256);
        wanted.min((self.cache_bytes >> 19).max(1))
    }

    /// Threads, those that wait for the source included, of which there is one at least.
    fn all_threads(&self) -> usize {
        let at_a_time = self.at_a_time();
        let room = self.cache_bytes >> 20;
        (at_a_time * 4)
            .min(at_a_time + 16)
            .min(room.max(at_a_time + 1))
    }

    /// Reads of the source that are under way at a time. A small cache has no room for the blocks of many.
    fn reads_at_a_time(&self) -> usize {
        (self.cache_bytes >> 18).clamp(4, 16)
    }

    /// The rings, where requests are to come by io_uring.
    fn plan(&self) -> Result<Option<Plan>, FsError> {
        if !self.io_uring {
            return Ok(None);
        }
        let what = "reading /sys/devices/system/cpu";
        let cpus = Cpus::new().map_err(|error| FsError::Io { what, error })?;
        let entry = entry_bytes(RING_WRITE);
        let plan = Plan::new(&cpus, self.cache_bytes, entry, self.at_a_time());
        let small = || {
            let text = "its buffers would take more than a quarter of the cache; give it more, or mount without it";
            FsError::IoUring(text.to_owned())
        };
        plan.ok_or_else(small).map(Some)
    }

    /// Most bytes that the cache can have.
    fn largest_bytes(&self) -> usize {
        self.most_bytes.unwrap_or(0).max(self.cache_bytes)
    }

    /// How the bytes are shared out here.
    fn whole_budget(&self) -> Result<Budget, FsError> {
        let entries = self.plan()?.map_or(0, |plan| plan.entries());
        Ok(self.budget_of(entries, raise_descriptors()))
    }

    /// How the bytes are shared out with so many entries of rings, and so many descriptors.
    fn budget_of(&self, entries: usize, descriptors: usize) -> Budget {
        let (bytes, threads) = (self.cache_bytes, self.all_threads());
        let max_write = match entries {
            0 => largest_request(bytes, threads),
            _ => RING_WRITE,
        };
        let buffer = HEADERS + max_write;
        let waiting = (bytes >> 14).min(1000).max(entries.min(1000));
        // One of the largest has room in any case.
        let aside = (bytes / 32).max(buffer);
        let background = (aside / buffer).clamp(self.reads_at_a_time(), 64) as u16;
        let rings = entries * entry_bytes(RING_WRITE);
        let mut budget = Budget {
            max_write,
            aside: Room {
                requests: waiting,
                bytes: aside,
                background,
            },
            rings,
            buffers: threads * buffer + rings + aside + waiting * WAITING_BYTES,
            most_pages: 0,
            // Each takes a descriptor of the source's file, and some have two.
            most_inodes: descriptors / 2,
        };
        let each = larder::os::page_size() + PAGE_TABLES;
        budget.most_pages = (budget.rest(self.largest_bytes()) / each).max(LEAST_PAGES);
        budget
    }

    /// All that is there before it is mounted.
    pub(crate) fn prepare(&self, source_path: &Path) -> Result<FileSystem, FsError> {
        let at_source = |error: Errno| FsError::Source {
            path: source_path.to_owned(),
            error: error.into(),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(source_path, flags, rustix::fs::Mode::empty());
        let root = root.map_err(at_source)?;
        let budget = self.whole_budget()?;
        let shares = budget.shares(self.cache_bytes)?;
        let largest = budget.shares(self.largest_bytes())?;
        let memory = |error: &dyn std::fmt::Display| FsError::Memory(error.to_string());
        let attr = stat(&root).map_err(at_source)?;
        let acl = rustix::fs::getxattr_query(source_path, "system.posix_acl_access");
        let network = is_network(&root);
        let family = Family::new().map_err(|error| memory(&error))?;
        let (inodes, root) = Inodes::new(&family, largest.inodes, root, attr)?;
        inodes.set_most(shares.inodes);
        let source = Arc::new(Source::new(self.disk));
        let cache = BlockCache::builder(Arc::clone(&source))
            .pool(family.pool().clone())
            .bytes(shares.blocks)
            .most_bytes(largest.blocks)
            .policy(&self.rule)
            .read_ahead(self.read_ahead / larder::os::page_size())
            .read_threads(self.reads_at_a_time())
            .dirty_age(self.dirty_age)
            .dirty_share(self.dirty_share)
            .build()?;
        if let Some(path) = &self.trace {
            trace(&cache, path).map_err(|error| FsError::Io {
                what: "writing the trace",
                error,
            })?;
        }
        // Inodes take half of the descriptors.
        let most_open = (budget.most_inodes / 2).max(2);
        let system = FileSystem {
            mode: self.mode,
            coherence: self.coherence,
            ttl: self.coherence.ttl(),
            write_through: self.write_through,
            close_to_open: self.close_to_open.unwrap_or(network) && self.mode != Mode::Bypass,
            acl: matches!(acl, Ok(_) | Err(Errno::NODATA)),
            proc_fds: ProcFds::open().map_err(|error| FsError::Io {
                what: "opening /proc",
                error: error.into(),
            })?,
            identity: Identity::new(),
            root,
            root_dev: attr.dev,
            inodes,
            files: Table::new(1 << 20).map_err(|error| memory(&error))?,
            directories: Table::new(1 << 20).map_err(|error| memory(&error))?,
            source,
            counters: Arc::new(Counters::new()),
            room_left: AtomicI64::default(),
            notes: crate::upkeep::Notes::default(),
            active: Mutex::default(),
            no_open: AtomicBool::new(false),
            most_open,
            crowd: AtomicUsize::new(most_open),
            waiting: Arc::new(Waiting::new(budget.aside.requests)),
            starters: std::array::from_fn(|_| Mutex::new(cache.handle())),
            cache,
            folders: Folders::default(),
            aside: budget.aside,
            max_write: budget.max_write,
            traced: self.trace.is_some(),
        };
        for budget in &self.budgets {
            system.set_budget(budget)?;
        }
        Ok(system)
    }

    fn start(
        self,
        system: FileSystem,
        source: PathBuf,
        mountpoint: PathBuf,
        claim: Claim,
    ) -> Result<Mount, FsError> {
        let plan = self.plan()?;
        let budget = self.whole_budget()?;
        let what = "listening for commands";
        let socket = || Socket::new(&mountpoint).map_err(|error| FsError::Io { what, error });
        let socket = after_the_last(|| !is_mounted(&mountpoint), socket)?;
        let mut options = self.fuse_options.clone();
        options.extend(self.read_only.then(|| "ro".to_owned()));
        let device = attach(&source, &mountpoint, &options).inspect_err(|_| {
            let _ = std::fs::remove_file(&socket.path);
        })?;
        let shared = Arc::new(Shared {
            system,
            source,
            connection: connection(&mountpoint),
            mountpoint,
            threads: self.all_threads(),
            // Rings have threads of their own. Of these one sleeps at the descriptor, and the others take what was set aside.
            at_a_time: plan.as_ref().map_or(self.at_a_time(), |_| 1),
            budget,
            most_bytes: self.largest_bytes(),
            finished: Mutex::default(),
            end: Condvar::new(),
            claim,
            device: Arc::downgrade(&device),
        });
        let path = socket.path.clone();
        match self.start_threads(&shared, &device, socket, plan) {
            Ok(threads) => Ok(Mount {
                shared,
                socket: path,
                threads: Mutex::new(threads),
            }),
            Err(error) => {
                let _ = detach(&shared.mountpoint, true);
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    fn start_threads(
        &self,
        shared: &Arc<Shared>,
        device: &Device,
        socket: Socket,
        plan: Option<Plan>,
    ) -> Result<Vec<JoinHandle<()>>, FsError> {
        let what = "answering the kernel";
        let no_thread = |error| FsError::Io {
            what: "starting a thread",
            error,
        };
        let mut rings = Rings::default();
        if let Some(plan) = plan {
            rings.pinned = plan.pinned;
            for queues in plan.rings {
                let ring = Ring::new(device.as_fd(), &queues, RING_WRITE)
                    .map_err(|error| FsError::IoUring(unavailable(&error)))?;
                let cpu = queues.first().map_or(0, |queue| queue.0);
                rings.all.push((ring, cpu));
            }
        }
        let by_ring = !rings.all.is_empty();
        let agreed = greet(device, &shared.system, by_ring).map_err(|error| {
            match (self.mode, error.kind()) {
                _ if error.to_string() == NO_RING => FsError::IoUring(missing()),
                (Mode::Bypass, io::ErrorKind::Unsupported) => FsError::Mode {
                    mode: "bypass",
                    what: "the kernel has no passthrough (Linux 6.9, CONFIG_FUSE_PASSTHROUGH)",
                },
                _ => FsError::Fuse { what, error },
            }
        })?;
        if self.mode == Mode::Bypass && !may_pass_files(device) {
            return Err(FsError::Mode {
                mode: "bypass",
                what: "the kernel passes files through for root only (CAP_SYS_ADMIN)",
            });
        }
        let mut devices = vec![Arc::clone(device)];
        for _ in 1..shared.threads {
            devices.push(clone_device(device).map_err(|error| FsError::Fuse { what, error })?);
        }
        let interval =
            (self.dirty_age / 4).clamp(Duration::from_millis(20), Duration::from_secs(1));
        let session = Arc::clone(shared);
        let device = Arc::clone(device);
        let all = move || session.run(devices, rings, agreed, &device, interval);
        let session = std::thread::Builder::new()
            .name("larder-fs".to_owned())
            .spawn(all)
            .map_err(no_thread)?;
        let mount = Arc::clone(shared);
        let control = move || socket.serve(&mount);
        let control = std::thread::Builder::new()
            .name("larder-control".to_owned())
            .spawn(control)
            .map_err(no_thread)?;
        Ok(vec![session, control])
    }
}

/// Ends the mount with a thread that answers requests. One that fails or panics leaves a request without an answer, for which a program
/// would wait for ever; so it ends the connection too, and what is dirty is written back.
struct Last<'e> {
    end: &'e dyn Fn(bool),
    regularly: bool,
}

impl<'e> Last<'e> {
    fn new(end: &'e dyn Fn(bool)) -> Self {
        let regularly = false;
        Self { end, regularly }
    }
}

impl Drop for Last<'_> {
    fn drop(&mut self) {
        (self.end)(self.regularly);
    }
}

/// The rings of a mount, each with the CPU of its first queue.
#[derive(Default)]
struct Rings {
    all: Vec<(Ring, u16)>,
    pinned: bool,
}

/// This thread runs on the CPU whose requests it answers, so that no other CPU has to be woken. Where it may not it runs anywhere.
fn pin(cpu: u16) {
    let mut cpus = rustix::thread::CpuSet::new();
    if usize::from(cpu) < rustix::thread::CpuSet::MAX_CPU {
        cpus.set(cpu.into());
        let _ = rustix::thread::sched_setaffinity(None, &cpus);
    }
}

/// What a daemon left that was killed is taken away: nothing can be reached through it.
fn recover(mountpoint: &Path) {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    // Not what the kernel remembers: the connection of one whose requests came by io_uring may end a moment after its process, and
    // then also with the first request.
    let (flags, wanted) = (AtFlags::STATX_FORCE_SYNC, StatxFlags::BASIC_STATS);
    let found = statx(CWD, mountpoint, flags, wanted);
    if matches!(found, Err(Errno::NOTCONN | Errno::CONNABORTED))
        && let Ok(path) = std::path::absolute(mountpoint)
        && is_mounted(&path)
    {
        let _ = detach(&path, true);
    }
}

/// Each use of a block goes to a file, and when each was dirty, as `larder sim` reads it.
fn trace(cache: &BlockCache, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 16, File::create(path)?);
    file.write_all(b"op,id,request\n")?;
    let mut last = None;
    cache.record(Some(Box::new(move |access: Access| {
        // What is about no block names the last one, so that it makes none more. Before the first one it changes nothing.
        if access.kind != AccessKind::Tick {
            last = Some(access.block.0);
        }
        let Some(block) = last else { return };
        // A full disk ends the trace, not the mount.
        let _ = writeln!(file, "{},{block},{}", access.kind.name(), access.request);
    })));
    Ok(())
}

impl Shared {
    /// Answers requests until the mount ends, and then writes back what is left.
    fn run(
        &self,
        devices: Vec<Device>,
        rings: Rings,
        agreed: Agreed,
        device: &Device,
        interval: Duration,
    ) {
        let system = &self.system;
        let requests = Requests::new(self.at_a_time, system.aside).with_threads(self.threads);
        let returns: Vec<_> = rings.all.iter().map(|(ring, _)| ring.returns()).collect();
        // The connection has ended for all, or is ended now. When it has, its number may be another one's.
        let ended = AtomicBool::new(false);
        let end = |regularly: bool| {
            let first = !ended.swap(true, Ordering::AcqRel);
            if first
                && !regularly
                && let Some(number) = self.connection
            {
                break_off(number, &self.mountpoint);
            }
            requests.end();
            returns.iter().for_each(|returns| returns.end());
        };
        let (end, requests) = (&end, &requests);
        std::thread::scope(|scope| {
            let upkeep = || {
                let mut last = Last::new(end);
                system.keep_up(device, interval);
                last.regularly = true;
            };
            let upkeep = std::thread::Builder::new()
                .name("larder-upkeep".to_owned())
                .spawn_scoped(scope, upkeep);
            let workers = devices.into_iter().map(|device| {
                let work = move || {
                    let mut last = Last::new(end);
                    let mut worker = Worker::new(system, device, requests).with(agreed);
                    last.regularly = worker.run().is_ok();
                };
                std::thread::Builder::new()
                    .name("larder-worker".to_owned())
                    .spawn_scoped(scope, work)
            });
            let mut workers: Vec<_> = workers.collect();
            // One of them sleeps at the descriptor, so that a single one would never take what rings hand on.
            if !rings.all.is_empty() && workers.iter().flatten().count() < 2 {
                end(false);
            }
            for (ring, cpu) in rings.all {
                let work = move || {
                    if rings.pinned {
                        pin(cpu);
                    }
                    let mut last = Last::new(end);
                    let worker = Worker::new(system, Arc::clone(device), requests);
                    let mut worker = worker.with(agreed);
                    last.regularly = worker.run_ring(ring).is_ok();
                };
                let thread = std::thread::Builder::new().name("larder-ring".to_owned());
                let thread = thread.spawn_scoped(scope, work);
                // The kernel waits for each ring.
                thread.as_ref().map_or_else(|_| end(false), drop);
                workers.push(thread);
            }
            for worker in workers.into_iter().flatten() {
                let _ = worker.join();
            }
            system.notes.stop();
            let _ = upkeep.map(|upkeep| upkeep.join());
        });
        // Of a connection that broke nothing can be reached any more.
        if is_mounted(&self.mountpoint) {
            let _ = detach(&self.mountpoint, true);
        }
        let end = self.sync_at_the_end();
        system.cache.record(None);
        system.inodes.clear();
        system.active().clear();
        self.claim.release();
        *self.finished() = Some(end);
        self.end.notify_all();
    }

    /// Writes all that is left. What the source does not take is tried again for a while: there may be room for it soon.
    fn sync_at_the_end(&self) -> Result<(), Errno> {
        let end = Instant::now() + LAST_CHANCE;
        let mut said = false;
        loop {
            let Err(error) = self.system.sync_all() else {
                return Ok(());
            };
            let (source, left) = (self.source.display(), self.system.dirty_bytes());
            // A source that is gone does not come back under the descriptors that are open.
            let gone = stat(self.system.root.fd()).is_err();
            if gone || Instant::now() >= end {
                log::error!("{source}: {error}; {left} bytes of what was written are lost");
                return Err(error);
            }
            if !said {
                log::error!(
                    "{source}: {error}; {left} bytes are left to write, and are tried for {} s more",
                    LAST_CHANCE.as_secs()
                );
                said = true;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn finished(&self) -> MutexGuard<'_, Option<Result<(), Errno>>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished().is_some()
    }

    fn wait(&self) -> Result<(), FsError> {
        let finished = self
            .end
            .wait_while(self.finished(), |finished| finished.is_none());
        let finished = finished.unwrap_or_else(PoisonError::into_inner);
        let end = finished.unwrap_or(Ok(()));
        end.map_err(|error| FsError::Lost(error.into()))
    }

    pub(crate) fn unmount(&self) -> Result<(), FsError> {
        if !self.is_finished() {
            self.sync()?;
            match self.detach() {
                Ok(()) => {}
                // It is gone already.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    return Err(FsError::InUse {
                        path: self.mountpoint.clone(),
                    });
                }
                Err(error) => {
                    return Err(FsError::Fuse {
                        what: "unmounting",
                        error,
                    });
                }
            }
        }
        self.wait()
    }

    /// A program that has just closed its last file may keep the mount busy for a moment, and so may one that is just started by
    /// another that has files open.
    fn detach(&self) -> io::Result<()> {
        for _ in 0..20 {
            match detach(&self.mountpoint, false) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                done => return done,
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        detach(&self.mountpoint, false)
    }

    pub(crate) fn sync(&self) -> Result<(), FsError> {
        self.system
            .sync_all()
            .map_err(|error| FsError::WriteBack(error.into()))
    }

    pub(crate) fn drop_caches(&self) -> Result<(), FsError> {
        self.sync()?;
        self.system.cache.trim(usize::MAX)?;
        let Some(device) = self.device.upgrade() else {
            return Ok(()); // the mount has ended
        };
        let mut from = 0;
        while let Some((at, inode)) = self.system.inodes.next(from) {
            from = at + 1;
            inode.stale();
            // With the kernel's attributes and lists of names.
            forget_pages(&device, inode.id);
            // A directory may be a program's working directory, and an open file may run: these would be without a name. Where it is not
            // known which are open, all names stay.
            let is_open = self.system.no_open() || inode.opens.load(Ordering::Acquire) > 0;
            let is_idle = inode.is_file() && !is_open;
            if let Some((parent, name)) = inode.place().filter(|_| is_idle) {
                forget_name(&device, parent, &name);
            }
        }
        Ok(())
    }

    pub(crate) fn tune(&self, tune: &Tune) -> Result<(), FsError> {
        let cache = &self.system.cache;
        let most = self.most_bytes;
        let shares = |bytes: usize| match bytes > most {
            true => Err(FsError::Most { bytes, most }),
            false => self.budget.shares(bytes),
        };
        let shares = tune.cache_bytes.map(shares).transpose()?;
        if let Some(rule) = &tune.rule {
            cache.set_policy(rule)?;
        }
        if let Some(shares) = shares {
            self.system.inodes.set_most(shares.inodes);
            self.system.notes.wake();
        }
        let blocks = shares.map(|shares| shares.blocks);
        // A larger cache has room for larger parts, and smaller parts leave room in a smaller cache.
        let grows = |blocks: &usize| *blocks > cache.stats().capacity * cache.block_size();
        let (before, after) = (blocks.filter(grows), blocks.filter(|blocks| !grows(blocks)));
        before.map_or(Ok(()), |blocks| cache.set_bytes(blocks))?;
        for budget in &tune.budgets {
            self.system.set_budget(budget)?;
        }
        Ok(after.map_or(Ok(()), |blocks| cache.set_bytes(blocks))?)
    }

    pub(crate) fn stats(&self) -> MountStats {
        let system = &self.system;
        let (cache, counters, calls) =
            (system.cache.stats(), &system.counters, &system.source.calls);
        let bytes = |blocks: usize| (blocks * system.cache.block_size()) as u64;
        let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        let explanation = cache
            .explanation
            .iter()
            .map(|&(name, value)| (name.to_owned(), value));
        MountStats {
            source: self.source.clone(),
            mountpoint: self.mountpoint.clone(),
            mode: system.mode.name().to_owned(),
            rule: cache.policy.to_owned(),
            hits: cache.hits,
            misses: cache.misses,
            backing_reads: of(&calls.reads),
            backing_read_bytes: of(&calls.read_bytes),
            backing_writes: of(&calls.writes),
            backing_written_bytes: of(&calls.written_bytes),
            backing_syncs: of(&calls.syncs),
            read_bytes: of(&counters.read_bytes),
            written_bytes: of(&counters.written_bytes),
            dirty_bytes: bytes(cache.dirty),
            never_written_bytes: cache.discarded * system.cache.block_size() as u64,
            resident_bytes: bytes(cache.resident),
            capacity_bytes: bytes(cache.capacity),
            table_bytes: (cache.table_bytes
                + system.inodes.bytes()
                + system.files.bytes()
                + system.directories.bytes()
                + system.names_bytes()) as u64,
            inodes: system.inodes.len() as u64,
            most_inodes: system.inodes.most() as u64,
            invalidated: of(&counters.invalidated),
            open: (system.files.len() + system.directories.len()) as u64,
            outside_changes: of(&counters.outside_changes),
            conflicts: of(&counters.conflicts),
            write_errors: cache.write_errors,
            folders: system.folder_stats(),
            ring_requests: of(&counters.by_ring),
            explanation: explanation.collect::<BTreeMap<_, _>>(),
            operations: counters.operations(),
        }
    }
}

impl Mount {
    /// Where it is mounted.
    pub fn mountpoint(&self) -> &Path {
        &self.shared.mountpoint
    }

    /// What it has done.
    pub fn stats(&self) -> MountStats {
        self.shared.stats()
    }

    /// Writes all that is dirty to the source's disk. `sync(1)` and `syncfs` do not reach a FUSE file system: this does.
    ///
    /// # Errors
    /// [`FsError::WriteBack`]: the first failure. What could not be written is kept.
    pub fn sync(&self) -> Result<(), FsError> {
        self.shared.sync()
    }

    /// Writes back, and forgets all blocks that are not in use, attributes, names of files that are not open,
    /// and lists of directories.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn drop_caches(&self) -> Result<(), FsError> {
        self.shared.drop_caches()
    }

    /// Changes options while it is mounted.
    ///
    /// # Errors
    /// A size that it cannot have.
    pub fn tune(&self, tune: &Tune) -> Result<(), FsError> {
        self.shared.tune(tune)
    }

    /// Writes back, unmounts, and returns when the source has everything.
    ///
    /// # Errors
    /// [`FsError::WriteBack`] and [`FsError::InUse`]: it is still mounted, and works.
    pub fn unmount(&self) -> Result<(), FsError> {
        self.shared.unmount()
    }

    /// Unmounts at once, also while programs use it: they keep what they have open, and the mount ends with the last of them.
    ///
    /// # Errors
    /// It is not mounted any more, or this user may not unmount it.
    pub fn detach(&self) -> Result<(), FsError> {
        let what = "unmounting";
        detach(&self.shared.mountpoint, true).map_err(|error| FsError::Fuse { what, error })
    }

    /// Waits until it is unmounted, by whatever program, and the source has everything.
    ///
    /// # Errors
    /// [`FsError::Lost`]: what was left could not be written, also not within a minute.
    pub fn wait(&self) -> Result<(), FsError> {
        self.shared.wait()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if !self.shared.is_finished() {
            let _ = detach(&self.shared.mountpoint, true);
        }
        let _ = self.shared.wait();
        // The thread that listens looks whether all has ended, and takes its socket away.
        let _ = connected(&self.socket);
        let threads =
            core::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of all that a mount holds whose cache has this size.
    fn held(options: &MountOptions, entries: usize, budget: &Budget, shares: Shares) -> usize {
        options.all_threads() * (HEADERS + budget.max_write)
            + entries * entry_bytes(RING_WRITE)
            + budget.aside.bytes
            + budget.aside.requests * WAITING_BYTES
            + budget.most_pages * PAGE_TABLES
            + shares.inodes * INODE_BYTES
            + shares.blocks
    }

    #[test]
    fn a_mount_holds_no_more_than_its_budget() {
        let mib = 1 << 20;
        let sizes = [1, 2, 3, 4, 7, 8, 16, 64, 100, 512, 4096].map(|n| n * mib);
        for bytes in sizes {
            for threads in [1, 2, 16, 256] {
                for (entries, times) in [(0, 1), (0, 2), (0, 8), (4, 1), (4, 8), (64, 1), (64, 8)] {
                    stays_within(bytes, threads, entries, times);
                }
            }
        }
    }

    /// Whatever size the cache has, up to so many `times` the one that it begins with.
    fn stays_within(bytes: usize, threads: usize, entries: usize, times: usize) {
        let what = format!("{bytes} bytes, {threads} threads, {entries} entries, {times} times");
        let options = MountOptions::new("", "")
            .cache_bytes(bytes)
            .most_bytes(times * bytes)
            .threads(threads);
        let budget = options.budget_of(entries, 1 << 20);
        let least = budget.least();
        assert!(least <= bytes || entries > 0 || times > 1, "{what}");
        assert!(budget.shares(least - 1).is_err());
        let sizes = [least, bytes, times * bytes];
        for size in sizes.into_iter().filter(|&size| size >= least) {
            let shares = budget.shares(size).unwrap();
            let held = held(&options, entries, &budget, shares);
            assert!(held <= size, "{what}: {held} of {size}");
            assert!(shares.blocks >= LEAST_PAGES * larder::os::page_size());
        }
    }

    #[test]
    fn what_the_kernel_sends_ahead_has_room() {
        let room = |bytes| {
            let options = MountOptions::new("", "").cache_bytes(bytes).threads(2);
            let budget = options.budget_of(0, 1 << 20);
            (budget.max_write, budget.aside)
        };
        for bytes in [64, 512, 4096].map(|mib| mib << 20) {
            let (largest, aside) = room(bytes);
            let fit = aside.bytes / (HEADERS + largest);
            // As many reads as are under way at a time wait without room of their own.
            assert!(usize::from(aside.background) <= fit.max(16), "{bytes}");
        }
        let largest = [1 << 20, 64 << 20, 512 << 20].map(|bytes| room(bytes).0);
        assert_eq!(largest, [64 << 10, 128 << 10, 1 << 20]);
    }

    #[test]
    fn a_thread_that_panics_ends_the_mount_as_one_that_fails_does() {
        let said = Mutex::new(Vec::new());
        let end = |regularly| said.lock().unwrap().push(regularly);
        let run = |work: &dyn Fn() -> bool| {
            let mut last = Last::new(&end);
            last.regularly = work();
        };
        run(&|| true);
        run(&|| false);
        let panics = std::panic::AssertUnwindSafe(|| run(&|| panic!("on purpose")));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(*said.lock().unwrap(), [true, false, false]);
    }
}
