//! The life of a cluster in three parts, each timed: get, touch, give back.

use std::ptr::NonNull;
use std::time::Instant;

use anyhow::Context;

use larder::pages::{ClusterSize, PagePool};

use crate::contestants::supply::{Mapper, page_size};
use crate::contestants::timing::{ns_per_op, thread_cpu_ns, thread_usage};
use crate::model::{Measures, Params};

/// How the pages of a cluster come from the kernel and go back to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// They go back in one call per page, in the order in which they were handed out.
    ByPage,
    /// They go back in one call per cluster.
    Whole,
    /// As [`Whole`](Self::Whole), and the call that maps makes them present.
    Populated,
}

/// The factors: pages of a cluster or of a call, and how many pages or calls in all.
fn factors(params: &Params) -> anyhow::Result<(usize, usize)> {
    let (pages, total) = (params.count("pages")?, params.count("total")?);
    anyhow::ensure!(
        pages > 0 && total > 0,
        "{total} in all of {pages} pages were asked for; both must be at least 1"
    );
    Ok((pages, total))
}

/// Pages that are alive together, at least: enough that reading a clock three times per batch costs nothing, and
/// about as many as Walfield's loop holds.
const BATCH: usize = 128;

/// Maps clusters of `pages` pages, hands their pages out, touches them and gives them back, until `total` pages have
/// lived. A batch is whole clusters of together at least 128 pages.
///
/// The clock is the thread's CPU time; a read of it is a system call of some 200 ns, which a batch shares.
///
/// # Errors
/// Missing factors, and a mapping that the kernel refuses.
pub(super) fn run(life: Life, params: &Params) -> anyhow::Result<Measures> {
    let (pages, total) = factors(params)?;
    let page = page_size();
    let mapper = Mapper::new();
    let clusters = BATCH.div_ceil(pages);
    let mut bases: Vec<NonNull<u8>> = Vec::with_capacity(clusters);
    let mut out: Vec<NonNull<u8>> = Vec::with_capacity(clusters * pages);
    // The vector's own pages must not fault inside the timed part.
    out.resize(clusters * pages, NonNull::dangling());
    out.clear();
    let (mut get_ns, mut touch_ns, mut give_ns, mut done) = (0u64, 0u64, 0u64, 0usize);
    let faults = thread_usage().minor_faults;
    while done < total {
        let start = thread_cpu_ns();
        for _ in 0..clusters {
            let base = mapper
                .map(page * pages, life == Life::Populated)
                .with_context(|| {
                    format!(
                        "no mapping of {pages} pages: {}",
                        std::io::Error::last_os_error()
                    )
                })?;
            bases.push(base);
            for i in 0..pages {
                // SAFETY: page `i` of the cluster.
                out.push(unsafe { base.add(i * page) });
            }
        }
        let got = thread_cpu_ns();
        for at in &out {
            // SAFETY: a page of a cluster that is mapped.
            unsafe { at.as_ptr().write_bytes(1, page) };
        }
        let touched = thread_cpu_ns();
        // SAFETY: mapped above and not used afterwards.
        let give = |at: &NonNull<u8>, bytes| unsafe { mapper.unmap(*at, bytes) };
        let gone = match life {
            Life::ByPage => out.iter().all(|at| give(at, page)),
            Life::Whole | Life::Populated => bases.iter().all(|base| give(base, page * pages)),
        };
        let given = thread_cpu_ns();
        get_ns += got.saturating_sub(start);
        touch_ns += touched.saturating_sub(got);
        give_ns += given.saturating_sub(touched);
        done += out.len();
        bases.clear();
        out.clear();
        anyhow::ensure!(
            gone,
            "munmap was refused: {}",
            std::io::Error::last_os_error()
        );
    }
    let faults = thread_usage().minor_faults - faults;
    let per_page = |ns: u64| ns as f64 / done as f64;
    Ok(Measures::new()
        .with("get_ns", per_page(get_ns))
        .with("touch_ns", per_page(touch_ns))
        .with("give_back_ns", per_page(give_ns))
        .with("ns_per_page", per_page(get_ns + touch_ns + give_ns))
        .with("faults_per_page", faults as f64 / done as f64)
        .with("calls_per_page", mapper.calls() as f64 / done as f64))
}

/// Times `MADV_DONTNEED` of `pages` present pages in one call, `total` times; the touch between the calls is not
/// timed. A single call is too short for the CPU clock, so this is wall time, and the median of the calls.
///
/// # Errors
/// Missing factors, and a call that the kernel refuses.
pub(super) fn release(params: &Params) -> anyhow::Result<Measures> {
    let (pages, calls) = factors(params)?;
    let page = page_size();
    let mapper = Mapper::new();
    let base = mapper
        .map(page * pages, false)
        .with_context(|| format!("no mapping of {pages} pages"))?;
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        for i in 0..pages {
            // SAFETY: page `i` of the region.
            unsafe { base.add(i * page).as_ptr().write_bytes(1, page) };
        }
        let start = Instant::now();
        // SAFETY: the region is ours and its contents are not needed.
        let ok = unsafe { mapper.forget(base, page * pages) };
        times.push(start.elapsed().as_nanos());
        anyhow::ensure!(
            ok,
            "MADV_DONTNEED of {pages} pages was refused: {}",
            std::io::Error::last_os_error()
        );
    }
    // SAFETY: ours and not used afterwards.
    unsafe { mapper.unmap(base, page * pages) };
    // The median of the calls: one interrupt in a thousand calls must not move the step that is looked for.
    times.sort_unstable();
    let call = times[times.len() / 2] as f64;
    Ok(Measures::new()
        .with("call_ns", call)
        .with("ns_per_page", call / pages as f64))
}

/// Pages that are in use at once where a pool grows: more than caches hold.
const GROWN: usize = 4096;

/// A page pool that grows: takes 4096 pages and fills each as it comes, puts all back and returns them to the kernel, until
/// `total` pages have lived. Where a pool does not grow the size of its clusters says nothing.
///
/// # Errors
/// Missing factors, and a pool that has no page.
pub(super) fn growth(params: &Params) -> anyhow::Result<Measures> {
    let (pages, total) = factors(params)?;
    let pool = PagePool::builder()
        .ignore_environment()
        .cluster(ClusterSize::pages(pages)?)
        .build()?;
    let mut out: Vec<NonNull<u8>> = vec![NonNull::dangling(); GROWN];
    let turns = total.div_ceil(GROWN);
    let page = page_size();
    let start = thread_cpu_ns();
    for _ in 0..turns {
        for at in &mut out {
            *at = pool.get_raw()?;
            // SAFETY: a page of the pool, until it is put back.
            unsafe { at.as_ptr().write_bytes(1, page) };
        }
        for at in &out {
            // SAFETY: taken above and not used afterwards.
            unsafe { pool.put_raw(*at) };
        }
        pool.trim();
    }
    let spent = thread_cpu_ns() - start;
    let taken = (turns * GROWN) as u64;
    Ok(Measures::new()
        .with("ns_per_page", ns_per_op(spent, taken))
        .with(
            "calls_per_page",
            ns_per_op(pool.stats().system_calls(), taken),
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(pages: i64, total: i64) -> Params {
        Params::new().with("pages", pages).with("total", total)
    }

    #[test]
    fn the_parts_add_up_and_the_counts_are_those_of_the_calls() {
        let by_page = run(Life::ByPage, &factors(16, 256)).expect("runs");
        assert_eq!(by_page.get("calls_per_page"), Some(1.0 + 1.0 / 16.0));
        let sum = ["get_ns", "touch_ns", "give_back_ns"]
            .iter()
            .map(|name| by_page.get(name).expect("reported"))
            .sum::<f64>();
        assert!((sum - by_page.get("ns_per_page").expect("reported")).abs() < 1e-6 * sum);
        let whole = run(Life::Whole, &factors(16, 256)).expect("runs");
        assert_eq!(whole.get("calls_per_page"), Some(2.0 / 16.0));
    }

    #[test]
    fn a_page_is_made_present_at_most_once() {
        // The kernel counts the pages of a populate call as faults too; large folios may make several pages
        // present in one fault.
        for life in [Life::Whole, Life::Populated] {
            let measures = run(life, &factors(64, 512)).expect("runs");
            let faults = measures.get("faults_per_page").expect("reported");
            assert!(faults > 0.0 && faults < 1.2, "{faults}");
        }
    }

    #[test]
    fn a_pool_that_grows_takes_each_page_from_the_kernel() {
        let measures = growth(&factors(64, 1)).expect("runs");
        let calls = measures.get("calls_per_page").expect("reported");
        // A call for each cluster on the way in, and few on the way out.
        assert!((1.0 / 64.0..3.0 / 64.0).contains(&calls), "{calls}");
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(growth(&factors(0, 1)).is_err());
        assert!(run(Life::ByPage, &factors(0, 1)).is_err());
        assert!(release(&factors(1, 0)).is_err());
        assert!(release(&factors(34, 3)).is_ok());
    }
}
