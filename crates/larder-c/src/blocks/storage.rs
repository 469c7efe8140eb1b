//! The program's functions as a storage.

use core::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::AtomicBool;

use larder_cache::{FileId, Storage};

/// Reads from `offset` of a file, up to `bytes`, and says in `done` how many there were; 0 is the end of the file. Returns 0, or an
/// error number of the system (`errno.h`); EINTR is tried again. It is called without a lock, from any thread, by several at once.
/// It must return: no longjmp, no C++ exception.
pub type larder_blocks_read_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        file: u64,
        offset: u64,
        into: *mut c_void,
        bytes: usize,
        done: *mut usize,
    ) -> c_int,
>;

/// Writes at `offset` of a file, as much as it can, and says in `done` how many bytes. The same rules apply.
pub type larder_blocks_write_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        file: u64,
        offset: u64,
        from: *const c_void,
        bytes: usize,
        done: *mut usize,
    ) -> c_int,
>;

/// Returns when all that was written to the file is safe. The same rules apply.
pub type larder_blocks_sync_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, file: u64) -> c_int>;

/// Ends what `user` points to: called once, after the last call of the others has returned. Not called for a cache that could not be
/// made. The same rules apply.
pub type larder_blocks_end_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// The program's functions. `end` is called when this is dropped.
pub(super) struct Functions {
    pub(super) read: larder_blocks_read_fn,
    pub(super) write: larder_blocks_write_fn,
    pub(super) sync: larder_blocks_sync_fn,
    pub(super) end: larder_blocks_end_fn,
    pub(super) user: *mut c_void,
    /// Unless the cache is there, `user` is not the cache's to end.
    pub(super) is_made: AtomicBool,
}

// SAFETY: the header asks that the functions may be called from any thread with this pointer.
unsafe impl Send for Functions {}
// SAFETY: as above, by several at once.
unsafe impl Sync for Functions {}

/// What a function said.
fn outcome(errno: c_int) -> io::Result<()> {
    match errno {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn missing(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what.to_owned())
}

impl Storage for Functions {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let read = self.read.ok_or_else(|| missing("no read function"))?;
        let (at, bytes, mut done) = (into.as_mut_ptr().cast(), into.len(), 0);
        // SAFETY: the program's function, called as the header says, with memory for so many bytes.
        outcome(unsafe { read(self.user, file.0, offset, at, bytes, &raw mut done) })?;
        Ok(done.min(bytes))
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        let write = self.write.ok_or_else(|| missing("no write function"))?;
        let (at, bytes, mut done) = (from.as_ptr().cast(), from.len(), 0);
        // SAFETY: as above.
        outcome(unsafe { write(self.user, file.0, offset, at, bytes, &raw mut done) })?;
        Ok(done.min(bytes))
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        // What needs no sync has none.
        let Some(sync) = self.sync else { return Ok(()) };
        // SAFETY: as above.
        outcome(unsafe { sync(self.user, file.0) })
    }
}

impl Drop for Functions {
    fn drop(&mut self) {
        if let Some(end) = self.end
            && *self.is_made.get_mut()
        {
            // SAFETY: as above; no other call comes.
            unsafe { end(self.user) }
        }
    }
}
