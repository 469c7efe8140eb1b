//! Text for standard error, without an allocation and without a lock, in as few writes as possible so that the lines of
//! threads do not mix.
//!
//! No lock: a message asks the loader for names, and the thread that holds the loader's lock may have a message of its
//! own. And no large array on the stack, which may be a signal handler's small one.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use rustix::fd::{BorrowedFd, IntoRawFd};
use rustix::io::Errno;

const ROOM: usize = 16 << 10;
const SMALL: usize = 256;

struct Buffer {
    taken: AtomicBool,
    bytes: UnsafeCell<[u8; ROOM]>,
}

// SAFETY: the bytes are touched only by the `Output` that set `taken`.
unsafe impl Sync for Buffer {}

static BUFFERS: [Buffer; 4] = [const {
    Buffer {
        taken: AtomicBool::new(false),
        bytes: UnsafeCell::new([0; ROOM]),
    }
}; 4];

/// A second descriptor of standard error, and the file that it stands for. Programs close the first one before they end.
static SECOND: AtomicI32 = AtomicI32::new(-1);
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);
/// Where no program looks for its own.
const LOWEST: i32 = 200;

/// Keeps standard error open for reports at the program's end.
pub(crate) fn keep_stderr() {
    let stderr = rustix::stdio::stderr();
    if let Ok(file) = rustix::fs::fstat(stderr)
        && let Ok(second) = rustix::io::fcntl_dupfd_cloexec(stderr, LOWEST)
    {
        DEVICE.store(file.st_dev, Ordering::Relaxed);
        INODE.store(file.st_ino, Ordering::Relaxed);
        SECOND.store(second.into_raw_fd(), Ordering::Release);
    }
}

fn write(bytes: &[u8]) -> Result<usize, Errno> {
    match rustix::io::write(rustix::stdio::stderr(), bytes) {
        Err(Errno::BADF) => {
            let second = SECOND.load(Ordering::Acquire);
            if second < 0 {
                return Err(Errno::BADF);
            }
            // SAFETY: a number that was a descriptor. The program may have closed it and opened something else; then it
            // is another file, and is left alone.
            let second = unsafe { BorrowedFd::borrow_raw(second) };
            let file = rustix::fs::fstat(second)?;
            let is_same = file.st_dev == DEVICE.load(Ordering::Relaxed)
                && file.st_ino == INODE.load(Ordering::Relaxed);
            if is_same {
                rustix::io::write(second, bytes)
            } else {
                Err(Errno::BADF)
            }
        }
        result => result,
    }
}

/// A message on its way; written when it is dropped, or when the buffer is full.
pub(super) struct Output {
    /// The large buffer, if there was one.
    large: Option<&'static Buffer>,
    small: [u8; SMALL],
    len: usize,
}

impl Output {
    pub(super) fn new() -> Self {
        let large = BUFFERS
            .iter()
            .find(|buffer| !buffer.taken.swap(true, Ordering::Acquire));
        Self {
            large,
            small: [0; SMALL],
            len: 0,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self.large {
            // SAFETY: this value set `taken`, so the bytes are its own.
            Some(buffer) => unsafe { &mut *buffer.bytes.get() },
            None => &mut self.small,
        }
    }

    fn flush(&mut self) {
        let len = self.len;
        let mut rest = &self.bytes()[..len];
        while !rest.is_empty() {
            match write(rest) {
                Ok(n) if n > 0 => rest = &rest[n..],
                Err(Errno::INTR) => {}
                // There is nowhere to report that standard error cannot be written.
                _ => break,
            }
        }
        self.len = 0;
    }
}

/// A line of its own, as long as it may be.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let _ = fmt::Write::write_fmt(&mut Output::new(), format_args!("larder: {text}\n"));
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes().len();
        for part in text.as_bytes().chunks(room) {
            if self.len + part.len() > room {
                self.flush();
            }
            let len = self.len;
            self.bytes()[len..len + part.len()].copy_from_slice(part);
            self.len += part.len();
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.flush();
        if let Some(buffer) = self.large {
            buffer.taken.store(false, Ordering::Release);
        }
    }
}
