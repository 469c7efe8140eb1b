//! Pages installed by userfaultfd: what it costs to put a page into a page table, with no trap and no zeroing.
//!
//! Layouts and numbers of the requests: the kernel's `include/uapi/linux/userfaultfd.h` and the manual page
//! `ioctl_userfaultfd(2)`.

use std::io;
use std::os::fd::OwnedFd;

use rustix::ioctl::{Updater, ioctl, opcode};
use rustix::mm::{Advice, UserfaultfdFlags, userfaultfd};

use super::area::{Area, page_size, refused};
use super::steps::Step;
use crate::contestants::timing::{Spent, Stopwatch};

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct ZeroPage {
    start: u64,
    len: u64,
    mode: u64,
    done: i64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Transfer {
    to: u64,
    from: u64,
    len: u64,
    mode: u64,
    done: i64,
}

const GROUP: u8 = 0xAA;
const VERSION: u64 = 0xAA;
const MODE_MISSING: u64 = 1;
/// `UFFD_FEATURE_MOVE`, Linux 6.8.
const FEATURE_MOVE: u64 = 1 << 16;

/// Sends one request that the kernel reads and answers in place.
fn request<const OPCODE: rustix::ioctl::Opcode, T>(
    handle: &OwnedFd,
    argument: &mut T,
    what: &str,
    bytes: usize,
) -> io::Result<()> {
    // SAFETY: each caller below pairs the number of a request with the structure that the kernel defines for it.
    unsafe { ioctl(handle, Updater::<OPCODE, T>::new(argument)) }
        .map_err(|e| refused(what, bytes, e))
}

/// Opens a handle; `wanted` are feature bits that must be there.
fn open(wanted: u64) -> io::Result<OwnedFd> {
    // SAFETY: a new descriptor that handles no mapping yet.
    let handle = unsafe { userfaultfd(UserfaultfdFlags::CLOEXEC) }
        .or_else(|_| {
            // Faults from user mode only are allowed to everybody (`UFFD_USER_MODE_ONLY`).
            // SAFETY: as above.
            unsafe {
                userfaultfd(UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::from_bits_retain(1))
            }
        })
        .map_err(|e| refused("userfaultfd", 0, e))?;
    let mut api = Api {
        api: VERSION,
        features: wanted,
        ioctls: 0,
    };
    request::<{ opcode::read_write::<Api>(GROUP, 0x3F) }, _>(
        &handle,
        &mut api,
        "userfaultfd's handshake",
        0,
    )?;
    Ok(handle)
}

fn register(handle: &OwnedFd, area: &Area) -> io::Result<()> {
    let mut range = Register {
        start: area.start().addr() as u64,
        len: area.bytes() as u64,
        mode: MODE_MISSING,
        ioctls: 0,
    };
    request::<{ opcode::read_write::<Register>(GROUP, 0x00) }, _>(
        handle,
        &mut range,
        "registering with userfaultfd",
        area.bytes(),
    )
}

fn available(wanted: u64) -> Result<(), String> {
    open(wanted).map(drop).map_err(|e| {
        let error = e.to_string();
        format!("userfaultfd does not do this here ({error}); it needs Linux 6.8 and a permission")
    })
}

/// `UFFDIO_ZEROPAGE`: the shared zero page put into the page table, in a batch.
pub struct InstallZero {
    handle: OwnedFd,
    area: Area,
}

impl Step for InstallZero {
    const NAME: &'static str = "step-uffd-zeropage";
    const ABOUT: &'static str =
        "UFFDIO_ZEROPAGE on a batch: page table entries for the zero page, no trap, no allocation";

    fn available() -> Result<(), String> {
        available(0)
    }

    fn open(pages: usize) -> io::Result<Self> {
        let area = Area::small_pages(pages * page_size())?;
        let handle = open(0)?;
        register(&handle, &area)?;
        Ok(Self { handle, area })
    }

    fn once(&mut self) -> io::Result<Spent> {
        self.area.advise(Advice::LinuxDontNeed)?;
        let mut range = ZeroPage {
            start: self.area.start().addr() as u64,
            len: self.area.bytes() as u64,
            mode: 0,
            done: 0,
        };
        let watch = Stopwatch::start();
        request::<{ opcode::read_write::<ZeroPage>(GROUP, 0x04) }, _>(
            &self.handle,
            &mut range,
            "UFFDIO_ZEROPAGE",
            self.area.bytes(),
        )?;
        Ok(watch.stop())
    }
}

/// `UFFDIO_MOVE`: pages that exist already, moved to another address in a batch.
pub struct Move {
    handle: OwnedFd,
    from: Area,
    to: Area,
}

impl Step for Move {
    const NAME: &'static str = "step-uffd-move";
    const ABOUT: &'static str = "UFFDIO_MOVE of a batch: pages zeroed before put at another address, no trap, no allocation";

    fn available() -> Result<(), String> {
        available(FEATURE_MOVE)
    }

    fn open(pages: usize) -> io::Result<Self> {
        let from = Area::small_pages(pages * page_size())?;
        let to = Area::small_pages(pages * page_size())?;
        let handle = open(FEATURE_MOVE)?;
        register(&handle, &to)?;
        Ok(Self { handle, from, to })
    }

    fn once(&mut self) -> io::Result<Spent> {
        self.to.advise(Advice::LinuxDontNeed)?;
        self.from.dirty();
        let mut transfer = Transfer {
            to: self.to.start().addr() as u64,
            from: self.from.start().addr() as u64,
            len: self.to.bytes() as u64,
            mode: 0,
            done: 0,
        };
        let watch = Stopwatch::start();
        request::<{ opcode::read_write::<Transfer>(GROUP, 0x05) }, _>(
            &self.handle,
            &mut transfer,
            "UFFDIO_MOVE",
            self.to.bytes(),
        )?;
        Ok(watch.stop())
    }
}
