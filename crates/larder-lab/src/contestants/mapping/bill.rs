//! The consumer's bill: what a page costs the program that asks for it and then uses it.
//!
//! Zeroing is also a prefetch: a page zeroed at hand-out is in the cache when the consumer writes to it, a page
//! zeroed long ago or by another CPU is not. So the supply is timed together with the use. The time of a helper
//! thread counts too, in a column of its own and in the sum: work that moves elsewhere is not saved.

use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use larder::os::zero::{Routine, Zeroing};
use rustix::mm::{Advice, MapFlags};

use super::area::{Area, page_size};
use super::factors;
use super::pin::{stay_on, two_cpus};
use super::tally::{Tally, timed};
use super::zeroing::{BATCH, cold_pages, zero_batch};
use crate::contestants::timing::{Stopwatch, keep, opaque, resident_bytes, touch};
use crate::model::{Measures, Params};

/// What the consumer does with its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Writes 8 bytes.
    Write8,
    /// Overwrites the whole page.
    WriteAll,
    /// Reads the whole page.
    ReadAll,
}

impl Use {
    /// All, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Write8, Self::WriteAll, Self::ReadAll];

    /// Name as a factor.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Write8 => "write-8",
            Self::WriteAll => "write-all",
            Self::ReadAll => "read-all",
        }
    }

    /// Words for a sentence: "a consumer that then ...".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Write8 => "writes 8 bytes",
            Self::WriteAll => "overwrites the whole page",
            Self::ReadAll => "reads the whole page",
        }
    }

    /// Uses a page.
    ///
    /// # Safety
    /// `at` must be the start of a page that is readable and writable, and nothing else may use it.
    #[inline(always)]
    pub(super) unsafe fn of(self, at: *mut u8, page: usize) {
        // SAFETY: the caller vouches for the page.
        unsafe {
            match self {
                Self::Write8 => touch(at, 1),
                Self::WriteAll => {
                    at.write_bytes(0x5A, page);
                    keep(at);
                }
                Self::ReadAll => {
                    let words = std::slice::from_raw_parts(at.cast::<u64>(), page / 8);
                    opaque(words.iter().fold(0u64, |sum, w| sum.wrapping_add(*w)));
                    keep(at);
                }
            }
        }
    }
}

impl FromStr for Use {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        Self::ALL
            .into_iter()
            .find(|u| u.name() == text)
            .with_context(|| {
                format!("factor 'use' is '{text}'; choose write-8, write-all or read-all")
            })
    }
}

/// Where the consumer's page comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The kernel's fault on a recycled mapping.
    Fault,
    /// A fresh populated mapping.
    Populate,
    /// A warm page zeroed when it is handed out.
    WarmZeroed,
    /// A cold page zeroed when it is handed out.
    ColdZeroed,
    /// A cold page zeroed by another CPU just before.
    HelperNear,
    /// A cold page zeroed by another CPU long before.
    HelperFar,
    /// A warm page as it is: the floor.
    FloorWarm,
    /// A cold page as it is: the floor of everything that is not recycled at once.
    FloorCold,
}

impl Source {
    /// All, with the contestant's name and what it is.
    pub const ALL: [(Self, &'static str, &'static str); 8] = [
        (
            Self::Fault,
            "bill-fault",
            "the kernel's fault at first use, on a recycled mapping of 64 pages",
        ),
        (
            Self::Populate,
            "bill-populate",
            "mmap with MAP_POPULATE of 64 pages, the call included",
        ),
        (
            Self::WarmZeroed,
            "bill-warm",
            "recycled warm page, zeroed when it is handed out",
        ),
        (
            Self::ColdZeroed,
            "bill-cold",
            "recycled cold page, zeroed when it is handed out",
        ),
        (
            Self::HelperNear,
            "bill-prezeroed-now",
            "cold page zeroed by another CPU just before it is handed out",
        ),
        (
            Self::HelperFar,
            "bill-prezeroed-before",
            "cold page zeroed by another CPU, 64 MiB or more of other pages ago",
        ),
        (
            Self::FloorWarm,
            "floor-warm",
            "a warm page handed out as it is, no zeroing: the floor",
        ),
        (
            Self::FloorCold,
            "floor-cold",
            "a cold page handed out as it is, no zeroing: the floor of cold supply",
        ),
    ];

    /// Whether another CPU zeroes its pages.
    #[must_use]
    pub fn is_helped(self) -> bool {
        matches!(self, Self::HelperNear | Self::HelperFar)
    }
}

/// Batches before the first that counts.
pub(super) const WARM_UP: usize = 4;

/// Factors: `use`, `batches` of 64 pages, `routine` (`fastest` or a name).
pub(super) fn run(source: Source, params: &Params) -> anyhow::Result<Measures> {
    let usage = Use::from_str(params.text("use")?)?;
    let turns = factors::counted(params, "batches")? + WARM_UP;
    let routine = match params.text("routine")? {
        "fastest" => Zeroing::fastest(),
        name => Zeroing::from_str(name)?,
    }
    .routine();
    let before = resident_bytes();
    let job = Job {
        source,
        usage,
        turns,
        routine,
        page: page_size(),
    };
    let (measures, held) = match source.is_helped() {
        true => job.helped()?,
        false => job.alone()?,
    };
    Ok(measures.with("held_bytes", held.saturating_sub(before) as f64))
}

/// Adds helper and give-back to the consumer's measures; both are per page.
pub(super) fn bill(consumer: &Tally, helper_ns: f64, give_back_ns: f64) -> Measures {
    consumer
        .measures()
        .with("helper_cpu_ns_per_op", helper_ns)
        .with("total_cpu_ns_per_op", consumer.cpu_ns() + helper_ns)
        .with("give_back_ns_per_op", give_back_ns)
}

/// One run: measures, and bytes resident while the pages were there.
type Ran = io::Result<(Measures, u64)>;

struct Job {
    source: Source,
    usage: Use,
    turns: usize,
    routine: Routine,
    page: usize,
}

impl Job {
    /// Gets (zeroing if `zero`) and uses one batch of an area.
    #[inline(always)]
    fn use_batch(&self, area: &Area, batch: usize, zero: bool) {
        for i in 0..BATCH {
            let at = area.page(batch * BATCH + i);
            // SAFETY: a whole page of the area, aligned, used by this thread only at this time: a helper
            // works on a batch only between its start and its end, which this thread waits for.
            unsafe {
                if zero {
                    self.routine.zero(at, self.page);
                }
                self.usage.of(at, self.page);
            }
        }
    }

    /// What the owner did with the batch before it came back: it is dirty.
    fn soil(&self, area: &Area, batch: usize) {
        // SAFETY: a whole batch of the area, used by this thread only at this time.
        unsafe {
            area.page(batch * BATCH)
                .write_bytes(0xA5, BATCH * self.page);
        }
        keep(area.start());
    }

    /// Pages that stay with the consumer, or that the kernel takes back and zeroes again.
    fn alone(&self) -> Ran {
        let zero = matches!(self.source, Source::WarmZeroed | Source::ColdZeroed);
        let pages = match self.source {
            Source::ColdZeroed | Source::FloorCold => cold_pages(),
            _ => BATCH,
        };
        let by_kernel = matches!(self.source, Source::Fault | Source::Populate);
        let mut kept = None;
        if self.source != Source::Populate {
            let area = Area::small_pages(pages * self.page)?;
            if !by_kernel {
                area.dirty();
            }
            kept = Some(area);
        }
        let (mut tally, mut back) = (Tally::new(BATCH), Tally::new(BATCH));
        let mut held = 0;
        for turn in 0..self.turns {
            let batch = turn % (pages / BATCH);
            let watch = Stopwatch::start();
            let area = match kept.take() {
                Some(area) => area,
                None => Area::map(BATCH * self.page, MapFlags::POPULATE)?,
            };
            self.use_batch(&area, batch, zero);
            let spent = watch.stop();
            if turn == 0 {
                held = resident_bytes();
            }
            self.soil(&area, batch);
            let watch = Stopwatch::start();
            if self.source == Source::Fault {
                area.advise(Advice::LinuxDontNeed)?;
            }
            // A populated mapping is dropped here, any other kept.
            kept = Some(area).filter(|_| self.source != Source::Populate);
            let returned = watch.stop();
            if turn >= WARM_UP {
                tally.add(spent);
                back.add(returned);
            }
        }
        let give_back = if by_kernel { back.cpu_ns() } else { 0.0 };
        Ok((bill(&tally, 0.0, give_back), held))
    }

    /// Pages that a helper on another CPU zeroes.
    fn helped(&self) -> Ran {
        let (here, there) = two_cpus().map_err(io::Error::other)?;
        let far = self.source == Source::HelperFar;
        let pages = if far { 2 * cold_pages() } else { cold_pages() };
        let rounds = pages / BATCH;
        let area = Area::small_pages(pages * self.page)?;
        area.dirty();
        // Batches that the helper was asked for and has done; both only grow.
        let (asked, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // A far page was zeroed half a ring before it is used, so the helper starts half a ring ahead.
        let ahead = if far { rounds / 2 } else { 0 };
        let last = self.turns + ahead;

        let (consumer, helper) = std::thread::scope(|scope| {
            let (area, asked, done) = (&area, &asked, &done);
            let helper = scope.spawn(move || {
                stay_on(there);
                let mut tally = Tally::new(BATCH);
                for turn in 0..last {
                    wait_for(asked, turn + 1);
                    // The consumer does not touch the batch until `done` says so.
                    tally.add(timed(|| zero_batch(area, turn % rounds, self.routine)));
                    done.store(turn + 1, Ordering::Release);
                }
                tally
            });
            stay_on(here);
            let mut consumer = Tally::new(BATCH);
            for turn in 0..last {
                asked.store(turn + 1, Ordering::Release);
                wait_for(done, turn + 1);
                let Some(mine) = turn.checked_sub(ahead) else {
                    continue;
                };
                let batch = mine % rounds;
                let spent = timed(|| self.use_batch(area, batch, false));
                if mine >= WARM_UP {
                    consumer.add(spent);
                }
                self.soil(area, batch);
            }
            (consumer, helper.join())
        });
        let helper = helper.map_err(|_| io::Error::other("the helper thread panicked"))?;
        let held = resident_bytes();
        Ok((bill(&consumer, helper.cpu_ns(), 0.0), held))
    }
}

/// Waits until `counter` has reached `value`: awake, so that no wake-up from sleep is measured, but giving the
/// CPU away when the other side does not come.
fn wait_for(counter: &AtomicUsize, value: usize) {
    let mut turns = 0u32;
    while counter.load(Ordering::Acquire) < value {
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(4096) {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}
