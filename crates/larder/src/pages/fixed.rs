//! Pages registered with io_uring, so that the kernel pins them once instead of at every request.

use std::io;
use std::os::fd::RawFd;

use io_uring::{IoUring, opcode, squeue, types};

use super::PageBuf;

/// Pages that a ring knows by number.
///
/// The example `read_fixed` reads a file through them.
///
/// ```
/// use std::{fs::File, os::fd::AsRawFd};
/// use io_uring::IoUring;
/// use larder::pages::{FixedBuffers, PagePool};
///
/// let Ok(mut ring) = IoUring::new(1) else { return Ok(()) };      // not permitted here
/// let file = File::open("/proc/self/exe")?;
/// let mut buffers = FixedBuffers::register(&ring, vec![PagePool::new()?.get()?])?;
/// let request = buffers.read(0, file.as_raw_fd(), 0, 4).ok_or("no such page")?;
/// // SAFETY: the ring is the one of the buffers, and file and page stay until the request has completed.
/// unsafe { ring.submission().push(&request)? };
/// ring.submit_and_wait(1)?;
/// assert_eq!(ring.completion().next().map(|done| done.result()), Some(4));
/// assert_eq!(buffers.page(0).map(|page| &page[..4]), Some(&b"\x7fELF"[..]));
/// let pages = buffers.unregister(&ring)?;
/// assert_eq!(pages.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FixedBuffers {
    pages: Vec<PageBuf>,
}

impl FixedBuffers {
    /// Registers `pages` with `ring`; page i gets number i.
    ///
    /// [`FixedBuffers`] shows it.
    ///
    /// # Errors
    /// The kernel's refusal (`RLIMIT_MEMLOCK`, buffers registered already); more than 65535 pages.
    pub fn register(ring: &IoUring, pages: Vec<PageBuf>) -> io::Result<Self> {
        if pages.len() > usize::from(u16::MAX) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{} pages are more than io_uring numbers (65535)",
                    pages.len()
                ),
            ));
        }
        let vector: Vec<libc::iovec> = pages
            .iter()
            .map(|page| libc::iovec {
                iov_base: page.as_ptr().cast_mut().cast(),
                iov_len: page.len(),
            })
            .collect();
        // SAFETY: the pages stay where they are and alive until `unregister` gives them back; a leaked value leaks
        // them, and the pool's pages stay mapped as long as one is out.
        unsafe { ring.submitter().register_buffers(&vector)? };
        Ok(Self { pages })
    }

    /// A request that reads `len` bytes of `fd` at `offset` into page `number`.
    ///
    /// The ring must be the one that the pages are registered with, and the page must not be read or written until the
    /// request has completed.
    ///
    /// [`FixedBuffers`] shows it.
    #[must_use]
    pub fn read(&mut self, number: u16, fd: RawFd, offset: u64, len: u32) -> Option<squeue::Entry> {
        let page = self.pages.get_mut(usize::from(number))?;
        let len = len.min(u32::try_from(page.len()).unwrap_or(u32::MAX));
        Some(
            opcode::ReadFixed::new(types::Fd(fd), page.as_mut_ptr(), len, number)
                .offset(offset)
                .build(),
        )
    }

    /// Page `number`.
    ///
    /// [`FixedBuffers`] shows it.
    #[must_use]
    pub fn page(&self, number: u16) -> Option<&PageBuf> {
        self.pages.get(usize::from(number))
    }

    /// Ends the registration and returns the pages. `ring` is the one that they were registered with, and no request for
    /// them is under way.
    ///
    /// [`FixedBuffers`] shows it.
    ///
    /// # Errors
    /// The kernel's refusal; the pages are then kept from reuse, since the kernel may still write to them.
    pub fn unregister(mut self, ring: &IoUring) -> io::Result<Vec<PageBuf>> {
        let pages = core::mem::take(&mut self.pages);
        match ring.submitter().unregister_buffers() {
            Ok(()) => Ok(pages),
            Err(error) => {
                core::mem::forget(pages);
                Err(error)
            }
        }
    }
}

impl Drop for FixedBuffers {
    /// Without [`unregister`](Self::unregister) the kernel may still use the pages, so they are leaked.
    fn drop(&mut self) {
        for page in self.pages.drain(..) {
            core::mem::forget(page);
        }
    }
}
