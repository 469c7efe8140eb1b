//! A mapping with an owner, and messages for refused calls.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::contestants::timing::{opaque, peek, touch};

/// Readable and writable.
const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Bytes of a page of this machine.
pub(super) fn page_size() -> usize {
    rustix::param::page_size()
}

/// Bytes that one page table covers: 2 MiB where a page is 4 KiB.
pub(super) fn table_span() -> usize {
    page_size() * (page_size() / 8)
}

/// Says which call failed on how much memory, and what usually helps.
pub(super) fn refused(call: &str, bytes: usize, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    let hint = match error.raw_os_error() {
        Some(libc::ENOMEM) => "; free some memory, or raise the memory limit or vm.max_map_count",
        Some(libc::EPERM | libc::EACCES) => "; this call is not permitted here",
        Some(libc::EINVAL) => "; this kernel does not know the request",
        _ => "",
    };
    io::Error::new(
        error.kind(),
        format!("{call} of {bytes} bytes failed: {error}{hint}"),
    )
}

/// A mapping that is unmapped when dropped.
#[derive(Debug)]
pub(super) struct Area {
    at: *mut u8,
    len: usize,
}

impl Area {
    /// Maps `len` bytes of private anonymous memory where the kernel likes, with `extra` flags beside `MAP_PRIVATE`.
    pub(super) fn map(len: usize, extra: MapFlags) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let at = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                len,
                READ_WRITE,
                MapFlags::PRIVATE.union(extra),
            )
        }
        .map_err(|e| refused("mmap", len, e))?;
        Ok(Self { at: at.cast(), len })
    }

    /// Maps the first `len` bytes of a file, shared.
    pub(super) fn shared(file: &OwnedFd, len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let at = unsafe { mmap(ptr::null_mut(), len, READ_WRITE, MapFlags::SHARED, file, 0) }
            .map_err(|e| refused("mmap of a memfd", len, e))?;
        Ok(Self { at: at.cast(), len })
    }

    /// Maps `len` bytes at exactly `place`, which must be free.
    pub(super) fn at(place: *mut u8, len: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE.union(MapFlags::FIXED_NOREPLACE);
        // SAFETY: FIXED_NOREPLACE fails rather than replace a mapping.
        let at = unsafe { mmap_anonymous(place.cast(), len, READ_WRITE, flags) }
            .map_err(|e| refused("mmap at a fixed address", len, e))?;
        Ok(Self { at: at.cast(), len })
    }

    /// Maps `len` bytes that begin at a multiple of `align`, a power of two of at least a page.
    pub(super) fn aligned(len: usize, align: usize) -> io::Result<Self> {
        let wide = Self::map(len + align, MapFlags::NORESERVE)?;
        let start = wide.at.addr().next_multiple_of(align);
        let (before, after) = (
            start - wide.at.addr(),
            wide.at.addr() + wide.len - start - len,
        );
        let at = wide.at.with_addr(start);
        let end = wide.at.with_addr(start + len);
        // From here on the pieces are unmapped one by one.
        let head = std::mem::ManuallyDrop::new(wide).at;
        for (piece, bytes) in [(head, before), (end, after)] {
            if bytes > 0 {
                // SAFETY: a part of the mapping made above that the caller will not get.
                unsafe { munmap(piece.cast(), bytes) }.map_err(|e| refused("munmap", bytes, e))?;
            }
        }
        Ok(Self { at, len })
    }

    /// Maps `len` bytes in pages of the smallest size, whatever the machine does by default.
    pub(super) fn small_pages(len: usize) -> io::Result<Self> {
        let area = Self::map(len, MapFlags::empty())?;
        // A kernel without huge pages refuses the advice, and then it is not needed.
        let _ = area.advise(Advice::LinuxNoHugepage);
        Ok(area)
    }

    /// First byte.
    pub(super) fn start(&self) -> *mut u8 {
        self.at
    }

    /// Length in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.len
    }

    /// Length in whole pages.
    pub(super) fn pages(&self) -> usize {
        self.len / page_size()
    }

    /// First byte of page `index`, which is taken modulo the number of pages.
    pub(super) fn page(&self, index: usize) -> *mut u8 {
        // SAFETY: the index is reduced to the mapping's own pages.
        unsafe { self.at.add((index % self.pages()) * page_size()) }
    }

    /// Writes 8 bytes to each of these pages.
    #[inline(always)]
    pub(super) fn touch_pages(&self, pages: Range<usize>) {
        let page = page_size();
        assert!(pages.end * page <= self.len, "the pages lie in the mapping");
        for i in pages {
            // SAFETY: a page of the mapping, as was just seen; it is writable, and only its owner uses it.
            unsafe { touch(self.at.add(i * page), i as u64 | 1) };
        }
    }

    /// Writes 8 bytes to each page.
    #[inline(always)]
    pub(super) fn touch(&self) {
        self.touch_pages(0..self.pages());
    }

    /// Reads 8 bytes of each page.
    #[inline(always)]
    pub(super) fn read(&self) {
        let page = page_size();
        for i in 0..self.pages() {
            // SAFETY: the mapping's own pages.
            opaque(unsafe { peek(self.at.add(i * page)) });
        }
    }

    /// Gives advice about the whole mapping.
    #[inline]
    pub(super) fn advise(&self, advice: Advice) -> io::Result<()> {
        // SAFETY: a whole mapping with an owner. Advice that drops contents is given between uses only, and no Rust
        // reference into the mapping exists: all access goes through raw pointers.
        unsafe { madvise(self.at.cast(), self.len, advice) }
            .map_err(|e| refused("madvise", self.len, e))
    }

    /// Gives advice about `len` bytes from byte `from`, which must lie within the mapping.
    pub(super) fn advise_part(&self, from: usize, len: usize, advice: Advice) -> io::Result<()> {
        if from.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(refused(
                "advice outside its mapping",
                len,
                io::Error::from(io::ErrorKind::InvalidInput),
            ));
        }
        // SAFETY: a part of the mapping, with the same reasons as in `advise`.
        unsafe { madvise(self.at.add(from).cast(), len, advice) }
            .map_err(|e| refused("madvise", len, e))
    }

    /// Writes a non-zero byte pattern over everything, so that zeroing later is real work.
    pub(super) fn dirty(&self) {
        // SAFETY: the whole mapping is writable, and only its owner uses it.
        unsafe { self.at.write_bytes(0xA5, self.len) };
        crate::contestants::timing::keep(self.at);
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the owner made the mapping, and nothing uses it after the owner is gone. A refusal (too many
        // mappings) leaves it mapped, which is harmless.
        let _ = unsafe { munmap(self.at.cast(), self.len) };
    }
}

// SAFETY: the mapping belongs to the process, not to the thread that made it.
unsafe impl Send for Area {}
// SAFETY: two threads that share an area take turns on each of its pages; the bill's helper says when a batch is done.
unsafe impl Sync for Area {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::timing::peek;

    #[test]
    fn an_area_is_zero_then_dirty_then_dropped_by_advice() {
        let area = Area::small_pages(4 * page_size()).unwrap();
        assert_eq!(area.pages(), 4);
        // SAFETY: the area's own pages.
        unsafe {
            assert_eq!(peek(area.page(3)), 0);
            area.dirty();
            assert_eq!(peek(area.page(3)), 0xA5A5_A5A5_A5A5_A5A5);
            area.advise(Advice::LinuxDontNeed).unwrap();
            assert_eq!(peek(area.page(3)), 0);
        }
        assert_eq!(area.page(4), area.page(0));
    }

    #[test]
    fn an_aligned_area_is_aligned() {
        let align = table_span();
        let area = Area::aligned(3 * page_size(), align).unwrap();
        assert_eq!(area.start().addr() % align, 0);
        area.dirty();
    }

    #[test]
    fn a_refusal_names_call_size_and_remedy() {
        let text = Area::map(usize::MAX / 2, MapFlags::empty())
            .unwrap_err()
            .to_string();
        assert!(text.contains("mmap of"), "{text}");
        assert!(text.contains("memory"), "{text}");
    }
}
