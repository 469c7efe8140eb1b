//! Pages installed by userfaultfd: what it costs to put a page into a page table, with no trap and no zeroing.
//!
//! Layouts and numbers of the requests: the kernel's `include/uapi/linux/userfaultfd.h` and the manual page
//! `ioctl_userfaultfd(2)`. Each argument is a structure of 64-bit words.

use std::io;
use std::os::fd::OwnedFd;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::mm::{Advice, UserfaultfdFlags, userfaultfd};

use super::area::{Area, page_size, refused};
use crate::contestants::timing::{Spent, Stopwatch};

const GROUP: u8 = 0xAA;
const VERSION: u64 = 0xAA;
const MODE_MISSING: u64 = 1;
/// `UFFD_FEATURE_MOVE`, Linux 6.8.
pub(super) const FEATURE_MOVE: u64 = 1 << 16;

/// `struct uffdio_api`: version, features, requests.
const API: Opcode = opcode::read_write::<[u64; 3]>(GROUP, 0x3F);
/// `struct uffdio_register`: start, length, mode, requests.
const REGISTER: Opcode = opcode::read_write::<[u64; 4]>(GROUP, 0x00);
/// `struct uffdio_zeropage`: start, length, mode, bytes done.
const ZEROPAGE: Opcode = opcode::read_write::<[u64; 4]>(GROUP, 0x04);
/// `struct uffdio_move`: to, from, length, mode, bytes done.
const MOVE: Opcode = opcode::read_write::<[u64; 5]>(GROUP, 0x05);

/// Sends one request that the kernel reads and answers in place.
fn request<const OPCODE: Opcode, const WORDS: usize>(
    handle: &OwnedFd,
    mut argument: [u64; WORDS],
    what: &str,
    bytes: usize,
) -> io::Result<()> {
    // SAFETY: each caller below pairs the number of a request with as many words as the kernel defines for it.
    unsafe { ioctl(handle, Updater::<OPCODE, [u64; WORDS]>::new(&mut argument)) }
        .map_err(|e| refused(what, bytes, e))
}

/// Opens a handle; `wanted` are feature bits that must be there.
fn open(wanted: u64) -> io::Result<OwnedFd> {
    // SAFETY: a new descriptor that handles no mapping yet.
    let open = |flags| unsafe { userfaultfd(flags) };
    // Faults from user mode only need no permission (`UFFD_USER_MODE_ONLY`).
    let user_only = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::from_bits_retain(1);
    let handle = open(UserfaultfdFlags::CLOEXEC)
        .or_else(|_| open(user_only))
        .map_err(|e| refused("userfaultfd", 0, e))?;
    request::<API, 3>(&handle, [VERSION, wanted, 0], "userfaultfd's handshake", 0)?;
    Ok(handle)
}

/// A handle for the faults of an area.
fn handle_of(area: &Area, wanted: u64) -> io::Result<OwnedFd> {
    let handle = open(wanted)?;
    let range = [start(area), area.bytes() as u64, MODE_MISSING, 0];
    let what = "registering with userfaultfd";
    request::<REGISTER, 4>(&handle, range, what, area.bytes())?;
    Ok(handle)
}

fn start(area: &Area) -> u64 {
    area.start().addr() as u64
}

pub(super) fn available(wanted: u64) -> Result<(), String> {
    open(wanted).map(drop).map_err(|error| {
        format!("userfaultfd does not do this here ({error}); it needs Linux 6.8 and a permission")
    })
}

/// `UFFDIO_ZEROPAGE`: the shared zero page put into the page table, in a batch.
pub(super) fn install_zero(pages: usize) -> io::Result<impl FnMut() -> io::Result<Spent>> {
    let area = Area::small_pages(pages * page_size())?;
    let handle = handle_of(&area, 0)?;
    Ok(move || {
        area.advise(Advice::LinuxDontNeed)?;
        let range = [start(&area), area.bytes() as u64, 0, 0];
        let watch = Stopwatch::start();
        request::<ZEROPAGE, 4>(&handle, range, "UFFDIO_ZEROPAGE", area.bytes())?;
        Ok(watch.stop())
    })
}

/// `UFFDIO_MOVE`: pages that exist already, moved to another address in a batch.
pub(super) fn move_pages(pages: usize) -> io::Result<impl FnMut() -> io::Result<Spent>> {
    let [from, to] = [(); 2].map(|()| Area::small_pages(pages * page_size()));
    let (from, to) = (from?, to?);
    let handle = handle_of(&to, FEATURE_MOVE)?;
    Ok(move || {
        to.advise(Advice::LinuxDontNeed)?;
        from.dirty();
        let transfer = [start(&to), start(&from), to.bytes() as u64, 0, 0];
        let watch = Stopwatch::start();
        request::<MOVE, 5>(&handle, transfer, "UFFDIO_MOVE", to.bytes())?;
        Ok(watch.stop())
    })
}
