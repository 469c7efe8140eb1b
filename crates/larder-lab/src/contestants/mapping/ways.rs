//! The ways of Linux to supply a block of zeroed pages, for [`cycle`](super::cycle).

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags};

use super::area::{Area, page_size, refused};

/// One fresh mapping, touched, unmapped.
pub(super) fn mapped(
    pages: usize,
    extra: MapFlags,
) -> io::Result<impl FnMut(bool) -> io::Result<()>> {
    let bytes = pages * page_size();
    Ok(move |touch| {
        let area = Area::map(bytes, extra)?;
        if touch {
            area.touch();
        }
        Ok(())
    })
}

/// One mapping for ever: populated or not, touched, and its pages given back by advice.
pub(super) fn advised(
    pages: usize,
    populate: bool,
    advice: Advice,
) -> io::Result<impl FnMut(bool) -> io::Result<()>> {
    let area = Area::small_pages(pages * page_size())?;
    Ok(move |touch| {
        if populate {
            area.advise(Advice::LinuxPopulateWrite)?;
        }
        if touch {
            area.touch();
        }
        area.advise(advice)
    })
}

/// A fresh mapping in huge pages at an aligned address.
pub(super) fn huge(
    pages: usize,
    huge: Result<usize, String>,
) -> io::Result<impl FnMut(bool) -> io::Result<()>> {
    let huge = huge.map_err(io::Error::other)?;
    let bytes = (pages * page_size()).next_multiple_of(huge);
    // The address is found once: reserve, take an aligned place inside, leave the hole.
    let mut place = Area::aligned(bytes, huge)?.start();
    Ok(move |touch| {
        let area = at_or_elsewhere(&mut place, bytes, huge)?;
        area.advise(Advice::LinuxHugepage)?;
        if touch {
            area.touch_pages(0..pages);
        }
        Ok(())
    })
}

/// The area at `place`; where another thread's mapping fell into the hole, that at another place, which becomes `place`.
fn at_or_elsewhere(place: &mut *mut u8, bytes: usize, align: usize) -> io::Result<Area> {
    match Area::at(*place, bytes) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            let area = Area::aligned(bytes, align)?;
            *place = area.start();
            Ok(area)
        }
        area => area,
    }
}

/// Shared pages of a memory file, mapped, touched, unmapped and punched out of the file.
pub(super) fn memfd(pages: usize) -> io::Result<impl FnMut(bool) -> io::Result<()>> {
    let bytes = pages * page_size();
    let file = memory_file(bytes)?;
    Ok(move |touch| {
        let area = Area::shared(&file, bytes)?;
        if touch {
            area.touch();
        }
        drop(area);
        punch(&file, bytes)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_taken_is_left_for_another() {
        let (bytes, align) = (1 << 21, 1 << 21);
        let taken = Area::aligned(bytes, align).unwrap();
        let mut place = taken.start();
        let area = at_or_elsewhere(&mut place, bytes, align).unwrap();
        assert_ne!(place, taken.start());
        assert_eq!((area.start(), area.start().addr() % align), (place, 0));
    }
}
