//! The ways of Linux to supply a block of zeroed pages, each as a [`Supply`].

use std::io;
use std::os::fd::OwnedFd;
use std::ptr;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, madvise, mmap, mmap_anonymous, munmap};

use super::area::{Area, READ_WRITE, page_size, refused};
use super::cycle::Supply;
use super::huge::HugePages;
use crate::contestants::timing::touch;

/// Writes 8 bytes to each of `pages` pages from `at`.
///
/// # Safety
/// The pages must be writable and used by nobody else.
#[inline(always)]
pub(super) unsafe fn touch_all(at: *mut u8, pages: usize, page: usize) {
    for i in 0..pages {
        // SAFETY: the caller vouches for `pages` pages.
        unsafe { touch(at.add(i * page), i as u64 | 1) };
    }
}

/// One fresh mapping, touched, unmapped.
#[inline(always)]
fn map_cycle<const TOUCH: bool>(pages: usize, page: usize, extra: MapFlags) -> io::Result<()> {
    let bytes = pages * page;
    // SAFETY: a new mapping where the kernel likes; it is unmapped before this function ends and its
    // address does not leave it.
    unsafe {
        let at = mmap_anonymous(
            ptr::null_mut(),
            bytes,
            READ_WRITE,
            MapFlags::PRIVATE.union(extra),
        )
        .map_err(|e| refused("mmap", bytes, e))?;
        if TOUCH {
            touch_all(at.cast(), pages, page);
        }
        munmap(at, bytes).map_err(|e| refused("munmap", bytes, e))
    }
}

/// `mmap`, touch, `munmap`: the loop of 2003.
pub struct MapUnmap {
    pages: usize,
    page: usize,
}

impl Supply for MapUnmap {
    const NAME: &'static str = "mmap";
    const ABOUT: &'static str =
        "mmap, touch each page, munmap: the loop of Zerofilling part IV (Nat! 2003)";

    fn open(pages: usize) -> io::Result<Self> {
        Ok(Self {
            pages,
            page: page_size(),
        })
    }

    #[inline(always)]
    fn cycle<const TOUCH: bool>(&mut self) -> io::Result<()> {
        map_cycle::<TOUCH>(self.pages, self.page, MapFlags::empty())
    }
}

/// The same with `MAP_POPULATE`: the kernel maps all pages within the call.
pub struct MapPopulate {
    pages: usize,
    page: usize,
}

impl Supply for MapPopulate {
    const NAME: &'static str = "mmap-populate";
    const ABOUT: &'static str =
        "mmap with MAP_POPULATE, touch, munmap: what was proposed in 2003 for small allocations";

    fn open(pages: usize) -> io::Result<Self> {
        Ok(Self {
            pages,
            page: page_size(),
        })
    }

    #[inline(always)]
    fn cycle<const TOUCH: bool>(&mut self) -> io::Result<()> {
        map_cycle::<TOUCH>(self.pages, self.page, MapFlags::POPULATE)
    }
}

/// Touches an area and hands its pages back with one piece of advice.
#[inline(always)]
fn advise_cycle<const TOUCH: bool>(area: &Area, page: usize, advice: Advice) -> io::Result<()> {
    if TOUCH {
        // SAFETY: the area's own pages, used by nobody else.
        unsafe { touch_all(area.start(), area.bytes() / page, page) };
    }
    area.advise(advice)
}

/// One mapping for ever; `MADV_DONTNEED` gives the pages back.
pub struct DontNeed(Area, usize);

impl Supply for DontNeed {
    const NAME: &'static str = "dontneed";
    const ABOUT: &'static str =
        "touch, then MADV_DONTNEED, and use the same addresses again: no new mapping";

    fn open(pages: usize) -> io::Result<Self> {
        Ok(Self(Area::small_pages(pages * page_size())?, page_size()))
    }

    #[inline(always)]
    fn cycle<const TOUCH: bool>(&mut self) -> io::Result<()> {
        advise_cycle::<TOUCH>(&self.0, self.1, Advice::LinuxDontNeed)
    }
}

/// The same with `MADV_POPULATE_WRITE` before the touch.
pub struct DontNeedPopulate(Area, usize);

impl Supply for DontNeedPopulate {
    const NAME: &'static str = "dontneed-populate";
    const ABOUT: &'static str = "MADV_POPULATE_WRITE, touch, MADV_DONTNEED on one mapping";

    fn available() -> Result<(), String> {
        let area = Area::small_pages(page_size()).map_err(|e| e.to_string())?;
        area.advise(Advice::LinuxPopulateWrite)
            .map_err(|_| "MADV_POPULATE_WRITE needs Linux 5.14 or newer".to_owned())
    }

    fn open(pages: usize) -> io::Result<Self> {
        Ok(Self(Area::small_pages(pages * page_size())?, page_size()))
    }

    #[inline(always)]
    fn cycle<const TOUCH: bool>(&mut self) -> io::Result<()> {
        self.0.advise(Advice::LinuxPopulateWrite)?;
        advise_cycle::<TOUCH>(&self.0, self.1, Advice::LinuxDontNeed)
    }
}

/// `MADV_FREE`: the kernel may take the pages when it is short of memory; until then they keep their contents.
pub struct Free(Area, usize);

impl Supply for Free {
    const NAME: &'static str = "madv-free";
    const ABOUT: &'static str =
        "touch, then MADV_FREE, and use again: not zeroed unless the kernel took the page";

    fn available() -> Result<(), String> {
        let area = Area::small_pages(page_size()).map_err(|e| e.to_string())?;
        area.advise(Advice::LinuxFree)
            .map_err(|_| "MADV_FREE needs Linux 4.5 or newer".to_owned())
    }

    fn open(pages: usize) -> io::Result<Self> {
        Ok(Self(Area::small_pages(pages * page_size())?, page_size()))
    }

    #[inline(always)]
    fn cycle<const TOUCH: bool>(&mut self) -> io::Result<()> {
        advise_cycle::<TOUCH>(&self.0, self.1, Advice::LinuxFree)
    }
}

/// A fresh mapping in huge pages at an aligned address.
struct HugeMap {
    pages: usize,
    page: usize,
    bytes: usize,
    at: *mut u8,
}

impl HugeMap {
    fn open(pages: usize, huge: Result<usize, String>) -> io::Result<Self> {
        let huge = huge.map_err(io::Error::other)?;
        let page = page_size();
        let bytes = (pages * page).next_multiple_of(huge);
        // The address is found once: reserve, take an aligned place inside, leave the hole.
        let hole = Area::aligned(bytes, huge)?;
        let at = hole.start();
        drop(hole);
        Ok(Self {
            pages,
            page,
            bytes,
            at,
        })
    }

    #[inline(always)]
    fn cycle<const TOUCH: bool>(&mut self) -> io::Result<()> {
        let flags = MapFlags::PRIVATE.union(MapFlags::FIXED_NOREPLACE);
        // SAFETY: FIXED_NOREPLACE fails rather than replace a mapping; what it makes is unmapped before this
        // function ends.
        unsafe {
            let at = mmap_anonymous(self.at.cast(), self.bytes, READ_WRITE, flags)
                .map_err(|e| refused("mmap at a fixed address", self.bytes, e))?;
            let advised = madvise(at, self.bytes, Advice::LinuxHugepage);
            if TOUCH && advised.is_ok() {
                touch_all(at.cast(), self.pages, self.page);
            }
            let unmapped = munmap(at, self.bytes);
            advised.map_err(|e| refused("madvise MADV_HUGEPAGE", self.bytes, e))?;
            unmapped.map_err(|e| refused("munmap", self.bytes, e))
        }
    }
}

/// The block lies in a transparent huge page of the largest size.
pub struct Thp(HugeMap);

impl Supply for Thp {
    const NAME: &'static str = "thp";
    const ABOUT: &'static str = "mmap of whole transparent huge pages (2 MiB on x86-64), touch the wanted pages, munmap: \
         the first touch zeroes the whole huge page";

    fn available() -> Result<(), String> {
        HugePages::here().large().map(drop)
    }

    fn open(pages: usize) -> io::Result<Self> {
        HugeMap::open(pages, HugePages::here().large()).map(Self)
    }

    #[inline(always)]
    fn cycle<const TOUCH: bool>(&mut self) -> io::Result<()> {
        self.0.cycle::<TOUCH>()
    }
}

/// The block lies in transparent huge pages of a smaller size, 64 KiB where it is switched on.
pub struct SmallThp(HugeMap);

impl Supply for SmallThp {
    const NAME: &'static str = "mthp";
    const ABOUT: &'static str = "mmap of whole smaller huge pages (nearest to 64 KiB that is switched on), touch the wanted \
         pages, munmap";

    fn available() -> Result<(), String> {
        HugePages::here().small().map(drop)
    }

    fn open(pages: usize) -> io::Result<Self> {
        HugeMap::open(pages, HugePages::here().small()).map(Self)
    }

    #[inline(always)]
    fn cycle<const TOUCH: bool>(&mut self) -> io::Result<()> {
        self.0.cycle::<TOUCH>()
    }
}

/// A memory file of `bytes` bytes without pages yet.
pub(super) fn memory_file(bytes: usize) -> io::Result<OwnedFd> {
    let file = memfd_create("larder", MemfdFlags::CLOEXEC)
        .map_err(|e| refused("memfd_create", bytes, e))?;
    ftruncate(&file, bytes as u64).map_err(|e| refused("ftruncate", bytes, e))?;
    Ok(file)
}

/// Takes all pages of a memory file away from it.
pub(super) fn punch(file: &OwnedFd, bytes: usize) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
    fallocate(file, flags, 0, bytes as u64).map_err(|e| refused("punching a hole", bytes, e))
}

/// Shared pages of a memory file, mapped, touched, unmapped and punched out of the file.
pub struct Memfd {
    file: OwnedFd,
    pages: usize,
    page: usize,
}

impl Supply for Memfd {
    const NAME: &'static str = "memfd";
    const ABOUT: &'static str =
        "shared mmap of a memfd, touch, munmap, punch the pages out of the file";

    fn available() -> Result<(), String> {
        memory_file(page_size())
            .and_then(|file| punch(&file, page_size()))
            .map_err(|e| format!("memory files do not work here: {e}"))
    }

    fn open(pages: usize) -> io::Result<Self> {
        let page = page_size();
        Ok(Self {
            file: memory_file(pages * page)?,
            pages,
            page,
        })
    }

    #[inline(always)]
    fn cycle<const TOUCH: bool>(&mut self) -> io::Result<()> {
        let bytes = self.pages * self.page;
        // SAFETY: a new mapping where the kernel likes, unmapped before this function ends.
        unsafe {
            let at = mmap(
                ptr::null_mut(),
                bytes,
                READ_WRITE,
                MapFlags::SHARED,
                &self.file,
                0,
            )
            .map_err(|e| refused("mmap of a memfd", bytes, e))?;
            if TOUCH {
                touch_all(at.cast(), self.pages, self.page);
            }
            munmap(at, bytes).map_err(|e| refused("munmap", bytes, e))?;
        }
        punch(&self.file, bytes)
    }
}
