//! The real system: Linux through rustix.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, MprotectFlags, ProtFlags};

use super::errno::KeptErrno;
use super::{Decommit, HugeAdvice, HugePageSize, OsError, Span, System, page_size};

/// Ranges that one `process_madvise` call takes: the kernel's `UIO_MAXIOV` is 1024, and pages.md 2 measured
/// nothing more beyond 512.
const VECTOR: usize = 64;

/// Linux.
///
/// ```
/// use larder::os::{Linux, System};
/// let span = Linux.reserve(1 << 20, 1 << 20)?;
/// assert_eq!(span.addr() % (1 << 20), 0);
/// // SAFETY: the span was just reserved and no other code knows it.
/// unsafe { Linux.release(span)? };
/// # Ok::<(), larder::os::OsError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Linux;

/// What keeps a memfd from becoming shorter or longer.
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// Maps the whole memfd of another process, to read it. Refuses one whose size is not sealed, and one with no pages or with a part of one:
/// reading beyond an end would end the process.
pub(crate) fn map_sealed(fd: impl AsFd) -> Result<Span, OsError> {
    let failed = |call| move |e| OsError::new(call, 0, e);
    let seals = fs::fcntl_get_seals(&fd).map_err(failed("fcntl(GET_SEALS)"))?;
    if !seals.contains(SIZE_SEALS) {
        return Err(OsError::new("fcntl(GET_SEALS)", 0, Errno::PERM));
    }
    let size = fs::fstat(&fd).map_err(failed("fstat(memfd)"))?.st_size;
    let len = usize::try_from(size).map_err(|_| OsError::new("fstat(memfd)", 0, Errno::FBIG))?;
    if len == 0 || !len.is_multiple_of(page_size()) {
        return Err(OsError::new("mmap(whole pages)", len, Errno::INVAL));
    }
    // SAFETY: a fresh mapping at an address of the kernel's choice; the mapping keeps the memfd alive.
    let at = unsafe {
        mm::mmap(
            ptr::null_mut(),
            len,
            ProtFlags::READ,
            MapFlags::SHARED,
            &fd,
            0,
        )
    };
    span_of("mmap(memfd)", len, at)
}

fn span_of(
    call: &'static str,
    len: usize,
    mapped: Result<*mut core::ffi::c_void, Errno>,
) -> Result<Span, OsError> {
    let at = mapped.map_err(|e| OsError::new(call, len, e))?;
    NonNull::new(at.cast::<u8>())
        .map(|at| Span { at, len })
        .ok_or(OsError::new(call, len, Errno::INVAL))
}

fn map(call: &'static str, len: usize, prot: ProtFlags, flags: MapFlags) -> Result<Span, OsError> {
    if len == 0 {
        return Err(OsError::new(call, len, Errno::INVAL));
    }
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice disturbs nothing that exists.
    span_of(call, len, unsafe {
        mm::mmap_anonymous(ptr::null_mut(), len, prot, flags)
    })
}

fn unmap(call: &'static str, at: *mut u8, len: usize) -> Result<(), OsError> {
    if len == 0 {
        return Ok(());
    }
    let _errno = KeptErrno::new();
    // SAFETY: only called on ranges that this module mapped and that their owner gave up.
    unsafe { mm::munmap(at.cast(), len) }.map_err(|e| OsError::new(call, len, e))
}

/// How many in 100 pages of a long range have memory, by some of them; all where the system does not say.
pub(crate) fn backed_share(span: Span) -> usize {
    const ALL: usize = 100;
    /// Places that are looked at, a system call each, and pages there.
    const PLACES: usize = 2;
    const PAGES: usize = 8;
    let (page, step) = (page_size(), span.len / PLACES);
    if cfg!(miri) || step < PAGES * page {
        return ALL;
    }
    let _errno = KeptErrno::new();
    let mut backed = 0;
    for place in 0..PLACES {
        // In the middle of each part: a program that touches little touches its ends.
        let from = (place * step + (step - PAGES * page) / 2) / page * page;
        let mut pages = [0_u8; PAGES];
        // SAFETY: whole pages of the range, and a byte for each.
        let done = unsafe {
            libc::mincore(
                span.part(from, PAGES * page).at.as_ptr().cast(),
                PAGES * page,
                pages.as_mut_ptr(),
            )
        };
        if done != 0 {
            return ALL;
        }
        backed += pages.iter().filter(|page| **page & 1 != 0).count();
    }
    backed * ALL / (PLACES * PAGES)
}

/// A fresh mapping of private memory, which takes none before it is touched.
fn map_aligned(len: usize, align: usize, prot: ProtFlags) -> Result<Span, OsError> {
    const CALL: &str = "mmap(reserve)";
    let align = align.max(page_size());
    if !align.is_power_of_two() {
        return Err(OsError::new(CALL, len, Errno::INVAL));
    }
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // Since 6.7 the kernel aligns mappings of whole huge pages to these by itself. Where it does not, that is tried once.
    static ALIGNED: AtomicBool = AtomicBool::new(true);
    let huge = HugePageSize::Mib2.bytes();
    let may_be = align > page_size() && align <= huge && len > 0 && len.is_multiple_of(huge);
    if may_be && ALIGNED.load(Ordering::Relaxed) {
        let span = map(CALL, len, prot, flags)?;
        if span.addr().is_multiple_of(align) {
            return Ok(span);
        }
        ALIGNED.store(false, Ordering::Relaxed);
        // As below.
        let _ = unmap(CALL, span.at.as_ptr(), len);
    }
    // Reserve more than asked for, then give back what lies before and after the aligned part.
    let slack = align - page_size();
    let wide = len
        .checked_add(slack)
        .ok_or(OsError::new(CALL, len, Errno::NOMEM))?;
    let got = map(CALL, wide, prot, flags)?;
    let head = got.addr().next_multiple_of(align) - got.addr();
    let span = got.part(head, len);
    // A refusal leaks these addresses; an error would leak all of them.
    let _ = unmap(CALL, got.at.as_ptr(), head);
    let _ = unmap(CALL, span.at.as_ptr().wrapping_add(len), wide - head - len);
    Ok(span)
}

// SAFETY: the kernel's mappings are what the trait asks for.
unsafe impl System for Linux {
    fn reserve(&self, len: usize, align: usize) -> Result<Span, OsError> {
        map_aligned(len, align, ProtFlags::empty())
    }

    /// One call.
    fn reserve_committed(&self, len: usize, align: usize) -> Result<Span, OsError> {
        map_aligned(len, align, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn reserve_hugetlb(&self, len: usize, size: HugePageSize) -> Result<Span, OsError> {
        let flags = match size {
            HugePageSize::Mib2 => MapFlags::HUGETLB | MapFlags::HUGE_2MB,
            HugePageSize::Gib1 => MapFlags::HUGETLB | MapFlags::HUGE_1GB,
        };
        let len = len
            .checked_next_multiple_of(size.bytes())
            .ok_or(OsError::new("mmap(hugetlb)", len, Errno::NOMEM))?;
        map(
            "mmap(hugetlb)",
            len,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | flags,
        )
    }

    fn reserve_shared(&self, len: usize) -> Result<(Span, OwnedFd), OsError> {
        let failed = |call| move |e| OsError::new(call, len, e);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = fs::memfd_create("larder", flags).map_err(failed("memfd_create"))?;
        fs::ftruncate(&fd, len as u64).map_err(failed("ftruncate(memfd)"))?;
        fs::fcntl_add_seals(&fd, SIZE_SEALS | SealFlags::SEAL)
            .map_err(failed("fcntl(ADD_SEALS)"))?;
        // SAFETY: a fresh mapping at an address of the kernel's choice; the mapping keeps the memfd alive.
        let at = unsafe {
            mm::mmap(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &fd,
                0,
            )
        };
        let span = span_of("mmap(memfd)", len, at)?;
        // Parent and child would have the same pages and one account of them each.
        // SAFETY: just mapped, and not known to other code.
        let kept = unsafe { mm::madvise(span.at.as_ptr().cast(), len, Advice::LinuxDontFork) };
        if let Err(e) = kept {
            let _ = unmap("munmap", span.at.as_ptr(), len);
            return Err(OsError::new("madvise(DONTFORK)", len, e));
        }
        Ok((span, fd))
    }

    unsafe fn commit(&self, span: Span) -> Result<(), OsError> {
        // SAFETY: the caller owns the span.
        unsafe {
            mm::mprotect(
                span.at.as_ptr().cast(),
                span.len,
                MprotectFlags::READ | MprotectFlags::WRITE,
            )
        }
        .map_err(|e| OsError::new("mprotect(commit)", span.len, e))
    }

    unsafe fn show_zeroes(&self, span: Span) -> Result<(), OsError> {
        // SAFETY: the caller owns the span.
        unsafe { mm::mprotect(span.at.as_ptr().cast(), span.len, MprotectFlags::READ) }
            .map_err(|e| OsError::new("mprotect(read)", span.len, e))
    }

    unsafe fn populate(&self, span: Span) -> Result<(), OsError> {
        // Remembered because a kernel before 5.14 would otherwise be asked in vain for every cluster.
        static MISSING: AtomicBool = AtomicBool::new(false);
        if !MISSING.load(Ordering::Relaxed) {
            // SAFETY: populating changes no contents; the caller owns the span.
            match unsafe {
                mm::madvise(
                    span.at.as_ptr().cast(),
                    span.len,
                    Advice::LinuxPopulateWrite,
                )
            } {
                Ok(()) => return Ok(()),
                Err(Errno::INVAL) => MISSING.store(true, Ordering::Relaxed),
                Err(e) => return Err(OsError::new("madvise(POPULATE_WRITE)", span.len, e)),
            }
        }
        for offset in (0..span.len).step_by(page_size()) {
            let byte = span.part(offset, 1).at.as_ptr();
            // SAFETY: committed memory of the caller. Writing back what was read faults the page in and keeps it;
            // a plain read would map the shared zero page and fault again at the first write.
            unsafe { byte.write_volatile(byte.read_volatile()) };
        }
        Ok(())
    }

    unsafe fn decommit(&self, spans: &[Span], how: Decommit) -> Result<(), OsError> {
        let (advice, raw) = match how {
            Decommit::DontNeed => (Advice::LinuxDontNeed, libc::MADV_DONTNEED),
            Decommit::Free => (Advice::LinuxFree, libc::MADV_FREE),
            Decommit::Remove => (Advice::LinuxRemove, libc::MADV_REMOVE),
        };
        let _errno = KeptErrno::new();
        for chunk in spans.chunks(VECTOR) {
            if chunk.len() > 1 && how != Decommit::Remove && process_madvise(chunk, raw) {
                continue;
            }
            for span in chunk {
                // SAFETY: the caller owns the spans and gave up their contents.
                unsafe { mm::madvise(span.at.as_ptr().cast(), span.len, advice) }
                    .map_err(|e| OsError::new("madvise(decommit)", span.len, e))?;
            }
        }
        Ok(())
    }

    unsafe fn release(&self, span: Span) -> Result<(), OsError> {
        unmap("munmap", span.at.as_ptr(), span.len)
    }

    unsafe fn advise_huge(&self, span: Span, advice: HugeAdvice) -> Result<(), OsError> {
        let advice = match advice {
            HugeAdvice::Want => Advice::LinuxHugepage,
            HugeAdvice::Refuse => Advice::LinuxNoHugepage,
        };
        // SAFETY: advice changes no contents; the caller owns the span.
        unsafe { mm::madvise(span.at.as_ptr().cast(), span.len, advice) }
            .map_err(|e| OsError::new("madvise(huge)", span.len, e))
    }
}

/// Gives several ranges of this process back with one call and one flush of the TLB. False when the kernel would
/// not take all of them (before 6.13 it takes no such advice, even from the process itself); asking once more
/// range by range is harmless.
fn process_madvise(spans: &[Span], advice: i32) -> bool {
    const PIDFD_SELF_PROCESS: libc::c_int = -10_001;
    static MISSING: AtomicBool = AtomicBool::new(false);
    if MISSING.load(Ordering::Relaxed) {
        return false;
    }
    let mut vector = [libc::iovec {
        iov_base: ptr::null_mut(),
        iov_len: 0,
    }; VECTOR];
    let mut bytes = 0;
    for (slot, span) in vector.iter_mut().zip(spans) {
        *slot = libc::iovec {
            iov_base: span.at.as_ptr().cast(),
            iov_len: span.len,
        };
        bytes += span.len;
    }
    // SAFETY: the vector holds `spans.len() <= VECTOR` ranges that the caller of decommit gave up.
    let done = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            PIDFD_SELF_PROCESS,
            vector.as_ptr(),
            spans.len(),
            advice,
            0,
        )
    };
    let all = usize::try_from(done).is_ok_and(|done| done == bytes);
    if done < 0 {
        // Only what will never work is not tried again; a range that cannot go (locked memory) says nothing of others.
        let errno = std::io::Error::last_os_error().raw_os_error();
        if matches!(
            errno,
            Some(libc::ENOSYS | libc::EINVAL | libc::EPERM | libc::EBADF | libc::ESRCH)
        ) {
            MISSING.store(true, Ordering::Relaxed);
        }
    }
    all
}

#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_to_take_memory_back_leaves_errno() {
        // Nothing is mapped at such low addresses.
        let low = |pages: usize| Span {
            at: NonNull::new(ptr::without_provenance_mut(pages * page_size())).unwrap(),
            len: page_size(),
        };
        // SAFETY: this thread's own place, as below.
        unsafe { *libc::__errno_location() = 4711 };
        // SAFETY: nothing is there whose contents could be lost.
        let done = unsafe { Linux.decommit(&[low(1), low(3)], Decommit::DontNeed) };
        assert_eq!(done.map_err(|e| e.raw_os_error()), Err(libc::ENOMEM));
        // SAFETY: as above.
        assert_eq!(unsafe { *libc::__errno_location() }, 4711);
    }
}
