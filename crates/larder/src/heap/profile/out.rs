//! Bytes on their way to a file, without an allocation.

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// What takes bytes.
pub(super) trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

/// Counts them.
#[derive(Default)]
pub(super) struct Count(pub(super) usize);

impl Sink for Count {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

/// Writes them to a file, many at a time.
pub(super) struct Out<'a> {
    file: BorrowedFd<'a>,
    bytes: [u8; 4096],
    len: usize,
    error: Option<Errno>,
}

impl<'a> Out<'a> {
    pub(super) fn new(file: BorrowedFd<'a>) -> Self {
        Self {
            file,
            bytes: [0; 4096],
            len: 0,
            error: None,
        }
    }

    #[inline(never)]
    fn flush(&mut self) {
        let mut rest = &self.bytes[..self.len];
        while !rest.is_empty() && self.error.is_none() {
            match rustix::io::write(self.file, rest) {
                Ok(0) => self.error = Some(Errno::IO),
                Ok(n) => rest = &rest[n..],
                Err(Errno::INTR) => {}
                Err(error) => self.error = Some(error),
            }
        }
        self.len = 0;
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first refusal of the system.
    pub(super) fn finish(&mut self) -> Result<(), Errno> {
        self.flush();
        self.error.map_or(Ok(()), Err)
    }
}

impl Sink for Out<'_> {
    #[inline(never)]
    fn put(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(self.bytes.len()) {
            if self.len + part.len() > self.bytes.len() {
                self.flush();
            }
            self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
            self.len += part.len();
        }
    }
}
