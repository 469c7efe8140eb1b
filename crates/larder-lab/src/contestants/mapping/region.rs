//! The first touch of a large region, twice in one process, and giving it back.

use std::io;
use std::marker::PhantomData;
use std::time::Instant;

use anyhow::Context;
use rustix::mm::{Advice, MapFlags};

use super::area::{Area, page_size};
use super::host::HostFacts;
use super::huge::HugePages;
use super::ways::touch_all;
use crate::contestants::timing::{Spent, Stopwatch, ns_per_op, resident_bytes};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// Pages that are timed together, so that the spread within the region can be seen: 2 MiB.
const CHUNK: usize = 512;

/// A way to get one large region and to bring its pages in.
pub trait Bulk: Sized {
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

    /// Gets `pages` pages.
    ///
    /// # Errors
    /// A refusal, in words.
    fn get(pages: usize) -> io::Result<Self>;

    /// Brings pages `from .. to` in and writes 8 bytes to each.
    fn touch(&mut self, from: usize, to: usize);
}

/// The contestant of a [`Bulk`]. Factor: `mib`, the region's size.
pub struct Region<B>(PhantomData<fn() -> B>);

impl<B> Region<B> {
    /// The contestant.
    #[must_use]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<B> Default for Region<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Bulk + 'static> Contestant for Region<B> {
    fn name(&self) -> &'static str {
        B::NAME
    }

    fn about(&self) -> &'static str {
        B::ABOUT
    }

    fn available(&self) -> Result<(), String> {
        B::available()
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let mib = params.count("mib")?;
        anyhow::ensure!(
            (1..=1 << 16).contains(&mib),
            "factor 'mib' is {mib}; a region has 1 to 65536 MiB"
        );
        run::<B>((mib << 20) / page_size()).with_context(|| format!("{} with {params}", B::NAME))
    }
}

/// What one pass over the region took.
struct Pass {
    get_and_touch: Spent,
    /// Wall nanoseconds per page of each chunk, sorted.
    chunks: Vec<f64>,
    give_back: Spent,
    resident: u64,
    huge: u64,
}

impl Pass {
    /// The chunk at this share of the sorted chunks.
    fn chunk(&self, share: f64) -> f64 {
        let last = self.chunks.len().saturating_sub(1);
        let at = (share * last as f64).round() as usize;
        self.chunks.get(at).copied().unwrap_or(0.0)
    }
}

/// Bytes of this process that lie in huge pages of the largest size.
fn huge_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("AnonHugePages:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

fn pass<B: Bulk>(pages: usize) -> io::Result<Pass> {
    let before = resident_bytes();
    let mut chunks = Vec::with_capacity(pages / CHUNK + 1);
    let watch = Stopwatch::start();
    let mut bulk = B::get(pages)?;
    let mut from = 0;
    while from < pages {
        let to = (from + CHUNK).min(pages);
        let began = Instant::now();
        bulk.touch(from, to);
        chunks.push(began.elapsed().as_nanos() as f64 / (to - from) as f64);
        from = to;
    }
    let get_and_touch = watch.stop();
    let resident = resident_bytes().saturating_sub(before);
    let huge = huge_bytes();
    let watch = Stopwatch::start();
    drop(bulk);
    let give_back = watch.stop();
    chunks.sort_unstable_by(f64::total_cmp);
    Ok(Pass {
        get_and_touch,
        chunks,
        give_back,
        resident,
        huge,
    })
}

fn run<B: Bulk>(pages: usize) -> io::Result<Measures> {
    let host = HostFacts::here();
    let first = pass::<B>(pages)?;
    let again = pass::<B>(pages)?;
    let per = |ns: u64| ns_per_op(ns, pages as u64);
    let mut measures = Measures::new()
        .with("ns_per_op", per(first.get_and_touch.wall_ns))
        .with("cpu_ns_per_op", per(first.get_and_touch.cpu_ns))
        .with("again_ns_per_op", per(again.get_and_touch.wall_ns))
        .with("again_cpu_ns_per_op", per(again.get_and_touch.cpu_ns))
        .with("give_back_ns_per_op", per(first.give_back.cpu_ns))
        .with("chunk_p10_ns_per_op", first.chunk(0.1))
        .with("chunk_p90_ns_per_op", first.chunk(0.9))
        .with(
            "faults_per_op",
            first.get_and_touch.usage.minor_faults as f64 / pages as f64,
        )
        .with("held_bytes", first.resident as f64)
        .with("huge_bytes", first.huge as f64);
    for (name, value) in host.measures() {
        measures = measures.with(name, value);
    }
    Ok(measures)
}

/// Refuses where the region would not fit twice.
pub(super) fn room(mib: u64) -> Result<(), String> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    match available {
        Some(kib) if kib / 1024 < 2 * mib => Err(format!(
            "needs {} MiB of free memory, {} MiB are there; close some programs",
            2 * mib,
            kib / 1024
        )),
        _ => Ok(()),
    }
}

/// Size that the goal names, and that [`Bulk::available`] asks room for, in MiB.
pub const REGION_MIB: u64 = 256;

/// Writes to the pages `from .. to` of an area.
fn write(area: &Area, from: usize, to: usize) {
    // SAFETY: the area's own pages; `to` is at most their number, as `pass` sees to.
    unsafe { touch_all(area.page(from), to - from, page_size()) };
}

/// Plain `mmap` and touch in 4 KiB pages.
pub struct Plain(Area);

impl Bulk for Plain {
    const NAME: &'static str = "region-touch";
    const ABOUT: &'static str = "mmap and touch in pages of the smallest size";

    fn available() -> Result<(), String> {
        room(REGION_MIB)
    }

    fn get(pages: usize) -> io::Result<Self> {
        Area::small_pages(pages * page_size()).map(Self)
    }

    fn touch(&mut self, from: usize, to: usize) {
        write(&self.0, from, to);
    }
}

/// `mmap` with whatever the machine does by default.
pub struct ByDefault(Area);

impl Bulk for ByDefault {
    const NAME: &'static str = "region-default";
    const ABOUT: &'static str = "mmap and touch with the machine's own default page sizes";

    fn available() -> Result<(), String> {
        room(REGION_MIB)
    }

    fn get(pages: usize) -> io::Result<Self> {
        Area::map(pages * page_size(), MapFlags::empty()).map(Self)
    }

    fn touch(&mut self, from: usize, to: usize) {
        write(&self.0, from, to);
    }
}

/// `mmap` with `MAP_POPULATE`.
pub struct Populate(Area);

impl Bulk for Populate {
    const NAME: &'static str = "region-populate";
    const ABOUT: &'static str =
        "MADV_POPULATE_WRITE of the whole region in pages of the smallest size, then touch";

    fn available() -> Result<(), String> {
        room(REGION_MIB)?;
        Area::small_pages(page_size())
            .and_then(|a| a.advise(Advice::LinuxPopulateWrite))
            .map_err(|_| "MADV_POPULATE_WRITE needs Linux 5.14 or newer".to_owned())
    }

    fn get(pages: usize) -> io::Result<Self> {
        let area = Area::small_pages(pages * page_size())?;
        area.advise(Advice::LinuxPopulateWrite)?;
        Ok(Self(area))
    }

    fn touch(&mut self, from: usize, to: usize) {
        write(&self.0, from, to);
    }
}

/// An aligned region with advice for huge pages.
fn huge_area(pages: usize, huge: Result<usize, String>, most: usize) -> io::Result<Area> {
    let huge = huge.map_err(io::Error::other)?;
    let area = Area::aligned((pages * page_size()).next_multiple_of(huge), huge.max(most))?;
    area.advise(Advice::LinuxHugepage)?;
    Ok(area)
}

/// Transparent huge pages by touch.
pub struct Thp(Area);

impl Bulk for Thp {
    const NAME: &'static str = "region-thp";
    const ABOUT: &'static str =
        "mmap, MADV_HUGEPAGE, touch: transparent huge pages of the largest size";

    fn available() -> Result<(), String> {
        room(REGION_MIB)?;
        HugePages::here().large().map(drop)
    }

    fn get(pages: usize) -> io::Result<Self> {
        huge_area(pages, HugePages::here().large(), 0).map(Self)
    }

    fn touch(&mut self, from: usize, to: usize) {
        write(&self.0, from, to);
    }
}

/// Transparent huge pages by `MADV_POPULATE_WRITE`.
pub struct ThpPopulate(Area);

impl Bulk for ThpPopulate {
    const NAME: &'static str = "region-thp-populate";
    const ABOUT: &'static str = "mmap, MADV_HUGEPAGE, MADV_POPULATE_WRITE, touch";

    fn available() -> Result<(), String> {
        Thp::available()?;
        Populate::available()
    }

    fn get(pages: usize) -> io::Result<Self> {
        let area = huge_area(pages, HugePages::here().large(), 0)?;
        area.advise(Advice::LinuxPopulateWrite)?;
        Ok(Self(area))
    }

    fn touch(&mut self, from: usize, to: usize) {
        write(&self.0, from, to);
    }
}

/// Smaller huge pages: the region is made of pieces too small for the largest size.
pub struct SmallThp {
    area: Area,
    piece: usize,
}

impl Bulk for SmallThp {
    const NAME: &'static str = "region-mthp";
    const ABOUT: &'static str =
        "the region in huge pages of the smaller size that is switched on, by touch";

    fn available() -> Result<(), String> {
        room(REGION_MIB)?;
        HugePages::here().small().map(drop)
    }

    fn get(pages: usize) -> io::Result<Self> {
        // The kernel takes the largest size that is switched on and fits its mapping, and offers no way to ask
        // for one. So every other half of the largest size is advised and used: mappings with different
        // advice stay apart, and none of them can hold the largest size.
        let here = HugePages::here();
        let small = here.small().map_err(io::Error::other)?;
        let piece = (here.pmd_bytes.unwrap_or(small * 2) / 2).max(small);
        let pieces = (pages * page_size()).div_ceil(piece);
        let area = Area::aligned(2 * pieces * piece, 2 * piece)?;
        for i in 0..pieces {
            area.advise_part(2 * i * piece, piece, Advice::LinuxHugepage)?;
        }
        Ok(Self { area, piece })
    }

    fn touch(&mut self, from: usize, to: usize) {
        let each = self.piece / page_size();
        for i in from..to {
            let at = i / each * 2 * each + i % each;
            write(&self.area, at, at + 1);
        }
    }
}
