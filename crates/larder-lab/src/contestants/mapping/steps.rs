//! One step of the kernel's work at a time, so that differences isolate the zeroing.
//!
//! The pair that isolates it: `fallocate` gives a memory file its pages without zeroing them, and the first
//! write through a mapping zeroes them. A write to a page of the file that is zeroed already takes the same
//! way through the kernel without the zeroing. The difference is the kernel's zeroing of one page, which every user can measure.
//! The other steps bound it.
//!
//! A step is a function that prepares a batch of a given number of pages. It returns a closure that brings the batch into its starting
//! state, untimed, and then does the step and times it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::Advice;

use super::area::{Area, page_size, refused};
use super::factors;
use super::tally::{Tally, timed};
use super::ways::{memory_file, punch};
use crate::contestants::timing::{Spent, opaque};
use crate::model::{Measures, Params};

/// Times a step. Factors: `pages` in a batch, `batches`.
pub(super) fn run<S: FnMut() -> io::Result<Spent>>(
    open: impl Fn(usize) -> io::Result<S>,
    params: &Params,
) -> anyhow::Result<Measures> {
    let pages = factors::pages(params)?;
    let batches = factors::counted(params, "batches")?;
    let mut step = open(pages)?;
    // A few for warmth; one is enough where the batch is larger than any cache.
    for _ in 0..if pages > 1024 { 1 } else { 4 } {
        step()?;
    }
    let mut tally = Tally::new(pages);
    for _ in 0..batches {
        tally.add(step()?);
    }
    Ok(tally.measures())
}

/// A system call that does nothing: the floor of everything that enters the kernel.
pub(super) fn null_call(pages: usize) -> io::Result<impl FnMut() -> io::Result<Spent>> {
    Ok(move || {
        Ok(timed(|| {
            for _ in 0..pages {
                // SAFETY: getppid has no arguments and no effects.
                opaque(unsafe { libc::syscall(libc::SYS_getppid) });
            }
        }))
    })
}

/// The first access to anonymous memory. A write traps, allocates, charges, zeroes and maps a page; a read traps and maps
/// the shared zero page.
pub(super) fn fault(
    pages: usize,
    access: fn(&Area),
) -> io::Result<impl FnMut() -> io::Result<Spent>> {
    let area = Area::small_pages(pages * page_size())?;
    Ok(move || {
        area.advise(Advice::LinuxDontNeed)?;
        Ok(timed(|| access(&area)))
    })
}

/// A memory file and its shared mapping.
pub(super) struct Shared {
    file: OwnedFd,
    area: Area,
}

impl Shared {
    pub(super) fn open(pages: usize) -> io::Result<Self> {
        let bytes = pages * page_size();
        let file = memory_file(bytes)?;
        let area = Area::shared(&file, bytes)?;
        Ok(Self { file, area })
    }

    /// Takes the pages out of the file and gives it new ones that are not zeroed yet.
    pub(super) fn renew(&self) -> io::Result<()> {
        let bytes = self.area.bytes();
        punch(&self.file, bytes)?;
        fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, bytes as u64)
            .map_err(|e| refused("fallocate", bytes, e))
    }

    /// Unmaps the pages and leaves them in the file.
    fn forget(&self) -> io::Result<()> {
        self.area.advise(Advice::LinuxDontNeed)
    }
}

/// The read fault on present pages of a file: the kernel maps the neighbours too (fault-around).
pub(super) fn around(pages: usize) -> io::Result<impl FnMut() -> io::Result<Spent>> {
    let shared = Shared::open(pages)?;
    shared.area.touch();
    Ok(move || {
        shared.forget()?;
        Ok(timed(|| shared.area.read()))
    })
}

/// The kernel's zeroing of a page, by difference, beside the fault that contains it.
///
/// Each batch is taken three times in turn: pages of a memory file that must still be zeroed, the same pages when they
/// are zeroed and only unmapped, and anonymous pages. The median of the batches' own differences is reported, so that
/// a machine that changes its speed changes both sides alike.
///
/// Factors: `pages` in a batch, `batches`. Measures: `cpu_ns_per_op` is the zeroing of one page; `clear_cpu_ns`,
/// `present_cpu_ns` and `fault_cpu_ns` are the three faults; `share` is the zeroing's share of the anonymous fault.
pub(super) fn zeroing(params: &Params) -> anyhow::Result<Measures> {
    let pages = factors::pages(params)?;
    let batches = factors::counted(params, "batches")?;
    let shared = Shared::open(pages)?;
    let mut anonymous = fault(pages, Area::touch)?;
    let [mut clear, mut present, mut whole] = [(); 3].map(|()| Tally::new(pages));
    let (mut zeroing, mut shares) = (Vec::new(), Vec::new());
    // The first turn warms up.
    for turn in 0..=batches {
        shared.renew()?;
        let first = timed(|| shared.area.touch());
        shared.forget()?;
        let second = timed(|| shared.area.touch());
        let fault = anonymous()?;
        if turn > 0 {
            let zeroed = first.cpu_ns as f64 - second.cpu_ns as f64;
            zeroing.push(zeroed / pages as f64);
            if fault.cpu_ns > 0 {
                shares.push(zeroed / fault.cpu_ns as f64);
            }
            clear.add(first);
            present.add(second);
            whole.add(fault);
        }
    }
    let faults = clear.faults() + present.faults() + whole.faults();
    Ok(Measures::new()
        .with("cpu_ns_per_op", middle(&mut zeroing))
        .with("ns_per_op", clear.wall_ns() - present.wall_ns())
        .with("clear_cpu_ns", clear.cpu_ns())
        .with("present_cpu_ns", present.cpu_ns())
        .with("fault_cpu_ns", whole.cpu_ns())
        .with("share", middle(&mut shares))
        .with("faults_per_op", faults / 3.0))
}

/// Upper median, 0 of none; sorts.
fn middle(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
