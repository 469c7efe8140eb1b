//! The kernel's side: messages on `/dev/fuse`, one read each, and their answers, one write each; or the same messages by io_uring.
//!
//! A message is read as bytes, field by field, so a short or foreign one is refused and cannot be mistaken. Reads are answered
//! from the cache's pages themselves, with one `writev`. The numbers are those of linux/fuse.h.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use larder_cache::CacheHandle;
use rustix::fs::{Mode as Permissions, OFlags};
use rustix::io::Errno;

use crate::attributes::Changes;
use crate::data::{OpenFile, Read, Write};
use crate::filesystem::FileSystem;
use crate::gate::{Gate, Next, Waits};
use crate::inode::Inode;
use crate::names::{Entry, New};
use crate::options::{Coherence, Mode};
use crate::reply::{Device, Reply, send};
use crate::ring::{Entry as RingEntry, Ring};
use crate::source::asks;
use crate::system::{Attr, Caller, Sys, Time, is_linux};
use crate::waiting::is_killed;

/// Bytes before the data of the largest message.
pub(crate) const HEADERS: usize = 4096;

pub(crate) const LOOKUP: u32 = 1;
pub(crate) const FORGET: u32 = 2;
pub(crate) const GETATTR: u32 = 3;
pub(crate) const SETATTR: u32 = 4;
pub(crate) const READLINK: u32 = 5;
pub(crate) const SYMLINK: u32 = 6;
pub(crate) const MKNOD: u32 = 8;
pub(crate) const MKDIR: u32 = 9;
pub(crate) const UNLINK: u32 = 10;
pub(crate) const RMDIR: u32 = 11;
pub(crate) const RENAME: u32 = 12;
pub(crate) const LINK: u32 = 13;
pub(crate) const OPEN: u32 = 14;
pub(crate) const READ: u32 = 15;
pub(crate) const WRITE: u32 = 16;
pub(crate) const STATFS: u32 = 17;
pub(crate) const RELEASE: u32 = 18;
pub(crate) const FSYNC: u32 = 20;
pub(crate) const SETXATTR: u32 = 21;
pub(crate) const GETXATTR: u32 = 22;
pub(crate) const LISTXATTR: u32 = 23;
pub(crate) const REMOVEXATTR: u32 = 24;
pub(crate) const FLUSH: u32 = 25;
pub(crate) const INIT: u32 = 26;
pub(crate) const OPENDIR: u32 = 27;
pub(crate) const READDIR: u32 = 28;
pub(crate) const RELEASEDIR: u32 = 29;
pub(crate) const FSYNCDIR: u32 = 30;
pub(crate) const CREATE: u32 = 35;
pub(crate) const INTERRUPT: u32 = 36;
pub(crate) const DESTROY: u32 = 38;
pub(crate) const BATCH_FORGET: u32 = 42;
pub(crate) const FALLOCATE: u32 = 43;
pub(crate) const READDIRPLUS: u32 = 44;
pub(crate) const RENAME2: u32 = 45;
pub(crate) const LSEEK: u32 = 46;
pub(crate) const COPY_FILE_RANGE: u32 = 47;
pub(crate) const TMPFILE: u32 = 51;

const ASYNC_READ: u64 = 1 << 0;
const BIG_WRITES: u64 = 1 << 5;
const DONT_MASK: u64 = 1 << 6;
const AUTO_INVAL_DATA: u64 = 1 << 12;
const DO_READDIRPLUS: u64 = 1 << 13;
const READDIRPLUS_AUTO: u64 = 1 << 14;
const ASYNC_DIO: u64 = 1 << 15;
const PARALLEL_DIROPS: u64 = 1 << 18;
const POSIX_ACL: u64 = 1 << 20;
const NO_OPEN_SUPPORT: u64 = 1 << 17;
const MAX_PAGES: u64 = 1 << 22;
const CACHE_SYMLINKS: u64 = 1 << 23;
const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
const SETXATTR_EXT: u64 = 1 << 29;
const INIT_EXT: u64 = 1 << 30;
const DIRECT_IO_ALLOW_MMAP: u64 = 1 << 36;
const PASSTHROUGH: u64 = 1 << 37;
const OVER_IO_URING: u64 = 1 << 41;

/// Before it, kernels may hang that read ahead in a file which they opened without asking, when memory is short: the inode goes
/// during the read (Linux commits e26ee4efbc79 and bd5603eaae0a).
const NO_OPEN_LINUX: [u32; 3] = [6, 18, 10];

const FOPEN_DIRECT_IO: u32 = 1 << 0;
const FOPEN_KEEP_CACHE: u32 = 1 << 1;
const FOPEN_CACHE_DIR: u32 = 1 << 3;
const FOPEN_PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
const FOPEN_PASSTHROUGH: u32 = 1 << 7;

/// The kernel wrote from its own pages.
const WRITE_CACHE: u32 = 1 << 0;
const WRITE_KILL_SUIDGID: u32 = 1 << 2;
const OPEN_KILL_SUIDGID: u32 = 1 << 0;
const FSYNC_DATA: u32 = 1 << 0;
const SETXATTR_ACL_KILL_SGID: u32 = 1 << 0;

const NOTIFY_INVAL_INODE: i32 = 2;
const NOTIFY_INVAL_ENTRY: i32 = 3;

// _IOR(229, 0, u32), _IOW(229, 1, struct fuse_backing_map), _IOW(229, 2, u32).
const IOC_CLONE: libc::c_ulong = 0x8004_e500;
const IOC_BACKING_OPEN: libc::c_ulong = 0x4010_e501;
const IOC_BACKING_CLOSE: libc::c_ulong = 0x4004_e502;

/// A connection of its own for another thread.
pub(crate) fn clone_device(device: &Device) -> io::Result<Device> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let new = rustix::fs::open("/dev/fuse", flags, Permissions::empty())?;
    let mut number = device.as_raw_fd();
    // SAFETY: the call reads one number of 32 bits.
    let done = unsafe { libc::ioctl(new.as_raw_fd(), IOC_CLONE, &mut number) };
    match done {
        0 => Ok(Arc::new(new)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The kernel's number of a file of the source, which it reads and writes by itself.
#[derive(Debug)]
pub(crate) struct BackingId {
    device: Device,
    id: i32,
}

/// Whether the kernel lets this process name files to it: of no file it first says whether this may be asked.
pub(crate) fn may_pass_files(device: &Device) -> bool {
    !BackingId::new(device, -1).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

impl BackingId {
    fn new(device: &Device, file: RawFd) -> io::Result<Self> {
        // struct fuse_backing_map: the descriptor, flags, padding.
        let map: [u32; 4] = [file as u32, 0, 0, 0];
        // SAFETY: the call reads these 16 bytes.
        let id = unsafe { libc::ioctl(device.as_raw_fd(), IOC_BACKING_OPEN, &map) };
        match id {
            ..=0 => Err(io::Error::last_os_error()),
            id => Ok(Self {
                device: Arc::clone(device),
                id,
            }),
        }
    }
}

impl Drop for BackingId {
    fn drop(&mut self) {
        let id = self.id;
        // SAFETY: the call reads one number of 32 bits. If it fails, the connection has ended.
        unsafe { libc::ioctl(self.device.as_raw_fd(), IOC_BACKING_CLOSE, &id) };
    }
}

/// What is left of a message, and a second part of it where the kernel sends one. No field lies in both.
#[derive(Clone, Copy)]
struct Message<'m>(&'m [u8], &'m [u8]);

impl<'m> Message<'m> {
    fn take(&mut self, bytes: usize) -> Sys<&'m [u8]> {
        self.turn();
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(Errno::IO)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Goes on with the second part after the first.
    fn turn(&mut self) {
        if self.0.is_empty() {
            (self.0, self.1) = (self.1, &[]);
        }
    }

    fn array<const N: usize>(&mut self) -> Sys<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| Errno::IO)
    }

    fn u32(&mut self) -> Sys<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Sys<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    /// Bytes up to the next zero.
    fn name(&mut self) -> Sys<&'m [u8]> {
        self.turn();
        let len = self.0.iter().position(|&byte| byte == 0).ok_or(Errno::IO)?;
        let name = self.take(len)?;
        self.take(1)?;
        Ok(name)
    }
}

/// What begins each message.
struct Header {
    opcode: u32,
    unique: u64,
    node: u64,
    caller: Caller,
    /// The one that asks; 0 where the mount cannot see it.
    thread: u32,
    begun: Instant,
}

impl Header {
    fn read(bytes: &[u8]) -> Sys<(Self, Message<'_>)> {
        let mut message = Message(bytes, &[]);
        let len = message.u32()? as usize;
        if len != bytes.len() {
            return Err(Errno::IO);
        }
        let header = Self::after_length(&mut message)?;
        Ok((header, message))
    }

    fn after_length(message: &mut Message<'_>) -> Sys<Self> {
        let opcode = message.u32()?;
        let (unique, node) = (message.u64()?, message.u64()?);
        let (uid, gid, thread) = (message.u32()?, message.u32()?, message.u32()?);
        message.u32()?;
        Ok(Self {
            opcode,
            unique,
            node,
            caller: Caller { uid, gid },
            thread,
            begun: Instant::now(),
        })
    }
}

/// An answer in the making.
struct Answer<'a>(&'a mut Vec<u8>);

impl Answer<'_> {
    fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_ne_bytes())
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_ne_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn attr(&mut self, attr: &Attr) -> &mut Self {
        self.u64(attr.ino).u64(attr.size).u64(attr.blocks);
        for (seconds, _) in [attr.atime, attr.mtime, attr.ctime] {
            self.u64(seconds as u64);
        }
        for (_, nanoseconds) in [attr.atime, attr.mtime, attr.ctime] {
            self.u32(nanoseconds);
        }
        self.u32(attr.mode)
            .u32(attr.nlink)
            .u32(attr.uid)
            .u32(attr.gid);
        self.u32(attr.rdev as u32).u32(attr.blksize).u32(0)
    }

    fn entry(&mut self, node: u64, attr: &Attr, ttl: Duration) -> &mut Self {
        self.u64(node).u64(0).u64(ttl.as_secs()).u64(ttl.as_secs());
        self.u32(ttl.subsec_nanos())
            .u32(ttl.subsec_nanos())
            .attr(attr)
    }
}

/// What becomes of a request.
enum Outcome {
    /// It would wait for the source, and must not. Nothing was done that cannot be done again.
    Waits,
    /// The answer was written.
    Answer,
    /// It was sent already.
    Sent,
    /// Another thread sends it, and counts it.
    Later,
    /// The kernel waits for none.
    None,
}

/// How a request may come to wait for the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// It does not.
    None,
    /// For data that is not in memory, or for a lock or a block: only the request itself finds out.
    Data,
    /// For names or attributes.
    Names,
    /// As names, but seldom, and so it does not count among their waits.
    Forgets,
    /// For a whole file: its lock, its blocks, or the source's disk.
    File,
}

/// A request that was set aside.
pub(crate) struct Aside {
    request: Taken,
    opcode: u32,
    unique: u64,
    /// The thread that asked.
    thread: u32,
    begun: Instant,
}

impl Aside {
    fn new(request: Taken, header: &Header) -> Self {
        Self {
            request,
            opcode: header.opcode,
            unique: header.unique,
            thread: header.thread,
            begun: header.begun,
        }
    }
}

/// A request as it came.
enum Taken {
    /// By the descriptor by which it is answered.
    Message(Vec<u8>, Device),
    Entry(RingEntry),
}

/// Requests on their way to the threads of a mount.
pub(crate) type Requests = Gate<Aside>;

/// Asks the kernel to forget a name. Not to be called by a thread that answers requests.
pub(crate) fn forget_name(device: &Device, parent: u64, name: &[u8]) {
    let mut bytes = Vec::with_capacity(17 + name.len());
    Answer(&mut bytes)
        .u64(parent)
        .u32(name.len() as u32)
        .u32(0)
        .bytes(name)
        .bytes(&[0]);
    // It has no such name, or is busy with it.
    let _ = send(device, 0, NOTIFY_INVAL_ENTRY, &[&bytes]);
}

/// Asks the kernel to forget pages and attributes of a file. Not to be called by a thread that answers requests.
pub(crate) fn forget_pages(device: &Device, node: u64) {
    let mut bytes = Vec::with_capacity(24);
    Answer(&mut bytes).u64(node).u64(0).u64(0);
    let _ = send(device, 0, NOTIFY_INVAL_INODE, &[&bytes]);
}

/// Why the first message was refused.
pub(crate) const NO_RING: &str = "the kernel offers no io_uring";

/// What the kernel took of what it was offered, as far as its messages depend on it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Agreed {
    /// A message that sets an extended attribute says what else is to change with it.
    attribute_flags: bool,
}

/// Answers the kernel's first message.
///
/// # Errors
/// The kernel lacks what the mode or `by_ring` needs, or is too old.
pub(crate) fn greet(device: &Device, system: &FileSystem, by_ring: bool) -> io::Result<Agreed> {
    let mut buffer = vec![0; HEADERS + system.max_write];
    let len = loop {
        match rustix::io::read(&**device, &mut buffer[..]) {
            Ok(len) => break len,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let (header, mut message) = Header::read(&buffer[..len])?;
    let (major, minor, read_ahead, low) = (
        message.u32()?,
        message.u32()?,
        message.u32()?,
        message.u32()?,
    );
    let high = if u64::from(low) & INIT_EXT != 0 {
        message.u32()?
    } else {
        0
    };
    let refuse = |text: &str| {
        let _ = send(device, header.unique, -libc::EPROTO, &[]);
        Err(io::Error::new(io::ErrorKind::Unsupported, text.to_owned()))
    };
    if header.opcode != INIT || major != 7 || minor < 31 {
        return refuse("the kernel is too old: Linux 5.8 or later is needed");
    }
    let offered = u64::from(high) << 32 | u64::from(low);
    // Without ATOMIC_O_TRUNC, by which the kernel cuts a program that runs before it finds that it must not.
    let mut wanted = ASYNC_READ | BIG_WRITES | DONT_MASK | DO_READDIRPLUS | READDIRPLUS_AUTO;
    wanted |=
        ASYNC_DIO | PARALLEL_DIROPS | MAX_PAGES | CACHE_SYMLINKS | HANDLE_KILLPRIV_V2 | INIT_EXT;
    if system.acl {
        // The source lets a file with a new list keep the right to run as its group, because the daemon may have it. The kernel says
        // when it goes.
        wanted |= POSIX_ACL | SETXATTR_EXT;
    }
    match system.mode {
        Mode::Own => wanted |= DIRECT_IO_ALLOW_MMAP,
        // Others do not change files.
        Mode::Shared if system.coherence == Coherence::Exclusive => {}
        Mode::Shared => wanted |= AUTO_INVAL_DATA,
        Mode::Bypass if offered & PASSTHROUGH == 0 => {
            return refuse("the kernel has no passthrough (Linux 6.9, CONFIG_FUSE_PASSTHROUGH)");
        }
        Mode::Bypass => wanted |= PASSTHROUGH,
    }
    if by_ring {
        if offered & OVER_IO_URING == 0 {
            return refuse(NO_RING);
        }
        wanted |= OVER_IO_URING;
    }
    let no_open = offered & NO_OPEN_SUPPORT != 0
        && system.mode == Mode::Shared
        && system.coherence == Coherence::Exclusive
        && !system.close_to_open
        && is_linux(NO_OPEN_LINUX);
    system.no_open.store(no_open, Ordering::Relaxed);
    let flags = wanted & offered;
    let pages = (system.max_write / larder::os::page_size()) as u16;
    let mut bytes = Vec::with_capacity(64);
    let mut answer = Answer(&mut bytes);
    answer
        .u32(7)
        .u32(minor.min(41))
        .u32(read_ahead)
        .u32(flags as u32);
    // Most requests that programs do not wait for, and from how many on the kernel holds back.
    let background = system.aside.background;
    answer
        .bytes(&background.to_ne_bytes())
        .bytes(&(background / 4 * 3).to_ne_bytes());
    answer.u32(system.max_write as u32).u32(1);
    answer
        .bytes(&pages.to_ne_bytes())
        .bytes(&[0; 2])
        .u32((flags >> 32) as u32);
    // Files of the source may not lie on a stacked file system themselves.
    answer
        .u32(u32::from(system.mode == Mode::Bypass))
        .bytes(&[0; 24]);
    send(device, header.unique, 0, &[&bytes])?;
    Ok(Agreed {
        attribute_flags: flags & SETXATTR_EXT != 0,
    })
}

/// A thread that answers requests.
pub(crate) struct Worker<'s> {
    system: &'s FileSystem,
    device: Device,
    requests: &'s Requests,
    agreed: Agreed,
    handle: CacheHandle,
    out: Vec<u8>,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(system: &'s FileSystem, device: Device, requests: &'s Requests) -> Self {
        Self {
            handle: system.cache.handle(),
            system,
            device,
            requests,
            agreed: Agreed::default(),
            out: Vec::with_capacity(4096),
        }
    }

    /// Reads messages as the kernel agreed to send them.
    pub(crate) fn with(self, agreed: Agreed) -> Self {
        Self { agreed, ..self }
    }

    /// Answers requests until the mount ends.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; HEADERS + self.system.max_write];
        let mut next = self.requests.enter();
        loop {
            next = match next {
                Next::End => return Ok(()),
                Next::Answer(aside) => {
                    self.answer_aside(aside);
                    self.requests.back()
                }
                Next::Serve => {
                    let len = match rustix::io::read(&*self.device, &mut buffer[..]) {
                        Ok(len) => len,
                        // A request was taken back before it was read.
                        Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {
                            next = Next::Serve;
                            continue;
                        }
                        Err(Errno::NODEV) => return Ok(()),
                        Err(error) => return Err(error.into()),
                    };
                    let Ok((header, message)) = Header::read(&buffer[..len]) else {
                        return Err(io::Error::new(
                            io::ErrorKind::InvalidData,
                            "a message of the kernel that is none",
                        ));
                    };
                    self.requests.relieve(header.begun);
                    let left = self.serve_message(&header, message, &buffer[..len]);
                    match header.opcode {
                        DESTROY => return Ok(()),
                        _ if left => self.requests.back(),
                        _ => Next::Serve,
                    }
                }
            };
        }
    }

    /// Answers a request of the descriptor, or sets it aside. Returns whether the thread left its place for it.
    fn serve_message(&mut self, header: &Header, message: Message<'_>, bytes: &[u8]) -> bool {
        let mut reply = Reply::Device(Arc::clone(&self.device));
        let mut outcome = self.serve(header, message, &mut reply, false);
        let mut left = false;
        if let Ok(Outcome::Waits) = outcome {
            let slow = self.waits_for(header, message).are_slow();
            let aside = || {
                let device = Arc::clone(&self.device);
                Aside::new(Taken::Message(bytes.to_vec(), device), header)
            };
            // The kernel has no bound for these, but each inode that is in memory is forgotten once.
            let counts = !matches!(header.opcode, FORGET | BATCH_FORGET);
            let room = if counts { bytes.len() } else { 0 };
            left = self.requests.leave(slow, room, aside);
            if !left {
                self.interrupt_early(header.unique);
                return false;
            }
            outcome = self.serve(header, message, &mut reply, true);
        }
        self.finish(header, outcome, &mut reply);
        left
    }

    /// Answers a request that was set aside. It may wait.
    fn answer_aside(&mut self, aside: Aside) {
        match aside.request {
            Taken::Entry(entry) => drop(self.serve_entry(entry, aside.begun, true)),
            Taken::Message(bytes, device) => {
                if let Ok((mut header, message)) = Header::read(&bytes) {
                    header.begun = aside.begun;
                    let mut reply = Reply::Device(device);
                    let outcome = self.serve(&header, message, &mut reply, true);
                    self.finish(&header, outcome, &mut reply);
                }
            }
        }
    }

    /// Answers requests that come by a ring until the mount ends. Those that may wait long for the source are set aside.
    pub(crate) fn run_ring(&mut self, mut ring: Ring) -> io::Result<()> {
        ring.start()?;
        let mut requests = Vec::new();
        while ring.wait(&mut requests)? {
            for entry in requests.drain(..) {
                // Answers that are ready do not wait for a call of the source.
                if !matches!(entry.opcode(), READ | WRITE) {
                    ring.flush()?;
                }
                self.system.counters.by_ring.fetch_add(1, Ordering::Relaxed);
                let begun = Instant::now();
                if let Some(aside) = self.serve_entry(entry, begun, false) {
                    let unique = aside.unique;
                    self.requests.put(aside);
                    self.interrupt_early(unique);
                }
            }
        }
        Ok(())
    }

    /// Answers a request that came by a ring. Returns it if it would wait, and must not.
    fn serve_entry(
        &mut self,
        mut entry: RingEntry,
        begun: Instant,
        may_wait: bool,
    ) -> Option<Aside> {
        let request = entry.request();
        let header = request
            .as_ref()
            .map_err(|&error| error)
            .and_then(|request| {
                let mut message = Message(request.header(), &[]);
                message.u32()?;
                Header::after_length(&mut message)
            });
        let (Ok(request), Ok(mut header)) = (&request, header) else {
            // The kernel takes no answer with another number than the request's, and ends it with an error.
            Reply::Ring(Some(entry)).answer(0, Err(Errno::IO));
            return None;
        };
        header.begun = begun;
        // A read has no payload, and keeps the buffer for its answer.
        let lent = match header.opcode {
            READ => None,
            _ => entry.lend(),
        };
        let payload = lent
            .as_ref()
            .map_or(&[][..], |memory| memory.payload(request.payload));
        let mut reply = Reply::Ring(Some(entry));
        let message = Message(request.fields(), payload);
        let outcome = self.serve(&header, message, &mut reply, may_wait);
        if let Some(memory) = lent {
            reply.give_back(memory);
        }
        if let (Ok(Outcome::Waits), Reply::Ring(entry)) = (&outcome, &mut reply) {
            let entry = entry.take()?;
            return Some(Aside::new(Taken::Entry(entry), &header));
        }
        self.finish(&header, outcome, &mut reply);
        if let Reply::Ring(Some(_)) = reply {
            // The kernel sends none by a ring that it wants no answer to; the entry is to go back in any case.
            reply.answer(header.unique, Err(Errno::NOSYS));
        }
        None
    }

    /// What a request may wait for, as far as it can be seen before it is begun.
    fn wait(&self, header: &Header, mut message: Message<'_>) -> Wait {
        let size = 1 << 3;
        let cuts = libc::O_TRUNC as u32;
        match header.opcode {
            READ | WRITE => Wait::Data,
            FORGET | BATCH_FORGET => Wait::Forgets,
            FSYNC | FSYNCDIR | FALLOCATE | COPY_FILE_RANGE | RENAME | RENAME2 | LSEEK => Wait::File,
            SETATTR if message.u32().is_ok_and(|valid| valid & size != 0) => Wait::File,
            OPEN if message.u32().is_ok_and(|flags| flags & cuts != 0) => Wait::File,
            FLUSH if self.system.close_to_open => {
                let file = message
                    .u64()
                    .and_then(|handle| self.system.file(handle))
                    .ok();
                match file.is_some_and(|file| file.inode.state().changed) {
                    true => Wait::File,
                    false => Wait::None,
                }
            }
            GETATTR => {
                let inode = self.inode(header);
                match inode.is_ok_and(|inode| self.system.is_fresh(&inode)) {
                    true => Wait::None,
                    false => Wait::Names,
                }
            }
            LOOKUP | SETATTR | READLINK | SYMLINK | MKNOD | MKDIR | UNLINK | RMDIR | LINK
            | OPEN | STATFS | RELEASE | SETXATTR | GETXATTR | LISTXATTR | REMOVEXATTR | OPENDIR
            | READDIR | READDIRPLUS | CREATE | TMPFILE => Wait::Names,
            _ => Wait::None,
        }
    }

    /// The waits that tell whether a request waits long.
    fn waits_for(&self, header: &Header, message: Message<'_>) -> &'s Waits {
        match self.wait(header, message) {
            Wait::Names | Wait::Forgets => &self.system.source.names,
            _ => &self.system.source.data,
        }
    }

    /// Does what a request asks for, and counts it. A read may send its answer.
    fn serve(
        &mut self,
        header: &Header,
        message: Message<'_>,
        reply: &mut Reply,
        may_wait: bool,
    ) -> Sys<Outcome> {
        self.out.clear();
        let names = &self.system.source.names;
        let wait = self.wait(header, message);
        let by_descriptor = matches!(reply, Reply::Device(_));
        let hands_on = match wait {
            Wait::None => false,
            // A read finds out by itself. So does a write, but it copies for so long that another thread should serve meanwhile: without
            // that dbench was a tenth slower.
            Wait::Data => by_descriptor && header.opcode == WRITE,
            // To leave costs little while another thread serves. A ring's thread has to wake one, which takes longer than most names.
            // A change to names may wait for a block of the file, too.
            Wait::Names | Wait::Forgets => {
                by_descriptor || names.are_slow() || self.system.source.data.are_slow()
            }
            Wait::File => true,
        };
        let outcome = match header.opcode {
            _ if hands_on && !may_wait => Ok(Outcome::Waits),
            READ => self.read(header, message, reply, may_wait),
            WRITE => self.write(header, message, may_wait),
            _ => {
                let begun = Instant::now();
                let (outcome, asked) = asks(|| self.answer(header, message));
                if asked && wait == Wait::Names {
                    names.add(begun.elapsed());
                }
                outcome
            }
        };
        if self.system.traced {
            self.handle.report();
        }
        if !matches!(outcome, Ok(Outcome::Later | Outcome::Waits)) {
            let failed = outcome.is_err();
            // Before the program goes on, so that it finds its request counted.
            self.system
                .counters
                .did(header.opcode, header.begun, failed);
        }
        outcome
    }

    /// Sends the answer, where one is left to send.
    fn finish(&mut self, header: &Header, outcome: Sys<Outcome>, reply: &mut Reply) {
        match outcome {
            Ok(Outcome::Answer) => reply.answer(header.unique, Ok(&[&self.out])),
            Ok(Outcome::Sent | Outcome::Later | Outcome::Waits | Outcome::None) => {}
            // The kernel waits for no answer to these, whatever they hold.
            Err(_) if matches!(header.opcode, FORGET | BATCH_FORGET | INTERRUPT) => {}
            Err(error) => reply.answer(header.unique, Err(error)),
        }
    }

    fn inode(&self, header: &Header) -> Sys<Arc<Inode>> {
        self.system.inodes.get(header.node)
    }

    /// The open file that a request is for. It may wait.
    fn file(&self, node: u64, handle: u64, write: bool) -> Sys<Arc<OpenFile>> {
        let file = self.file_of(node, handle, write, true)?;
        file.ok_or(Errno::BADF)
    }

    /// [`file`](Self::file); none if the source would have to open it, and may not be asked.
    fn file_of(
        &self,
        node: u64,
        handle: u64,
        write: bool,
        may_ask: bool,
    ) -> Sys<Option<Arc<OpenFile>>> {
        let system = self.system;
        if !system.no_open() {
            return system.file(handle).map(Some);
        }
        let inode = system.inodes.get(node)?;
        let begun = Instant::now();
        let (file, asked) = asks(|| system.lasting(&inode, write, may_ask));
        if asked {
            system.source.names.add(begun.elapsed());
        }
        file
    }

    fn answer(&mut self, header: &Header, mut message: Message<'_>) -> Sys<Outcome> {
        let system = self.system;
        match header.opcode {
            LOOKUP => self.look_up(header, message),
            FORGET => {
                system.forget(header.node, message.u64()?);
                Ok(Outcome::None)
            }
            BATCH_FORGET => {
                let count = message.u32()?;
                message.u32()?;
                for _ in 0..count {
                    let (node, lookups) = (message.u64()?, message.u64()?);
                    system.forget(node, lookups);
                }
                Ok(Outcome::None)
            }
            GETATTR => {
                let attr = system.attributes(&*self.inode(header)?)?;
                self.attr(&attr)
            }
            SETATTR => self.set_attributes(header, message),
            READLINK => {
                let target = system.read_link(&*self.inode(header)?)?;
                self.out.extend_from_slice(&target);
                Ok(Outcome::Answer)
            }
            SYMLINK => {
                let (name, target) = (message.name()?, message.name()?);
                let parent = self.inode(header)?;
                let entry = system.make_symlink(&parent, name, target, header.caller)?;
                self.entry(&entry)
            }
            MKNOD => {
                let (mode, rdev, mask) = (message.u32()?, message.u32()?, message.u32()?);
                message.u32()?;
                let new = New {
                    caller: header.caller,
                    mode,
                    mask,
                };
                let entry = system.make_node(&*self.inode(header)?, message.name()?, new, rdev)?;
                self.entry(&entry)
            }
            MKDIR => {
                let (mode, mask) = (message.u32()?, message.u32()?);
                let new = New {
                    caller: header.caller,
                    mode,
                    mask,
                };
                let entry = system.make_directory(&*self.inode(header)?, message.name()?, new)?;
                self.entry(&entry)
            }
            UNLINK | RMDIR => {
                let parent = self.inode(header)?;
                system.unlink(&parent, message.name()?, header.opcode == RMDIR)?;
                Ok(Outcome::Answer)
            }
            RENAME | RENAME2 => {
                let to = message.u64()?;
                let flags = match header.opcode {
                    RENAME2 => (message.u32()?, message.u32()?).0,
                    _ => 0,
                };
                let (name, new_name) = (message.name()?, message.name()?);
                let (from, to) = (self.inode(header)?, system.inodes.get(to)?);
                system.rename(&from, name, &to, new_name, flags)?;
                Ok(Outcome::Answer)
            }
            LINK => {
                let inode = system.inodes.get(message.u64()?)?;
                let entry = system.link(&inode, &*self.inode(header)?, message.name()?)?;
                self.entry(&entry)
            }
            OPEN if self.system.no_open() => Err(Errno::NOSYS),
            OPEN => self.open(header, message),
            CREATE | TMPFILE => self.create(header, message),
            STATFS => self.whole(),
            RELEASE => {
                system.release(message.u64()?);
                Ok(Outcome::Answer)
            }
            FLUSH if !system.close_to_open => Err(Errno::NOSYS),
            FLUSH => {
                system.flush(&*system.file(message.u64()?)?)?;
                Ok(Outcome::Answer)
            }
            FSYNC => {
                let file = self.file(header.node, message.u64()?, false)?;
                system.sync(&file, message.u32()? & FSYNC_DATA == 0)?;
                Ok(Outcome::Answer)
            }
            SETXATTR => {
                let (size, flags) = (message.u32()?, message.u32()?);
                let with_it = match self.agreed.attribute_flags {
                    true => (message.u32()?, message.u32()?).0,
                    false => 0,
                };
                let name = message.name()?;
                let value = message.take(size as usize)?;
                let kills = with_it & SETXATTR_ACL_KILL_SGID != 0;
                system.set_extended(&*self.inode(header)?, name, value, flags, kills)?;
                Ok(Outcome::Answer)
            }
            GETXATTR | LISTXATTR => {
                let room = message.u32()? as usize;
                message.u32()?;
                let inode = self.inode(header)?;
                let value = match header.opcode {
                    GETXATTR => system.extended(&inode, message.name()?, room)?,
                    _ => system.list_extended(&inode, room)?,
                };
                match value {
                    Ok(value) => self.out.extend_from_slice(&value),
                    Err(size) => {
                        Answer(&mut self.out).u32(size as u32).u32(0);
                    }
                }
                Ok(Outcome::Answer)
            }
            REMOVEXATTR => {
                system.remove_extended(&*self.inode(header)?, message.name()?)?;
                Ok(Outcome::Answer)
            }
            OPENDIR => {
                let (handle, keep) = system.open_directory(&self.inode(header)?)?;
                let flags = match system.coherence {
                    Coherence::Strict => 0,
                    _ if keep => FOPEN_CACHE_DIR | FOPEN_KEEP_CACHE,
                    _ => FOPEN_CACHE_DIR,
                };
                Answer(&mut self.out).u64(handle).u32(flags).u32(0);
                Ok(Outcome::Answer)
            }
            READDIR => self.read_directory(message, false),
            READDIRPLUS => self.read_directory(message, true),
            RELEASEDIR => {
                system.release_directory(message.u64()?);
                Ok(Outcome::Answer)
            }
            FSYNCDIR => {
                system.sync_directory(&*self.inode(header)?)?;
                Ok(Outcome::Answer)
            }
            FALLOCATE => {
                let file = self.file(header.node, message.u64()?, true)?;
                let (offset, len, mode) = (message.u64()?, message.u64()?, message.u32()?);
                system.allocate(&file, mode, offset, len)?;
                Ok(Outcome::Answer)
            }
            LSEEK => {
                let file = self.file(header.node, message.u64()?, false)?;
                let (offset, whence) = (message.u64()?, message.u32()?);
                let at = system.seek(&file, offset, whence)?;
                Answer(&mut self.out).u64(at);
                Ok(Outcome::Answer)
            }
            COPY_FILE_RANGE => {
                let (from, at) = (message.u64()?, message.u64()?);
                let node = message.u64()?;
                let (to, target, len) = (message.u64()?, message.u64()?, message.u64()?);
                let from = self.file(header.node, from, false)?;
                let to = self.file(node, to, true)?;
                let done = system.copy(&from, at, &to, target, len)?;
                Answer(&mut self.out).u32(done as u32).u32(0);
                Ok(Outcome::Answer)
            }
            INTERRUPT => {
                let unique = message.u64()?;
                self.interrupt(unique);
                Ok(Outcome::None)
            }
            DESTROY => Ok(Outcome::Answer),
            _ => Err(Errno::NOSYS),
        }
    }

    /// Answers a read that waits, or a request that is set aside, if its program was killed.
    fn interrupt(&self, unique: u64) {
        if let Some(mut reply) = self.system.waiting.interrupt(unique) {
            return reply.answer(unique, Err(Errno::INTR));
        }
        let thread = |aside: &Aside| (aside.unique == unique).then_some(aside.thread);
        let killed = self.requests.find(thread).is_some_and(is_killed);
        let aside = killed.then(|| self.requests.remove(|aside| aside.unique == unique));
        if let Some(aside) = aside.flatten() {
            self.system.counters.did(aside.opcode, aside.begun, true);
            let mut reply = match aside.request {
                Taken::Message(_, device) => Reply::Device(device),
                Taken::Entry(entry) => Reply::Ring(Some(entry)),
            };
            reply.answer(unique, Err(Errno::INTR));
        }
    }

    /// [`interrupt`](Self::interrupt), of a request that waits from now on, if the kernel asked for it before.
    fn interrupt_early(&self, unique: u64) {
        if self.system.waiting.was_interrupted(unique) {
            self.interrupt(unique);
        }
    }

    fn attr(&mut self, attr: &Attr) -> Sys<Outcome> {
        let ttl = self.system.ttl;
        let mut answer = Answer(&mut self.out);
        answer
            .u64(ttl.as_secs())
            .u32(ttl.subsec_nanos())
            .u32(0)
            .attr(attr);
        Ok(Outcome::Answer)
    }

    fn entry(&mut self, entry: &Entry) -> Sys<Outcome> {
        Answer(&mut self.out).entry(entry.inode.id, &entry.attr, self.system.ttl);
        Ok(Outcome::Answer)
    }

    fn look_up(&mut self, header: &Header, mut message: Message<'_>) -> Sys<Outcome> {
        let parent = self.inode(header)?;
        match self.system.look_up(&parent, message.name()?) {
            Ok(entry) => self.entry(&entry),
            // The kernel may remember that there is no such name.
            Err(Errno::NOENT) if !self.system.ttl.is_zero() => {
                Answer(&mut self.out).entry(0, &Attr::default(), self.system.ttl);
                Ok(Outcome::Answer)
            }
            Err(error) => Err(error),
        }
    }

    fn set_attributes(&mut self, header: &Header, mut message: Message<'_>) -> Sys<Outcome> {
        let valid = message.u32()?;
        message.u32()?;
        let (_handle, size, _owner) = (message.u64()?, message.u64()?, message.u64()?);
        let (atime, mtime, _ctime) = (message.u64()?, message.u64()?, message.u64()?);
        let (atime_ns, mtime_ns, _ctime_ns) = (message.u32()?, message.u32()?, message.u32()?);
        let (mode, _, uid, gid) = (
            message.u32()?,
            message.u32()?,
            message.u32()?,
            message.u32()?,
        );
        let has = |bit: u32| valid & 1 << bit != 0;
        let time = |set: u32, now: u32, time: Time| match (has(set), has(now)) {
            (_, true) => Some(None),
            (true, false) => Some(Some(time)),
            (false, false) => None,
        };
        let changes = Changes {
            mode: has(0).then_some(mode),
            uid: has(1).then_some(uid),
            gid: has(2).then_some(gid),
            size: has(3).then_some(size),
            atime: time(4, 7, (atime as i64, atime_ns)),
            mtime: time(5, 8, (mtime as i64, mtime_ns)),
            kill_ids: has(11),
        };
        let attr = self.system.change(&self.inode(header)?, changes)?;
        self.attr(&attr)
    }

    /// How the kernel is to use an open file.
    fn open_flags(&self, file: &OpenFile, keep: bool) -> Sys<(u32, i32)> {
        match self.system.mode {
            Mode::Own => Ok((FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES, 0)),
            Mode::Shared if keep => Ok((FOPEN_KEEP_CACHE, 0)),
            Mode::Shared => Ok((0, 0)),
            Mode::Bypass => {
                // One number for all openers of a file.
                let mut shared = file
                    .inode
                    .passthrough
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                let id = match shared.upgrade() {
                    Some(id) => id,
                    None => {
                        let id =
                            BackingId::new(&self.device, file.opened.backing.file().as_raw_fd());
                        Arc::new(
                            id.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?,
                        )
                    }
                };
                *shared = Arc::downgrade(&id);
                let number = id.id;
                let _ = file.passthrough.set(id);
                Ok((FOPEN_PASSTHROUGH, number))
            }
        }
    }

    fn open(&mut self, header: &Header, mut message: Message<'_>) -> Sys<Outcome> {
        let (flags, open_flags) = (message.u32()?, message.u32()?);
        let inode = self.inode(header)?;
        let kill_ids = open_flags & OPEN_KILL_SUIDGID != 0;
        // In mode `bypass` too: the kernel opens the source's file anew for each opener, with that one's access.
        let (handle, file, keep) = self.system.open(&inode, flags, kill_ids)?;
        let how = self
            .open_flags(&file, keep)
            .inspect_err(|_| self.system.release(handle));
        let (flags, backing) = how?;
        Answer(&mut self.out)
            .u64(handle)
            .u32(flags)
            .u32(backing as u32);
        Ok(Outcome::Answer)
    }

    fn create(&mut self, header: &Header, mut message: Message<'_>) -> Sys<Outcome> {
        let (flags, mode, mask, _) = (
            message.u32()?,
            message.u32()?,
            message.u32()?,
            message.u32()?,
        );
        let parent = self.inode(header)?;
        let new = New {
            caller: header.caller,
            mode,
            mask,
        };
        let (entry, handle, file) = match header.opcode {
            CREATE => self.system.create(&parent, message.name()?, new, flags)?,
            _ => self.system.create_unnamed(&parent, new, flags)?,
        };
        let how = self.open_flags(&file, false).inspect_err(|_| {
            self.system.release(handle);
            self.system.forget(entry.inode.id, 1);
        });
        let (flags, backing) = how?;
        if self.system.no_open() {
            // Requests name the inode.
            self.system.release_lasting(handle);
        }
        self.entry(&entry)?;
        Answer(&mut self.out)
            .u64(handle)
            .u32(flags)
            .u32(backing as u32);
        Ok(Outcome::Answer)
    }

    fn read(
        &mut self,
        header: &Header,
        mut message: Message<'_>,
        reply: &mut Reply,
        may_wait: bool,
    ) -> Sys<Outcome> {
        // To leave costs little where another thread serves; a ring's thread has to wake one.
        let by_ring = matches!(reply, Reply::Ring(_));
        let may_ask = may_wait || by_ring && !self.system.source.names.are_slow();
        let file = self.file_of(header.node, message.u64()?, false, may_ask)?;
        let Some(file) = file else {
            return Ok(Outcome::Waits);
        };
        let (offset, size) = (message.u64()?, message.u32()?);
        let size = (size as usize).min(self.system.max_write);
        let system = self.system;
        let (unique, begun) = (header.unique, header.begun);
        let send = |pieces: &[&[u8]]| reply.send(unique, 0, pieces);
        let sent = match system.read(&mut self.handle, &file, offset, size, may_wait, send)? {
            Read::Done(sent) => sent,
            Read::Locked => return Ok(Outcome::Waits),
            Read::Missed(reading) if system.waiting.add(unique, header.thread, reply) => {
                let (waiting, counters) =
                    (Arc::clone(&system.waiting), Arc::clone(&system.counters));
                system.read_later(reading, move |pieces| {
                    let reply = waiting.take(unique);
                    counters.did(READ, begun, reply.is_none() || pieces.is_err());
                    if let Some(mut reply) = reply {
                        reply.answer(unique, pieces);
                    }
                });
                self.interrupt_early(unique);
                return Ok(Outcome::Later);
            }
            Read::Missed(_) if !may_wait => return Ok(Outcome::Waits),
            Read::Missed(reading) => {
                let bytes = &system.counters.read_bytes;
                bytes.fetch_add(reading.len(), Ordering::Relaxed);
                let send = |pieces: &[&[u8]]| reply.send(unique, 0, pieces);
                reading.wait(&mut self.handle, send)?
            }
        };
        // It was an answer all the same: the kernel did not take it.
        sent.map_or(Err(Errno::IO), |()| Ok(Outcome::Sent))
    }

    fn write(&mut self, header: &Header, mut message: Message<'_>, may_wait: bool) -> Sys<Outcome> {
        // Where writes are slow as a rule most of them wait, for room or for a block.
        if !may_wait && self.system.source.data.are_slow() {
            return Ok(Outcome::Waits);
        }
        let file = self.file_of(header.node, message.u64()?, true, may_wait)?;
        let Some(file) = file else {
            return Ok(Outcome::Waits);
        };
        let (offset, size, how) = (message.u64()?, message.u32()?, message.u32()?);
        let (_owner, flags, _) = (message.u64()?, message.u32()?, message.u32()?);
        let write = Write {
            offset,
            data: message.take(size as usize)?,
            flags,
            cached: how & WRITE_CACHE != 0,
            kill_ids: how & WRITE_KILL_SUIDGID != 0,
        };
        let written = self
            .system
            .write(&mut self.handle, &file, &write, may_wait)?;
        let Some(done) = written else {
            return Ok(Outcome::Waits);
        };
        Answer(&mut self.out).u32(done as u32).u32(0);
        Ok(Outcome::Answer)
    }

    fn whole(&mut self) -> Sys<Outcome> {
        let stat = self.system.whole()?;
        let mut answer = Answer(&mut self.out);
        answer
            .u64(stat.f_blocks)
            .u64(stat.f_bfree)
            .u64(stat.f_bavail);
        answer.u64(stat.f_files).u64(stat.f_ffree);
        answer
            .u32(stat.f_bsize as u32)
            .u32(stat.f_namemax as u32)
            .u32(stat.f_frsize as u32);
        answer.u32(0).bytes(&[0; 24]);
        Ok(Outcome::Answer)
    }

    fn read_directory(&mut self, mut message: Message<'_>, plus: bool) -> Sys<Outcome> {
        let directory = self.system.directory(message.u64()?)?;
        let (offset, size) = (message.u64()?, message.u32()? as usize);
        let batch = self.system.batch(&directory, offset)?;
        let room = size.min(self.system.max_write);
        let fixed = if plus { 128 + 24 } else { 24 };
        for name in batch.names_from(offset) {
            let len = (fixed + name.name.len()).next_multiple_of(8);
            if self.out.len() + len > room {
                break;
            }
            let mut ino = name.ino;
            if plus {
                let here = name.name == b"." || name.name == b".." || self.system.is_crowded();
                let found = match here {
                    true => None,
                    // Without one the kernel looks the name up when it is asked for.
                    false => self.system.look_up(&directory.inode, name.name).ok(),
                };
                match found {
                    Some(entry) => {
                        ino = entry.attr.ino;
                        self.entry(&entry)?;
                    }
                    None => {
                        Answer(&mut self.out).entry(0, &Attr::default(), Duration::ZERO);
                    }
                }
            }
            let mut answer = Answer(&mut self.out);
            answer
                .u64(ino)
                .u64(name.next)
                .u32(name.name.len() as u32)
                .u32(name.kind.into());
            answer.bytes(name.name);
            let padded = self.out.len().next_multiple_of(8);
            self.out.resize(padded, 0);
        }
        Ok(Outcome::Answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::with_source;

    /// A header as the kernel sends it for root.
    fn header(opcode: u32, node: u64) -> Header {
        Header {
            opcode,
            unique: 1,
            node,
            caller: Caller { uid: 0, gid: 0 },
            thread: 0,
            begun: Instant::now(),
        }
    }

    #[test]
    fn short_messages_are_refused() {
        let mut bytes = 48_u32.to_ne_bytes().to_vec();
        bytes.extend(LOOKUP.to_ne_bytes());
        bytes.resize(48, 0);
        let (header, mut message) = Header::read(&bytes).unwrap();
        assert_eq!((header.opcode, message.0.len()), (LOOKUP, 8));
        assert_eq!(message.name().unwrap(), b"");
        for len in 0..bytes.len() {
            assert!(Header::read(&bytes[..len]).is_err());
        }
        let mut rest = Message(&[1, 2, 3], b"ab\0");
        assert!(rest.u32().is_err() && rest.name().is_err());
        assert_eq!(rest.take(3).unwrap(), [1, 2, 3]);
        // The second part of one that came in two.
        assert_eq!(rest.name().unwrap(), b"ab");
        assert!(rest.take(1).is_err());
    }

    /// Whatever a message holds, it has an answer or an error. Names stay in their directory.
    #[test]
    fn any_message_has_an_answer() {
        use proptest::prelude::*;
        let outer = tempfile::tempdir().unwrap();
        let source = outer.path().join("source");
        std::fs::create_dir(&source).unwrap();
        let system = crate::MountOptions::new(&source, &source)
            .cache_bytes(1 << 20)
            .prepare(&source)
            .unwrap();
        let device = rustix::fs::open("/dev/null", OFlags::RDWR, Permissions::empty()).unwrap();
        let device = Arc::new(device);
        let reply = std::cell::RefCell::new(Reply::Device(Arc::clone(&device)));
        let requests = Requests::new(1, system.aside);
        let worker = std::cell::RefCell::new(Worker::new(&system, device, &requests));
        let word = prop_oneof![3 => Just(0_u32), 3 => 1..4_u32, 1 => 0..70_000_u32, 1 => any::<u32>(), 2 => Just(0x61_u32)];
        let message = (
            0..60_u32,
            0..5_u64,
            proptest::collection::vec(word, 0..40),
            0..4_usize,
            any::<bool>(),
        );
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 30_000,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let done = runner.run(&message, |(opcode, node, words, cut, no_open)| {
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            bytes.truncate(bytes.len().saturating_sub(cut));
            let header = header(opcode, node);
            system.no_open.store(no_open, Ordering::Relaxed);
            let mut worker = worker.borrow_mut();
            // It would take the disk that the test has.
            if opcode != FALLOCATE {
                let at = cut * bytes.len() / 4;
                for (first, second) in [(&bytes[..], &[][..]), bytes.split_at(at)] {
                    let message = Message(first, second);
                    let mut reply = reply.borrow_mut();
                    for may_wait in [false, true] {
                        let served = worker.serve(&header, message, &mut reply, may_wait);
                        let waits = matches!(served, Ok(Outcome::Waits));
                        assert!(!(waits && may_wait));
                        if !waits {
                            break;
                        }
                    }
                }
            }
            Ok(())
        });
        done.unwrap();
        let outside: Vec<_> = std::fs::read_dir(outer.path()).unwrap().collect();
        assert_eq!(outside.len(), 1, "{outside:?}");
    }

    /// Forgotten names and what is known already say nothing about calls of the source.
    #[test]
    fn only_calls_of_the_source_count_among_its_waits() {
        let source = tempfile::tempdir().unwrap();
        std::fs::write(source.path().join("a"), "").unwrap();
        let system = crate::MountOptions::new(source.path(), source.path())
            .cache_bytes(1 << 20)
            .prepare(source.path())
            .unwrap();
        let device = rustix::fs::open("/dev/null", OFlags::RDWR, Permissions::empty()).unwrap();
        let device = Arc::new(device);
        let requests = Requests::new(1, system.aside);
        let mut worker = Worker::new(&system, device, &requests);
        let mut reply = Reply::Ring(None);
        let mut serve = |opcode, node, body: &[u8], may_wait| {
            let header = header(opcode, node);
            worker.serve(&header, Message(body, &[]), &mut reply, may_wait)
        };
        assert!(matches!(
            serve(LOOKUP, 1, b"a\0", false),
            Ok(Outcome::Answer)
        ));
        let inode = system.look_up(&system.root, b"a").unwrap().inode;
        system.source.names.add(Duration::from_secs(1));
        let one = [1, 0, 0, 0, 0, 0, 0, 0];
        for _ in 0..100 {
            system.look_up(&system.root, b"a").unwrap();
            assert!(serve(FORGET, inode.id, &one, true).is_ok());
            // It is fresh, so it does not wait either.
            let known = serve(GETATTR, inode.id, &[0; 16], false);
            assert!(matches!(known, Ok(Outcome::Answer)));
        }
        let waits = |served| matches!(served, Ok(Outcome::Waits));
        assert!(system.source.names.are_slow());
        assert!(waits(serve(LOOKUP, 1, b"a\0", false)));
        assert!(waits(serve(FORGET, inode.id, &one, false)));
        for _ in 0..100 {
            assert!(serve(LOOKUP, 1, b"a\0", true).is_ok());
        }
        assert!(!waits(serve(LOOKUP, 1, b"a\0", false)));
    }

    /// Whether the right to run as the group is left after an attribute was set with these flags of the message.
    fn keeps_group_id(with_it: u32) -> Option<bool> {
        use std::os::unix::fs::PermissionsExt;
        with_source(|system, source| {
            let path = source.join("file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o2755)).unwrap();
            let inode = system.look_up(&system.root, b"file").unwrap().inode;
            let device = rustix::fs::open("/dev/null", OFlags::RDWR, Permissions::empty());
            let requests = Requests::new(1, system.aside);
            let agreed = Agreed {
                attribute_flags: true,
            };
            let worker = Worker::new(system, Arc::new(device.unwrap()), &requests);
            let words = [4, 0, with_it, 0_u32].map(u32::to_ne_bytes).concat();
            let body = [words.as_slice(), b"user.a\0text"].concat();
            let (message, reply) = (Message(&body, &[]), &mut Reply::Ring(None));
            let header = header(SETXATTR, inode.id);
            match worker.with(agreed).serve(&header, message, reply, true) {
                Err(Errno::OPNOTSUPP) => return None,
                served => assert!(matches!(served, Ok(Outcome::Answer))),
            }
            let mut value = [0; 8];
            let len = rustix::fs::getxattr(&path, "user.a", &mut value).unwrap();
            assert_eq!(&value[..len], b"text");
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o755);
            Some(mode & libc::S_ISGID != 0)
        })
    }

    #[test]
    fn a_list_takes_the_right_of_the_group_if_the_kernel_says_so() {
        let Some(kept) = keeps_group_id(0) else {
            eprintln!("skipped: temporary files have no attributes");
            return;
        };
        assert!(kept);
        assert_eq!(keeps_group_id(SETXATTR_ACL_KILL_SGID), Some(false));
    }

    /// A file system and what it agreed on with a kernel that has everything, and from its answer max_background and
    /// congestion_threshold.
    fn greeted(bytes: usize) -> (FileSystem, Agreed, [u16; 2]) {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        let source = tempfile::tempdir().unwrap();
        let mut system = crate::MountOptions::new(source.path(), source.path())
            .cache_bytes(bytes)
            .prepare(source.path())
            .unwrap();
        system.acl = true;
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (device, kernel) = socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        let words = [7, 41, 131_072, u32::MAX, u32::MAX].map(u32::to_ne_bytes);
        let body = words.concat();
        let mut message = (40 + body.len() as u32).to_ne_bytes().to_vec();
        message.extend(INIT.to_ne_bytes());
        message.resize(40, 0);
        message.extend(body);
        rustix::io::write(&kernel, &message).unwrap();
        let agreed = greet(&Arc::new(device), &system, false).unwrap();
        let mut answer = [0; 100];
        rustix::io::read(&kernel, &mut answer).unwrap();
        // Behind the header and four words of struct fuse_init_out.
        let half = |at: usize| u16::from_ne_bytes([answer[at], answer[at + 1]]);
        (system, agreed, [half(32), half(34)])
    }

    #[test]
    fn the_kernel_sends_no_more_ahead_than_has_room() {
        for bytes in [1 << 20, 64 << 20] {
            let (system, agreed, [background, congestion]) = greeted(bytes);
            assert!(agreed.attribute_flags);
            assert_eq!(background, system.aside.background);
            assert_eq!(congestion, background / 4 * 3);
            let fit = system.aside.bytes / (HEADERS + system.max_write);
            // As many reads as are under way at a time need no room.
            assert!(fit >= 1 && usize::from(background) <= fit.max(16));
        }
    }

    #[test]
    fn answers_have_the_kernels_sizes() {
        let mut bytes = Vec::new();
        Answer(&mut bytes).attr(&Attr::default());
        assert_eq!(bytes.len(), 88);
        bytes.clear();
        Answer(&mut bytes).entry(1, &Attr::default(), Duration::from_millis(1500));
        assert_eq!(bytes.len(), 128);
        assert_eq!(bytes[16..24], 1_u64.to_ne_bytes());
        assert_eq!(bytes[32..36], 500_000_000_u32.to_ne_bytes());
    }
}
