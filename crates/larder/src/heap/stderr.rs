//! Standard error for reports at the program's end.

use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rustix::fd::{BorrowedFd, IntoRawFd};
use rustix::io::Errno;

/// A second descriptor of standard error, and the file that it stands for. Programs close the first one before they end.
static SECOND: AtomicI32 = AtomicI32::new(-1);
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);
/// Where no program looks for its own.
const LOWEST: i32 = 200;

/// Keeps standard error open for reports at the program's end.
pub(super) fn keep() {
    let stderr = rustix::stdio::stderr();
    if let Ok(file) = rustix::fs::fstat(stderr)
        && let Ok(second) = rustix::io::fcntl_dupfd_cloexec(stderr, LOWEST)
    {
        DEVICE.store(file.st_dev, Ordering::Relaxed);
        INODE.store(file.st_ino, Ordering::Relaxed);
        SECOND.store(second.into_raw_fd(), Ordering::Release);
    }
}

/// Writes to it, as far as one call does.
///
/// # Errors
/// The system's refusal.
pub(super) fn write(bytes: &[u8]) -> Result<usize, Errno> {
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
