//! Files of the system by io_uring: a batch is one system call. With `frames`, where `unsafe` is in the cache.

use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use io_uring::{IoUring, opcode, squeue, types};

use super::files::Files;
use super::storage::{Part, Storage};
use crate::key::FileId;
use crate::sync::Stored;
use larder::internal::Mutex;

/// Requests in one submission.
const DEPTH: usize = 64;

/// Rings that are kept for later calls: as many as threads read and write at the same time.
const KEPT: usize = 16;

/// Reads and writes [`Files`] with io_uring: what is read ahead, and up to 64 blocks that are written back, go with one system call each, and the device sees all of them
/// at once.
///
/// Single blocks go the ordinary way, as does whatever fails in a batch.
///
/// ```
/// use larder_cache::{BlockCache, FileId, Files, Uring};
/// let files = Files::default();
/// files.add(FileId(1), std::fs::File::open("/proc/self/exe")?);
/// let cache = match Uring::new(files) {
///     Ok(ring) => BlockCache::builder(ring).build()?,
///     Err(_) => return Ok(()), // not permitted here: `Files` alone does the same with more system calls
/// };
/// let file = cache.file(FileId(1))?;
/// assert_eq!(&cache.handle().read(&file, 0)?[1..4], b"ELF");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Uring {
    files: Files,
    rings: Mutex<Stored<Vec<Ring>>>,
    submissions: AtomicU64,
}

impl core::fmt::Debug for Uring {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Uring")
            .field("submissions", &self.submissions())
            .finish_non_exhaustive()
    }
}

impl Uring {
    /// A storage over `files`.
    ///
    /// ```
    /// # use larder_cache::{Files, Uring};
    /// match Uring::new(Files::default()) {
    ///     Ok(ring) => assert_eq!(ring.submissions(), 0),
    ///     Err(error) => println!("{error}"),
    /// }
    /// ```
    ///
    /// # Errors
    /// The kernel's refusal: io_uring is not there (`Unsupported`), not permitted (`PermissionDenied`: seccomp, a setting of
    /// the system), or no memory may be locked. `files` without it do the same with more system calls.
    pub fn new(files: Files) -> io::Result<Self> {
        let ring = Ring::new().map_err(|error| {
            let text = format!(
                "storage: no io_uring: {error}; use the files without it, or permit it (kernel.io_uring_disabled, seccomp)"
            );
            io::Error::new(error.kind(), text)
        })?;
        Ok(Self {
            files,
            rings: Mutex::new(Stored(vec![ring])),
            submissions: AtomicU64::new(0),
        })
    }

    /// The files, to add some or give some up.
    ///
    /// ```
    /// # use larder_cache::{FileId, Files, Uring};
    /// # let Ok(ring) = Uring::new(Files::default()) else { return Ok(()) };
    /// ring.files().add(FileId(1), std::fs::File::open("/proc/self/exe")?);
    /// assert!(ring.files().remove(FileId(1)));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Batches that went through a ring so far.
    ///
    /// ```
    /// # use larder_cache::{FileId, Files, Part, Storage, Uring};
    /// # let Ok(ring) = Uring::new(Files::default()) else { return Ok(()) };
    /// ring.files().add(FileId(1), std::fs::File::open("/proc/self/exe")?);
    /// let (mut one, mut two) = ([0; 4], [0; 4]);
    /// ring.read_many(&mut [Part::new(FileId(1), 0, &mut one), Part::new(FileId(1), 4, &mut two)]);
    /// assert_eq!((&one, ring.submissions()), (b"\x7fELF", 1));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn submissions(&self) -> u64 {
        self.submissions.load(Ordering::Relaxed)
    }

    /// Hands `count` requests, made by `entry`, to a ring, and returns what became of them; nothing of those that it would not
    /// take.
    ///
    /// # Safety
    /// What the requests point to stays where it is and is not touched before this returns, but by the kernel.
    unsafe fn submit(
        &self,
        count: usize,
        mut entry: impl FnMut(usize) -> Option<squeue::Entry>,
    ) -> [Option<usize>; DEPTH] {
        let mut done = [None; DEPTH];
        let kept = self
            .rings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .pop();
        let Some(mut ring) = kept.or_else(|| Ring::new().ok()) else {
            return done;
        };
        let entries: Vec<squeue::Entry> = (0..count.min(DEPTH))
            .filter_map(|number| Some(entry(number)?.user_data(number as u64)))
            .collect();
        // SAFETY: as the caller promised.
        let whole = unsafe { ring.run(&entries, &mut done) };
        self.submissions.fetch_add(1, Ordering::Relaxed);
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        if whole && rings.0.len() < KEPT {
            rings.0.push(ring);
        }
        done
    }
}

impl Uring {
    /// Does the parts by requests that `request` makes for a descriptor, a part and its length.
    ///
    /// # Safety
    /// A request points to nothing but the bytes of its part, and writes to them only where the part borrows them exclusively.
    unsafe fn many<B: Deref<Target = [u8]>>(
        &self,
        parts: &mut [Part<B>],
        request: impl Fn(types::Fd, &mut Part<B>, u32) -> squeue::Entry,
    ) {
        for parts in parts.chunks_mut(DEPTH) {
            let (count, mut open) = (parts.len(), Vec::new());
            let entry = |number: usize| {
                let part = parts.get_mut(number)?;
                let file = self.files.get(part.file).ok()?;
                let descriptor = file.by(part.offset, &part.bytes).as_raw_fd();
                open.push(file);
                let len = u32::try_from(part.bytes.len()).unwrap_or(u32::MAX);
                Some(request(types::Fd(descriptor), part, len))
            };
            // SAFETY: the parts keep their bytes, and no code looks at them before the call returns; `open` keeps the descriptors.
            let done = unsafe { self.submit(count, entry) };
            drop(open);
            for (part, done) in parts.iter_mut().zip(done) {
                part.done = done.map(Ok);
            }
        }
    }
}

impl Storage for Uring {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.files.read(file, offset, into)
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.files.write(file, offset, from)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.files.sync(file)
    }

    fn read_many(&self, parts: &mut [Part<&mut [u8]>]) {
        let read = |file, part: &mut Part<&mut [u8]>, len| {
            let read = opcode::Read::new(file, part.bytes.as_mut_ptr(), len);
            read.offset(part.offset).build()
        };
        // SAFETY: the request stays within the bytes of the part, which borrows them exclusively.
        unsafe { self.many(parts, read) }
    }

    fn write_in_order(&self, parts: &mut [Part<&[u8]>]) {
        self.files.write_in_order(parts);
    }

    fn write_many(&self, parts: &mut [Part<&[u8]>]) {
        let write = |file, part: &mut Part<&[u8]>, len| {
            let write = opcode::Write::new(file, part.bytes.as_ptr(), len);
            write.offset(part.offset).build()
        };
        // SAFETY: the request stays within the bytes of the part, which the kernel only reads.
        unsafe { self.many(parts, write) }
    }
}

/// A ring, with nothing under way in it.
struct Ring(IoUring);

impl Ring {
    fn new() -> io::Result<Self> {
        IoUring::new(DEPTH as u32).map(Self)
    }

    /// Does the requests, and notes for each, by its number, the bytes; nothing where it failed, so that it is done again the
    /// ordinary way, which says why. Returns when none of them is under way. False if the ring cannot be used again.
    ///
    /// # Safety
    /// As for [`Uring::submit`].
    unsafe fn run(&mut self, entries: &[squeue::Entry], done: &mut [Option<usize>]) -> bool {
        let mut waiting = 0;
        for entry in entries {
            // SAFETY: the caller keeps what the entry points to until this returns, which it does not before the kernel is
            // through with all it was handed.
            if unsafe { self.0.submission().push(entry) }.is_ok() {
                waiting += 1;
            }
        }
        let mut refused = false;
        while waiting > 0 {
            if let Err(error) = self.0.submit_and_wait(waiting) {
                let later = [libc::EINTR, libc::EAGAIN, libc::EBUSY];
                refused |= !error
                    .raw_os_error()
                    .is_some_and(|code| later.contains(&code));
                // The kernel has not taken those that are still in the queue. They go with the ring; the others are waited for.
                if refused && self.0.submission().len() >= waiting {
                    return false;
                }
                std::thread::yield_now();
            }
            for completion in self.0.completion() {
                waiting -= 1;
                if let (Some(slot), Ok(bytes)) = (
                    done.get_mut(completion.user_data() as usize),
                    usize::try_from(completion.result()),
                ) {
                    *slot = Some(bytes);
                }
            }
        }
        !refused
    }
}
