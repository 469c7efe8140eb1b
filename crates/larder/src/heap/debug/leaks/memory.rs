//! Reading memory that may not be there, word by word.

use core::ffi::c_void;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

use crate::os::{MetaSlice, OsError, System, page_size};
use std::sync::Arc;

/// Words that are copied at once.
const WORDS: usize = 8192;
/// Pages that the page map is asked for at once.
const PAGES: usize = 512;

/// Copies memory through the system, which answers where a plain load would end the process: behind the end of a mapped
/// file, or in what another thread unmapped. Pages that were never touched are left out.
pub(super) struct Reader {
    words: MetaSlice<u64>,
    pages: MetaSlice<u64>,
    map: Option<OwnedFd>,
    /// The system does not copy here (a filter of system calls): plain loads must do.
    plain: bool,
}

impl Reader {
    pub(super) fn new(system: &Arc<dyn System>) -> Result<Self, OsError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self {
            words: MetaSlice::new(system.clone(), WORDS)?,
            pages: MetaSlice::new(system.clone(), PAGES)?,
            map: rustix::fs::open(c"/proc/self/pagemap", flags, Mode::empty()).ok(),
            plain: false,
        })
    }

    /// The reader's own memory, which holds what it read last.
    pub(super) fn own(&self) -> [(usize, usize); 2] {
        [range(&self.words), range(&self.pages)]
    }

    /// Shows every aligned word from `from` to `to` with its address, of pages that are in use.
    pub(super) fn each(&mut self, from: usize, to: usize, f: &mut impl FnMut(usize, usize)) {
        let page = page_size();
        let mut at = from.next_multiple_of(size_of::<usize>());
        while at < to {
            let first = at - at % page;
            let window = (first + PAGES * page).min(to);
            let known = self.look(first / page);
            let mut p = at;
            while p < window {
                let next = (p - p % page + page).min(window);
                // Present, or swapped out.
                if !known || self.pages[(p - first) / page] >> 62 != 0 {
                    // As many pages as follow on another.
                    let mut end = next;
                    while end < window
                        && end - p + page <= WORDS * 8
                        && (!known || self.pages[(end - first) / page] >> 62 != 0)
                    {
                        end = (end + page).min(window);
                    }
                    self.copy(p, end, f);
                    p = end;
                } else {
                    p = next;
                }
            }
            at = window;
        }
    }

    /// Reads the page map from page `number` on; false when it does not say.
    fn look(&mut self, number: usize) -> bool {
        let Some(map) = &self.map else {
            return false;
        };
        // SAFETY: a slice of numbers seen as bytes, any of which are numbers again.
        let bytes = unsafe {
            core::slice::from_raw_parts_mut(self.pages.as_mut_ptr().cast::<u8>(), PAGES * 8)
        };
        bytes.fill(0);
        // The file says nothing of what lies behind the end of the user's addresses, and nothing is there.
        rustix::io::pread(map, bytes, number as u64 * 8).is_ok_and(|n| n > 0)
    }

    fn copy(&mut self, mut from: usize, to: usize, f: &mut impl FnMut(usize, usize)) {
        while from < to {
            let bytes = (to - from).min(WORDS * 8);
            if self.plain {
                // SAFETY: a private mapping of this process, as it was listed just now, while its threads stand still.
                unsafe { each_word(from, from + bytes, f) };
                from += bytes;
                continue;
            }
            let local = libc::iovec {
                iov_base: self.words.as_mut_ptr().cast::<c_void>(),
                iov_len: bytes,
            };
            let remote = libc::iovec {
                iov_base: from as *mut c_void,
                iov_len: bytes,
            };
            // SAFETY: copies into the words, which have this much room; what is not there is an answer.
            let copied = unsafe {
                libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
            };
            match usize::try_from(copied) {
                Ok(copied) if copied > 0 => {
                    for (i, &word) in self.words[..copied / 8].iter().enumerate() {
                        f(from + i * 8, word as usize);
                    }
                    from += copied.next_multiple_of(8);
                }
                _ => {
                    let errno = std::io::Error::last_os_error().raw_os_error();
                    if matches!(errno, Some(libc::ENOSYS | libc::EPERM)) {
                        self.plain = true;
                    } else {
                        // Nothing is there: on with the next page.
                        from = from - from % page_size() + page_size();
                    }
                }
            }
        }
    }
}

/// # Safety
/// The memory can be read.
pub(super) unsafe fn each_word(from: usize, to: usize, f: &mut impl FnMut(usize, usize)) {
    let mut at = from.next_multiple_of(size_of::<usize>());
    while at + size_of::<usize>() <= to {
        // SAFETY: the caller's promise.
        f(at, unsafe { (at as *const usize).read_volatile() });
        at += size_of::<usize>();
    }
}

/// Where a slice lies.
pub(super) fn range<T: crate::os::ZeroIsValid>(slice: &MetaSlice<T>) -> (usize, usize) {
    let at = slice.as_ptr() as usize;
    (at, at + size_of_val::<[T]>(slice))
}
