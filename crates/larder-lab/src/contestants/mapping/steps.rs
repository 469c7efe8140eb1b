//! One step of the kernel's work at a time, so that zeroing can be told from the rest by difference.
//!
//! The pair that isolates it: `fallocate` gives a memory file its pages without zeroing them, and the first
//! write through a mapping zeroes them. A write to a page of the file that is zeroed already takes the same
//! way through the kernel without that. The difference of the two is the kernel's zeroing of one page, open to
//! every user. The other steps bound it from outside.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr;

use anyhow::Context;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::{Advice, MapFlags, madvise, mmap, munmap};

use super::area::{Area, READ_WRITE, page_size, refused};
use super::tally::Tally;
use super::ways::{memory_file, punch, touch_all};
use crate::contestants::timing::{Spent, Stopwatch, opaque, peek};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// A step that can be repeated on a batch of pages.
pub trait Step: Sized {
    /// Name on the table.
    const NAME: &'static str;
    /// What it does, in one sentence.
    const ABOUT: &'static str;

    /// Whether it works here.
    ///
    /// # Errors
    /// One sentence that says what is missing.
    fn available() -> Result<(), String> {
        Ok(())
    }

    /// Prepares a batch of `pages` pages.
    ///
    /// # Errors
    /// A refusal of the kernel, in words.
    fn open(pages: usize) -> io::Result<Self>;

    /// Brings the batch into its starting state, untimed, and then does the step and times it.
    ///
    /// # Errors
    /// A refusal of the kernel, in words.
    fn once(&mut self) -> io::Result<Spent>;
}

/// The contestant of a [`Step`]. Factors: `pages` in a batch, `batches`.
pub struct Stepped<S>(std::marker::PhantomData<fn() -> S>);

impl<S> Stepped<S> {
    /// The contestant.
    #[must_use]
    pub fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<S> Default for Stepped<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Step + 'static> Contestant for Stepped<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn about(&self) -> &'static str {
        S::ABOUT
    }

    fn available(&self) -> Result<(), String> {
        S::available()
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let (pages, batches) = batch_factors(params)?;
        let context = || format!("{} with {params}", S::NAME);
        let mut step = S::open(pages).with_context(context)?;
        // A few for warmth; one is enough where the batch is larger than any cache.
        for _ in 0..if pages > 1024 { 1 } else { 4 } {
            step.once().with_context(context)?;
        }
        let mut tally = Tally::new(pages);
        for _ in 0..batches {
            tally.add(step.once().with_context(context)?);
        }
        Ok(tally.measures())
    }
}

/// The factors of everything that works on batches.
fn batch_factors(params: &Params) -> anyhow::Result<(usize, usize)> {
    let pages = params.count("pages")?;
    let batches = params.count("batches")?;
    anyhow::ensure!(
        (1..=1 << 20).contains(&pages),
        "factor 'pages' is {pages}; a batch has 1 to 1048576 pages"
    );
    anyhow::ensure!(batches > 0, "factor 'batches' is 0; ask for at least one");
    Ok((pages, batches))
}

/// A system call that does nothing: the floor of everything that enters the kernel.
pub struct NullCall(usize);

impl Step for NullCall {
    const NAME: &'static str = "step-syscall";
    const ABOUT: &'static str = "getppid: entering and leaving the kernel, nothing else";

    fn open(pages: usize) -> io::Result<Self> {
        Ok(Self(pages))
    }

    fn once(&mut self) -> io::Result<Spent> {
        let watch = Stopwatch::start();
        for _ in 0..self.0 {
            // SAFETY: getppid has no arguments and no effects.
            opaque(unsafe { libc::syscall(libc::SYS_getppid) });
        }
        Ok(watch.stop())
    }
}

/// The whole write fault on anonymous memory: trap, page, charge, zeroing, mapping.
pub struct WriteFault(Area);

impl Step for WriteFault {
    const NAME: &'static str = "step-write-fault";
    const ABOUT: &'static str = "first write to a page of anonymous memory whose page table is there: trap, allocation, charge, \
         zeroing, mapping";

    fn open(pages: usize) -> io::Result<Self> {
        Area::small_pages(pages * page_size()).map(Self)
    }

    fn once(&mut self) -> io::Result<Spent> {
        self.0.advise(Advice::LinuxDontNeed)?;
        let watch = Stopwatch::start();
        // SAFETY: the area's own pages.
        unsafe { touch_all(self.0.start(), self.0.pages(), page_size()) };
        Ok(watch.stop())
    }
}

/// The read fault on anonymous memory: trap and mapping of the shared zero page.
pub struct ReadFault(Area);

/// Reads 8 bytes of each page.
///
/// # Safety
/// The pages must be readable.
unsafe fn peek_all(at: *const u8, pages: usize, page: usize) {
    for i in 0..pages {
        // SAFETY: the caller vouches for `pages` pages.
        opaque(unsafe { peek(at.add(i * page)) });
    }
}

impl Step for ReadFault {
    const NAME: &'static str = "step-read-fault";
    const ABOUT: &'static str =
        "first read of a page of anonymous memory: trap and mapping of the shared zero page";

    fn open(pages: usize) -> io::Result<Self> {
        Area::small_pages(pages * page_size()).map(Self)
    }

    fn once(&mut self) -> io::Result<Spent> {
        self.0.advise(Advice::LinuxDontNeed)?;
        let watch = Stopwatch::start();
        // SAFETY: the area's own pages.
        unsafe { peek_all(self.0.start(), self.0.pages(), page_size()) };
        Ok(watch.stop())
    }
}

/// A memory file and its shared mapping.
struct Shared {
    file: OwnedFd,
    at: *mut u8,
    bytes: usize,
}

impl Shared {
    fn open(pages: usize) -> io::Result<Self> {
        let bytes = pages * page_size();
        let file = memory_file(bytes)?;
        // SAFETY: a new mapping where the kernel likes, unmapped by drop.
        let at = unsafe {
            mmap(
                ptr::null_mut(),
                bytes,
                READ_WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )
        }
        .map_err(|e| refused("mmap of a memfd", bytes, e))?
        .cast();
        Ok(Self { file, at, bytes })
    }

    /// Takes the pages out of the file and gives it new ones that are not zeroed yet.
    fn renew(&self) -> io::Result<()> {
        punch(&self.file, self.bytes)?;
        fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, self.bytes as u64)
            .map_err(|e| refused("fallocate", self.bytes, e))
    }

    /// Unmaps the pages and leaves them in the file.
    fn forget(&self) -> io::Result<()> {
        // SAFETY: our own shared mapping: its contents stay in the file.
        unsafe { madvise(self.at.cast(), self.bytes, Advice::LinuxDontNeed) }
            .map_err(|e| refused("madvise", self.bytes, e))
    }

    fn write(&self) -> Spent {
        let watch = Stopwatch::start();
        // SAFETY: our own pages.
        unsafe { touch_all(self.at, self.bytes / page_size(), page_size()) };
        watch.stop()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our own mapping, not used after this.
        let _ = unsafe { munmap(self.at.cast(), self.bytes) };
    }
}

/// The kernel's zeroing of a page, by difference, beside the fault that contains it.
///
/// Each batch is taken three times in turn: pages of a memory file that must still be zeroed, the same pages when they
/// are zeroed and only unmapped, and anonymous pages. The median of the batches' own differences is reported, so that
/// a machine that changes its speed changes both sides alike.
///
/// Factors: `pages` in a batch, `batches`. Measures: `cpu_ns_per_op` is the zeroing of one page; `clear_cpu_ns`,
/// `present_cpu_ns` and `fault_cpu_ns` are the three faults; `share` is the zeroing's share of the anonymous fault.
pub struct KernelZeroing;

impl Contestant for KernelZeroing {
    fn name(&self) -> &'static str {
        "step-zeroing"
    }

    fn about(&self) -> &'static str {
        "first write to allocated pages of a memory file less the write to zeroed ones: the kernel's zeroing of a page"
    }

    fn available(&self) -> Result<(), String> {
        Shared::open(1)
            .and_then(|s| s.renew())
            .map_err(|e| format!("memory files do not work here: {e}"))
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let (pages, batches) = batch_factors(params)?;
        difference(pages, batches).with_context(|| format!("step-zeroing with {params}"))
    }
}

fn difference(pages: usize, batches: usize) -> io::Result<Measures> {
    let shared = Shared::open(pages)?;
    let anonymous = Area::small_pages(pages * page_size())?;
    let (mut clear, mut present, mut fault) =
        (Tally::new(pages), Tally::new(pages), Tally::new(pages));
    let (mut zeroing, mut shares) = (Vec::new(), Vec::new());
    for turn in 0..batches + 1 {
        shared.renew()?;
        let first = shared.write();
        shared.forget()?;
        let second = shared.write();
        anonymous.advise(Advice::LinuxDontNeed)?;
        let watch = Stopwatch::start();
        // SAFETY: the area's own pages.
        unsafe { touch_all(anonymous.start(), pages, page_size()) };
        let whole = watch.stop();
        // The first turn warms up.
        if turn > 0 {
            let zeroed = first.cpu_ns as f64 - second.cpu_ns as f64;
            zeroing.push(zeroed / pages as f64);
            if whole.cpu_ns > 0 {
                shares.push(zeroed / whole.cpu_ns as f64);
            }
            clear.add(first);
            present.add(second);
            fault.add(whole);
        }
    }
    Ok(Measures::new()
        .with("cpu_ns_per_op", middle(&mut zeroing))
        .with("ns_per_op", clear.wall_ns() - present.wall_ns())
        .with("clear_cpu_ns", clear.cpu_ns())
        .with("present_cpu_ns", present.cpu_ns())
        .with("fault_cpu_ns", fault.cpu_ns())
        .with("share", middle(&mut shares))
        .with(
            "faults_per_op",
            (clear.faults() + present.faults() + fault.faults()) / 3.0,
        ))
}

/// Upper median, 0 of none; sorts.
fn middle(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The read fault on present pages of a file: the kernel maps the neighbours too (fault-around).
pub struct AroundShared(Shared);

impl Step for AroundShared {
    const NAME: &'static str = "step-shared-around";
    const ABOUT: &'static str = "read of unmapped pages of a memory file that are there: one fault maps up to 64 KiB around it";

    fn available() -> Result<(), String> {
        KernelZeroing.available()
    }

    fn open(pages: usize) -> io::Result<Self> {
        let shared = Shared::open(pages)?;
        shared.write();
        Ok(Self(shared))
    }

    fn once(&mut self) -> io::Result<Spent> {
        self.0.forget()?;
        let watch = Stopwatch::start();
        // SAFETY: our own pages.
        unsafe { peek_all(self.0.at, self.0.bytes / page_size(), page_size()) };
        Ok(watch.stop())
    }
}
