//! Ways of getting mapped memory, and what each step of getting it costs.
//!
//! | file | what is timed |
//! |---|---|
//! | `cycle` with `ways` | a block of pages got, touched and given back, many times |
//! | `placed` | the same where the number of new page tables is known |
//! | `steps` | one step of the kernel's work at a time, for the share of zeroing by difference |
//! | `zeroing` | zeroing in place, warm and cold, by routine |
//! | `bill` | what the consumer pays for a page and its use, helper's time apart |
//! | `region` | the first touch of a large region |
//! | `pool` | larder's PagePool in the same places |

mod area;
pub mod bill;
pub mod cycle;
mod factors;
mod host;
mod huge;
pub mod pin;
mod placed;
mod pool;
pub mod region;
mod steps;
mod tally;
mod user_fault;
mod ways;
pub mod zeroing;

use rustix::mm::{Advice, MapFlags};

use self::area::Area;
use self::bill::Source;
use self::huge::HugePages;
use self::pool::Ask;
use crate::frame::{bench, needing};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// Whether the machine has what a contestant needs: one sentence that says what is missing.
type Needs = fn() -> Result<(), String>;
type Run = fn(&Params) -> anyhow::Result<Measures>;

/// Every contestant.
#[must_use]
pub fn all() -> Vec<Box<dyn Contestant>> {
    let one =
        |(name, about, needs, run): (_, _, Needs, Run)| needing(needs, bench(name, about, run));
    let mut all: Vec<Box<dyn Contestant>> = blocks().into_iter().map(one).collect();
    all.extend(kernel_steps().into_iter().map(one));
    all.push(bench(
        "zero-in-place",
        "zeroing dirty pages in place, page by page, with one routine: warm (256 KiB) or cold (64 MiB or more)",
        zeroing::run,
    ));
    all.extend(Source::ALL.map(|(source, name, about)| {
        let run = move |params: &Params| bill::run(source, params);
        helped(source.is_helped(), bench(name, about, run))
    }));
    all.extend(Ask::ALL.map(|(ask, name, about)| {
        let run = move |params: &Params| pool::bill(ask, params);
        helped(ask == Ask::Sparse, bench(name, about, run))
    }));
    all.extend(regions().into_iter().map(one));
    all
}

/// A contestant that needs two CPUs where a helper works beside it.
fn helped(is_helped: bool, contestant: Box<dyn Contestant>) -> Box<dyn Contestant> {
    needing(if is_helped { two_cpus } else { nothing }, contestant)
}

/// The ways to get a block, that of 2003 first.
fn blocks() -> [(&'static str, &'static str, Needs, Run); 11] {
    [
        (
            "mmap",
            "mmap, touch each page, munmap: the loop of Zerofilling part IV (Nat! 2003)",
            nothing,
            |p| cycle::run(|n| ways::mapped(n, MapFlags::empty()), p),
        ),
        (
            "mmap-populate",
            "mmap with MAP_POPULATE, touch, munmap: what was proposed in 2003 for small allocations",
            nothing,
            |p| cycle::run(|n| ways::mapped(n, MapFlags::POPULATE), p),
        ),
        (
            "dontneed",
            "touch, then MADV_DONTNEED, and use the same addresses again: no new mapping",
            nothing,
            |p| cycle::run(|n| ways::advised(n, false, Advice::LinuxDontNeed), p),
        ),
        (
            "dontneed-populate",
            "MADV_POPULATE_WRITE, touch, MADV_DONTNEED on one mapping",
            populating,
            |p| cycle::run(|n| ways::advised(n, true, Advice::LinuxDontNeed), p),
        ),
        (
            "madv-free",
            "touch, then MADV_FREE, and use again: not zeroed unless the kernel took the page",
            || advice(Advice::LinuxFree, "MADV_FREE needs Linux 4.5 or newer"),
            |p| cycle::run(|n| ways::advised(n, false, Advice::LinuxFree), p),
        ),
        (
            "memfd",
            "shared mmap of a memfd, touch, munmap, punch the pages out of the file",
            memory_files,
            |p| cycle::run(ways::memfd, p),
        ),
        (
            "mthp",
            "mmap of whole smaller huge pages (nearest to 64 KiB that is switched on), touch the wanted pages, munmap",
            small_huge_pages,
            |p| cycle::run(|n| ways::huge(n, HugePages::here().small()), p),
        ),
        (
            "thp",
            "mmap of whole transparent huge pages (2 MiB on x86-64), touch the wanted pages, munmap: the first touch zeroes \
             the whole huge page",
            huge_pages,
            |p| cycle::run(|n| ways::huge(n, HugePages::here().large()), p),
        ),
        (
            "pool-zeroed",
            "PagePool: get_zeroed, touch, put back by drop",
            nothing,
            |p| cycle::run(pool::blocks::<true>, p),
        ),
        (
            "pool-dirty",
            "PagePool: get (contents stay), touch, put back by drop",
            nothing,
            |p| cycle::run(pool::blocks::<false>, p),
        ),
        (
            "mmap-placed",
            "mmap, touch, munmap at an address that needs 0, 1 or 2 new page tables",
            nothing,
            placed::run,
        ),
    ]
}

/// The steps of a fault.
fn kernel_steps() -> [(&'static str, &'static str, Needs, Run); 7] {
    [
        (
            "step-write-fault",
            "first write to anonymous memory: trap, page, charge, zeroing, mapping",
            nothing,
            |p| steps::run(|n| steps::fault(n, Area::touch), p),
        ),
        (
            "step-read-fault",
            "first read of anonymous memory: trap, mapping of the shared zero page",
            nothing,
            |p| steps::run(|n| steps::fault(n, Area::read), p),
        ),
        (
            "step-zeroing",
            "the kernel's zeroing: write to a memory file's new page less to a zeroed one",
            memory_files,
            steps::zeroing,
        ),
        (
            "step-shared-around",
            "read of a memory file's present pages: one fault maps up to 64 KiB",
            memory_files,
            |p| steps::run(steps::around, p),
        ),
        (
            "step-uffd-zeropage",
            "UFFDIO_ZEROPAGE on a batch: page table entries, no trap, no page",
            || user_fault::available(0),
            |p| steps::run(user_fault::install_zero, p),
        ),
        (
            "step-uffd-move",
            "UFFDIO_MOVE of a batch: entries for pages that exist, no trap",
            || user_fault::available(user_fault::FEATURE_MOVE),
            |p| steps::run(user_fault::move_pages, p),
        ),
        (
            "step-syscall",
            "getppid: entering and leaving the kernel, nothing else",
            nothing,
            |p| steps::run(steps::null_call, p),
        ),
    ]
}

/// The ways to get a large region, plain first.
fn regions() -> [(&'static str, &'static str, Needs, Run); 8] {
    [
        (
            "region-touch",
            "mmap and touch in pages of the smallest size",
            region::room,
            |p| region::run(|bytes| region::mapped(Area::small_pages(bytes), false), p),
        ),
        (
            "region-default",
            "mmap and touch with the machine's own default page sizes",
            region::room,
            |p| {
                region::run(
                    |bytes| region::mapped(Area::map(bytes, MapFlags::empty()), false),
                    p,
                )
            },
        ),
        (
            "region-populate",
            "MADV_POPULATE_WRITE of the whole region in pages of the smallest size, then touch",
            || region::room().and_then(|()| populating()),
            |p| region::run(|bytes| region::mapped(Area::small_pages(bytes), true), p),
        ),
        (
            "region-mthp",
            "the region in huge pages of one size below the largest, by touch",
            || region::room().and_then(|()| small_huge_pages()),
            region::small_huge,
        ),
        (
            "region-thp",
            "mmap, MADV_HUGEPAGE, touch: transparent huge pages of the largest size",
            || region::room().and_then(|()| huge_pages()),
            |p| region::run(|bytes| region::mapped(region::huge_area(bytes), false), p),
        ),
        (
            "region-thp-populate",
            "mmap, MADV_HUGEPAGE, MADV_POPULATE_WRITE, touch",
            || {
                region::room()
                    .and_then(|()| huge_pages())
                    .and_then(|()| populating())
            },
            |p| region::run(|bytes| region::mapped(region::huge_area(bytes), true), p),
        ),
        (
            "region-pool",
            "every page of the region from a fresh PagePool with huge pages allowed and clusters of 512 pages",
            // Either size will do; the sentence about the largest is the one to give.
            || {
                let either = |why| small_huge_pages().map_err(|_| why);
                region::room().and_then(|()| huge_pages().or_else(either))
            },
            |p| region::run(|bytes| pool::region(bytes, true), p),
        ),
        (
            "region-pool-small",
            "every page of the region from a fresh PagePool with its defaults",
            region::room,
            |p| region::run(|bytes| pool::region(bytes, false), p),
        ),
    ]
}

fn nothing() -> Result<(), String> {
    Ok(())
}

fn two_cpus() -> Result<(), String> {
    pin::two_cpus().map(drop)
}

fn huge_pages() -> Result<(), String> {
    HugePages::here().large().map(drop)
}

fn small_huge_pages() -> Result<(), String> {
    HugePages::here().small().map(drop)
}

fn memory_files() -> Result<(), String> {
    let shared = steps::Shared::open(1).and_then(|shared| shared.renew());
    shared.map_err(|e| format!("memory files do not work here: {e}"))
}

fn populating() -> Result<(), String> {
    advice(
        Advice::LinuxPopulateWrite,
        "MADV_POPULATE_WRITE needs Linux 5.14 or newer",
    )
}

fn advice(advice: Advice, why: &str) -> Result<(), String> {
    let area = Area::small_pages(area::page_size()).map_err(|e| e.to_string())?;
    area.advise(advice).map_err(|_| why.to_owned())
}
