//! The consumer's bill: what a page costs the program that asks for it and then uses it.
//!
//! Zeroing is also a prefetch: a page zeroed at hand-out is in the cache when the consumer writes to it, a page
//! zeroed long ago or by another CPU is not. So the supply is timed together with the use. What a helper thread
//! spends is counted too, in a column of its own and in the sum: work moved elsewhere is not work saved.

use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use larder::os::zero::{Routine, Zeroing};
use rustix::mm::{Advice, MapFlags};

use super::area::{Area, page_size};
use super::pin::{stay_on, two_cpus};
use super::tally::Tally;
use super::zeroing::{BATCH, cold_pages};
use crate::contestants::timing::{Stopwatch, keep, opaque, resident_bytes, touch};
use crate::measure::Contestant;
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
    /// `at` must be the start of a page that is readable, writable and used by nobody else.
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
    /// A warm page as it is: the floor.
    FloorWarm,
    /// A cold page as it is: the floor of everything that is not recycled at once.
    FloorCold,
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
}

impl Source {
    /// All, in the order of the tables.
    pub const ALL: [Self; 8] = [
        Self::Fault,
        Self::Populate,
        Self::WarmZeroed,
        Self::ColdZeroed,
        Self::HelperNear,
        Self::HelperFar,
        Self::FloorWarm,
        Self::FloorCold,
    ];

    fn of_batch(self, batch: usize, batches: usize) -> usize {
        match self {
            Self::FloorWarm | Self::WarmZeroed | Self::Fault | Self::Populate => 0,
            _ => batch % batches,
        }
    }
}

/// The contestant of a [`Source`]. Factors: `use`, `batches` of 64 pages, `routine` (`fastest` or a name).
pub struct Bill(pub Source);

impl Contestant for Bill {
    fn name(&self) -> &'static str {
        match self.0 {
            Source::FloorWarm => "floor-warm",
            Source::FloorCold => "floor-cold",
            Source::Fault => "bill-fault",
            Source::Populate => "bill-populate",
            Source::WarmZeroed => "bill-warm",
            Source::ColdZeroed => "bill-cold",
            Source::HelperNear => "bill-prezeroed-now",
            Source::HelperFar => "bill-prezeroed-before",
        }
    }

    fn about(&self) -> &'static str {
        match self.0 {
            Source::FloorWarm => "a warm page handed out as it is, no zeroing: the floor",
            Source::FloorCold => {
                "a cold page handed out as it is, no zeroing: the floor of cold supply"
            }
            Source::Fault => "the kernel's fault at first use, on a recycled mapping of 64 pages",
            Source::Populate => "mmap with MAP_POPULATE of 64 pages, the call included",
            Source::WarmZeroed => "recycled warm page, zeroed when it is handed out",
            Source::ColdZeroed => "recycled cold page, zeroed when it is handed out",
            Source::HelperNear => "cold page zeroed by another CPU just before it is handed out",
            Source::HelperFar => {
                "cold page zeroed by another CPU, 64 MiB or more of other pages ago"
            }
        }
    }

    fn available(&self) -> Result<(), String> {
        match self.0 {
            Source::HelperNear | Source::HelperFar => two_cpus().map(drop),
            _ => Ok(()),
        }
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let usage = Use::from_str(params.text("use")?)?;
        let batches = params.count("batches")?;
        anyhow::ensure!(batches > 0, "factor 'batches' is 0; ask for at least one");
        let routine = match params.text("routine")? {
            "fastest" => Zeroing::fastest(),
            name => Zeroing::from_str(name)?,
        }
        .routine();
        let before = resident_bytes();
        let job = Job {
            source: self.0,
            usage,
            batches,
            routine,
            page: page_size(),
        };
        let measures = match self.0 {
            Source::Fault => job.fault(),
            Source::Populate => job.populate(),
            Source::HelperNear | Source::HelperFar => job.helped(),
            _ => job.recycled(),
        }
        .with_context(|| format!("{} with {params}", self.name()))?;
        let (measures, held) = measures;
        Ok(measures.with("held_bytes", held.saturating_sub(before) as f64))
    }
}

/// One run: measures, and bytes resident while the pages were there.
type Ran = io::Result<(Measures, u64)>;

struct Job {
    source: Source,
    usage: Use,
    batches: usize,
    routine: Routine,
    page: usize,
}

/// Adds helper and give-back to the consumer's measures; both are per page.
pub(super) fn bill(consumer: &Tally, helper_ns: f64, give_back_ns: f64) -> Measures {
    consumer
        .measures()
        .with("helper_cpu_ns_per_op", helper_ns)
        .with("total_cpu_ns_per_op", consumer.cpu_ns() + helper_ns)
        .with("give_back_ns_per_op", give_back_ns)
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

    /// Pages that stay in our hands.
    fn recycled(&self) -> Ran {
        let (zero, pages) = match self.source {
            Source::WarmZeroed => (true, BATCH),
            Source::ColdZeroed => (true, cold_pages()),
            Source::FloorCold => (false, cold_pages()),
            _ => (false, BATCH),
        };
        let area = Area::small_pages(pages * self.page)?;
        area.dirty();
        let mut tally = Tally::new(BATCH);
        for turn in 0..self.batches + 4 {
            let batch = self.source.of_batch(turn, pages / BATCH);
            let watch = Stopwatch::start();
            self.use_batch(&area, batch, zero);
            let spent = watch.stop();
            if turn >= 4 {
                tally.add(spent);
            }
            self.soil(&area, batch);
        }
        let held = resident_bytes();
        Ok((bill(&tally, 0.0, 0.0), held))
    }

    /// Pages that the kernel takes back and zeroes again.
    fn fault(&self) -> Ran {
        let area = Area::small_pages(BATCH * self.page)?;
        let mut tally = Tally::new(BATCH);
        let mut back = Tally::new(BATCH);
        let mut held = 0;
        for turn in 0..self.batches + 4 {
            let watch = Stopwatch::start();
            self.use_batch(&area, 0, false);
            let spent = watch.stop();
            if turn == 0 {
                held = resident_bytes();
            }
            self.soil(&area, 0);
            let watch = Stopwatch::start();
            area.advise(Advice::LinuxDontNeed)?;
            let returned = watch.stop();
            if turn >= 4 {
                tally.add(spent);
                back.add(returned);
            }
        }
        Ok((bill(&tally, 0.0, back.cpu_ns()), held))
    }

    /// A new populated mapping for each batch.
    fn populate(&self) -> Ran {
        let mut tally = Tally::new(BATCH);
        let mut back = Tally::new(BATCH);
        let mut held = 0;
        for turn in 0..self.batches + 4 {
            let watch = Stopwatch::start();
            let area = Area::map(BATCH * self.page, MapFlags::POPULATE)?;
            self.use_batch(&area, 0, false);
            let spent = watch.stop();
            if turn == 0 {
                held = resident_bytes();
            }
            self.soil(&area, 0);
            let watch = Stopwatch::start();
            drop(area);
            let returned = watch.stop();
            if turn >= 4 {
                tally.add(spent);
                back.add(returned);
            }
        }
        Ok((bill(&tally, 0.0, back.cpu_ns()), held))
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
        let turns = self.batches + 4;
        let last = turns + ahead;

        let (consumer, helper) = std::thread::scope(|scope| {
            let (area, asked, done) = (&area, &asked, &done);
            let helper = scope.spawn(move || {
                stay_on(there);
                let mut tally = Tally::new(BATCH);
                for turn in 0..last {
                    wait_for(asked, turn + 1);
                    let batch = turn % rounds;
                    let watch = Stopwatch::start();
                    for i in 0..BATCH {
                        // SAFETY: a page of a batch that the consumer does not touch until `done` says so.
                        unsafe { self.routine.zero(area.page(batch * BATCH + i), self.page) };
                    }
                    keep(area.start());
                    tally.add(watch.stop());
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
                let watch = Stopwatch::start();
                self.use_batch(area, batch, false);
                let spent = watch.stop();
                if mine >= 4 {
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
