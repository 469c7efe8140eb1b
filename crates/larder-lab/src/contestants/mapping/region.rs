//! The first touch of a large region, twice in one process, and giving it back.

use std::io;
use std::ops::Range;
use std::time::Instant;

use rustix::mm::Advice;

use super::area::{Area, page_size};
use super::host::HostFacts;
use super::huge::HugePages;
use super::tally::{per_op, timed};
use crate::contestants::timing::{Spent, Stopwatch, ns_per_op, resident_bytes};
use crate::model::{Measures, Params};

/// Pages that are timed together, so that the spread within the region can be seen: 2 MiB.
const CHUNK: usize = 512;

/// Size that the goal names, and that is asked for twice, in MiB.
pub const REGION_MIB: u64 = 256;

/// The factor of the contestant with smaller huge pages: their size.
pub const HUGE_KIB: &str = "huge_kib";

/// Times a way to get a region of this many bytes; it returns a closure that brings the pages in and writes 8 bytes to each.
/// Factor: `mib`, the region's size.
pub(super) fn run<T: FnMut(Range<usize>)>(
    get: impl Fn(usize) -> io::Result<T>,
    params: &Params,
) -> anyhow::Result<Measures> {
    let mib = params.count("mib")?;
    anyhow::ensure!(
        (1..=1 << 16).contains(&mib),
        "factor 'mib' is {mib}; a region has 1 to 65536 MiB"
    );
    let pages = (mib << 20) / page_size();
    let host = HostFacts::here();
    let (first, again) = (pass(&get, pages)?, pass(&get, pages)?);
    let per = |ns: u64| ns_per_op(ns, pages as u64);
    let measures = per_op(&first.get_and_touch, pages as u64)
        .with("again_ns_per_op", per(again.get_and_touch.wall_ns))
        .with("again_cpu_ns_per_op", per(again.get_and_touch.cpu_ns))
        .with("give_back_ns_per_op", per(first.give_back.cpu_ns))
        .with("chunk_p10_ns_per_op", first.chunk(0.1))
        .with("chunk_p90_ns_per_op", first.chunk(0.9))
        .with("held_bytes", first.resident as f64)
        .with("huge_bytes", first.huge as f64);
    let facts = host.measures().into_iter();
    Ok(facts.fold(measures, |m, (name, value)| m.with(name, value)))
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

fn pass<T: FnMut(Range<usize>)>(
    get: impl Fn(usize) -> io::Result<T>,
    pages: usize,
) -> io::Result<Pass> {
    let before = resident_bytes();
    let mut chunks = Vec::with_capacity(pages / CHUNK + 1);
    let watch = Stopwatch::start();
    let mut touch = get(pages * page_size())?;
    for from in (0..pages).step_by(CHUNK) {
        let to = (from + CHUNK).min(pages);
        let began = Instant::now();
        touch(from..to);
        chunks.push(began.elapsed().as_nanos() as f64 / (to - from) as f64);
    }
    let get_and_touch = watch.stop();
    let resident = resident_bytes().saturating_sub(before);
    let huge = huge_bytes();
    let give_back = timed(|| drop(touch));
    chunks.sort_unstable_by(f64::total_cmp);
    Ok(Pass {
        get_and_touch,
        chunks,
        give_back,
        resident,
        huge,
    })
}

/// Refuses where the region would not fit twice.
pub(super) fn room() -> Result<(), String> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    match available {
        Some(kib) if kib / 1024 < 2 * REGION_MIB => Err(format!(
            "needs {} MiB of free memory, {} MiB are there; close some programs",
            2 * REGION_MIB,
            kib / 1024
        )),
        _ => Ok(()),
    }
}

/// A mapping, populated or not.
pub(super) fn mapped(
    area: io::Result<Area>,
    populate: bool,
) -> io::Result<impl FnMut(Range<usize>)> {
    let area = area?;
    if populate {
        area.advise(Advice::LinuxPopulateWrite)?;
    }
    Ok(move |pages| area.touch_pages(pages))
}

/// An aligned region with advice for huge pages of the largest size.
pub(super) fn huge_area(bytes: usize) -> io::Result<Area> {
    let huge = HugePages::here().large().map_err(io::Error::other)?;
    let area = Area::aligned(bytes.next_multiple_of(huge), huge)?;
    area.advise(Advice::LinuxHugepage)?;
    Ok(area)
}

/// The huge page sizes below the largest that are switched on, in KiB, and a sentence about those that are not.
#[must_use]
pub fn small_sizes() -> (Vec<i64>, Option<String>) {
    let here = HugePages::here();
    let sizes = here.small_sizes().map(|bytes| (bytes >> 10) as i64);
    (sizes.collect(), here.switched_off())
}

/// Smaller huge pages of one size, the factor [`HUGE_KIB`]: the region is made of pieces too small for a larger size.
///
/// The kernel takes the largest size that is switched on and fits its mapping, and offers no way to ask for one. So every
/// other piece is advised and used: mappings with different advice stay apart.
pub(super) fn small_huge(params: &Params) -> anyhow::Result<Measures> {
    let here = HugePages::here();
    let kib = params.count(HUGE_KIB)?;
    let small = here.small_sizes().find(|bytes| bytes >> 10 == kib);
    let small = small.ok_or_else(|| {
        anyhow::anyhow!(
            "factor '{HUGE_KIB}' is {kib}; huge pages of this size are not there or switched off"
        )
    })?;
    let piece = here.piece(small);
    run(|bytes| in_pieces(bytes, piece), params)
}

/// A region of which every other piece of its mapping is advised and used.
fn in_pieces(bytes: usize, piece: usize) -> io::Result<impl FnMut(Range<usize>)> {
    let pieces = bytes.div_ceil(piece);
    let area = Area::aligned(2 * pieces * piece, 2 * piece)?;
    for i in 0..pieces {
        area.advise_part(2 * i * piece, piece, Advice::LinuxHugepage)?;
    }
    let each = piece / page_size();
    Ok(move |pages: Range<usize>| {
        for i in pages {
            let at = i / each * 2 * each + i % each;
            area.touch_pages(at..at + 1);
        }
    })
}
