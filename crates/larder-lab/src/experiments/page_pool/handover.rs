//! Pages that one thread takes and another puts back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::ensure;

use crate::contestants::supply::{Supplier, Supply};
use crate::contestants::timing::{
    Stopwatch, ns_per_op, peek, resident_bytes, resident_bytes_roughly, touch,
};
use crate::model::{Measures, Params};
use crate::stats::defaults::LEVEL;
use crate::stats::fit::least_squares;

use super::ring::Ring;

/// How often memory is looked at in a run that is limited by pages.
const LOOKS: u64 = 16;

/// How long a run goes on.
#[derive(Debug, Clone, Copy)]
enum Until {
    Pages(u64),
    Seconds(f64),
}

/// The producer takes pages and writes 8 bytes into each; the consumer reads them and puts the page back. The factor
/// `pages` or `seconds` says for how long.
///
/// Memory is read while the run goes on. `growth_bytes_per_s` is the least-squares slope after the first fifth of
/// the time, `growth_bytes` what was gained in it; for a supplier that keeps what it has both are zero.
/// `before` is resident memory before the supply was made, in bytes.
///
/// # Errors
/// Missing factors, a supplier without pages, and pages that do not arrive as they were written.
pub(super) fn run<S: Supply>(supply: &S, before: u64, params: &Params) -> anyhow::Result<Measures> {
    let until = match params.count("seconds") {
        Ok(seconds) => Until::Seconds(seconds as f64),
        Err(_) => Until::Pages(params.count("pages")? as u64),
    };
    let ring = Ring::new();
    let closed = AtomicBool::new(false);
    let sum = AtomicU64::new(0);
    let mut looks = Vec::with_capacity(1024);
    let watch = Stopwatch::start();
    let sent = std::thread::scope(|scope| -> anyhow::Result<u64> {
        let consumer = scope.spawn(|| -> anyhow::Result<()> {
            let local = supply.local();
            // Even when there is no supplier the ring is emptied, so that the producer does not wait for ever.
            let (mut local, error) = match local {
                Ok(local) => (Some(local), None),
                Err(error) => (None, Some(error)),
            };
            let mut total = 0u64;
            while let Some(page) = ring.take(|| closed.load(Ordering::Acquire)) {
                // SAFETY: the producer gave the page up by sending it.
                total = total.wrapping_add(unsafe { peek(page.as_ptr()) });
                if let Some(local) = &mut local {
                    // SAFETY: taken by the producer's supplier of the same supply, put back once.
                    unsafe { local.put(page) };
                }
            }
            sum.store(total, Ordering::Release);
            error.map_or(Ok(()), Err)
        });
        let sent = produce(supply, until, &ring, &mut looks);
        closed.store(true, Ordering::Release);
        let ended = consumer
            .join()
            .map_err(|_| anyhow::anyhow!("the consumer panicked"))?;
        ended?;
        sent
    })?;
    let spent = watch.stop();
    let expected = (0..sent).fold(0u64, u64::wrapping_add);
    ensure!(
        sum.load(Ordering::Acquire) == expected,
        "{sent} pages were handed over and what was written did not arrive: a page was lost or used twice"
    );
    let held = resident_bytes().saturating_sub(before);
    Ok(Measures::new()
        .with("ns_per_page", ns_per_op(spent.wall_ns, sent))
        .with("held_bytes", held as f64)
        .with("growth_bytes", gain(&looks))
        .with("growth_bytes_per_s", slope(&looks)))
}

fn produce<S: Supply>(
    supply: &S,
    until: Until,
    ring: &Ring,
    looks: &mut Vec<(f64, f64)>,
) -> anyhow::Result<u64> {
    let mut local = supply.local()?;
    let start = Instant::now();
    let mut sent = 0u64;
    // In a run that is limited by time the clock is read every 64 Ki pages, memory twice a second.
    let (every, apart) = match until {
        Until::Pages(pages) => ((pages / LOOKS).max(1), 0.0),
        Until::Seconds(_) => (1 << 16, 0.5),
    };
    let mut next_look = every;
    loop {
        if matches!(until, Until::Pages(pages) if sent >= pages) {
            return Ok(sent);
        }
        let Some(page) = local.get() else {
            anyhow::bail!("the supplier ran out of pages after {sent}");
        };
        // SAFETY: a page is ours until it is sent.
        unsafe { touch(page.as_ptr(), sent) };
        ring.send(page);
        sent += 1;
        if sent >= next_look {
            next_look += every;
            let now = start.elapsed().as_secs_f64();
            if looks.last().is_none_or(|(at, _)| now - at >= apart) {
                looks.push((now, resident_bytes_roughly() as f64));
            }
            if matches!(until, Until::Seconds(limit) if now >= limit) {
                return Ok(sent);
            }
        }
    }
}

/// The last point less the first after a fifth of the time; 0 when memory shrank.
fn gain(points: &[(f64, f64)]) -> f64 {
    let Some((end, last)) = points.last() else {
        return 0.0;
    };
    points
        .iter()
        .find(|(at, _)| *at >= end / 5.0)
        .map_or(0.0, |(_, first)| (last - first).max(0.0))
}

/// Least-squares slope of the points after the first fifth of the time; 0 when fewer than three are left.
fn slope(points: &[(f64, f64)]) -> f64 {
    let end = points.last().map_or(0.0, |(at, _)| *at);
    let late = points.iter().filter(|(at, _)| *at >= end / 5.0);
    let (rows, bytes): (Vec<Vec<f64>>, Vec<f64>) =
        late.map(|(at, bytes)| (vec![1.0, *at], *bytes)).unzip();
    let fit = least_squares(&rows, &bytes, LEVEL);
    fit.map_or(0.0, |fit| fit.coefficients[1].value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::supply::{SamePages, SystemMalloc};

    #[test]
    fn hands_pages_over_and_reports() {
        let params = Params::new().with("pages", 5000);
        let measures = run(&SystemMalloc::default(), 0, &params).expect("runs");
        assert!(measures.get("ns_per_page").expect("timed") > 0.0);
        assert!(measures.0.values().all(|value| value.is_finite()));
    }

    #[test]
    fn a_page_that_two_sides_use_at_once_is_noticed() {
        // One page for all: what the consumer reads is what the producer wrote last.
        let params = Params::new().with("pages", 20_000);
        let error = run(&SamePages, 0, &params).expect_err("the sum cannot be right");
        assert!(error.to_string().contains("used twice"), "{error}");
    }

    #[test]
    fn the_slope_is_that_of_the_late_points() {
        let steady: Vec<_> = (0..10).map(|i| (f64::from(i), 5.0)).collect();
        assert!(slope(&steady).abs() < 1e-9);
        assert_eq!(gain(&steady), 0.0);
        let growing: Vec<_> = (0..10)
            .map(|i| (f64::from(i), 3.0 * f64::from(i)))
            .collect();
        assert!((slope(&growing) - 3.0).abs() < 1e-9);
        // Growth in the first fifth only is the start, not a leak.
        let start: Vec<_> = (0..10)
            .map(|i| (f64::from(i), if i < 1 { 0.0 } else { 9.0 }))
            .collect();
        assert!(slope(&start).abs() < 1e-9);
        assert_eq!(gain(&start), 0.0);
        assert_eq!(gain(&growing), 21.0);
        assert_eq!(slope(&[]), 0.0);
    }
}
