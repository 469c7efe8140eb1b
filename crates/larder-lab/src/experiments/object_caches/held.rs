//! How much memory of a burst is back with the system ten intervals later, with calls meanwhile and without.

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::contestants::heaps::{Heap, Heaps};
use crate::contestants::timing::{resident_bytes, touch};
use crate::model::{Measures, Params};

/// Intervals between the burst and the look.
pub(super) const INTERVALS: u32 = 10;

/// Calls are made this many times in an interval.
const CALLS: u32 = 20;

/// Sizes of the burst, in turns.
const BYTES: [usize; 6] = [32, 64, 160, 512, 1024, 4096];

/// Blocks of each time that calls are made.
const FEW: usize = 300;

/// The interval that the factors name.
///
/// # Errors
/// It is missing.
pub(super) fn interval(params: &Params) -> anyhow::Result<Duration> {
    Ok(Duration::from_millis(params.count("interval_ms")? as u64))
}

/// Takes blocks of `mb` MiB, frees them all, waits ten intervals and looks at what is resident. With `calls` the waiting
/// thread takes and frees some small blocks now and then.
///
/// # Errors
/// Missing factors and no memory.
pub(super) fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let bytes = params.count("mb")? << 20;
    let interval = interval(params)?;
    let calls = params.text("calls")? == "yes";
    ensure!(
        bytes > 0 && !interval.is_zero(),
        "a burst of no bytes or intervals of no time were asked for"
    );
    let mut heap = heaps.local()?;
    let count = bytes / (BYTES.iter().sum::<usize>() / BYTES.len());
    // Written once, so that it is not the burst's.
    let mut blocks: Vec<NonNull<u8>> = vec![NonNull::dangling(); count];
    let before = resident_bytes();
    for (i, block) in blocks.iter_mut().enumerate() {
        let size = BYTES[i % BYTES.len()];
        let Some(fresh) = heap.alloc(size) else {
            anyhow::bail!("no memory for block {i} of {count}");
        };
        // SAFETY: ours, at least 32 bytes.
        unsafe { touch(fresh.as_ptr(), i as u64) };
        *block = fresh;
    }
    let peak = resident_bytes();
    // Not in the order in which they were taken. 7919 is prime, and no count is a multiple of it.
    let stride = if count.is_multiple_of(7919) { 1 } else { 7919 };
    for turn in 0..count {
        let i = turn * stride % count;
        // SAFETY: each once, since the stride and the count have no divisor in common; taken above with this size.
        unsafe { heap.free(blocks[i], BYTES[i % BYTES.len()]) };
    }
    let freed = resident_bytes();
    let begin = Instant::now();
    while let Some(left) = (interval * INTERVALS).checked_sub(begin.elapsed()) {
        if !calls {
            std::thread::sleep(left);
            continue;
        }
        for block in &mut blocks[..FEW.min(count)] {
            let Some(fresh) = heap.alloc(64) else {
                anyhow::bail!("no memory for a small block");
            };
            *block = fresh;
        }
        for block in &blocks[..FEW.min(count)] {
            // SAFETY: taken above, freed once.
            unsafe { heap.free(*block, 64) };
        }
        std::thread::sleep(left.min(interval / CALLS));
    }
    let held = resident_bytes();
    let grown = peak.saturating_sub(before).max(1) as f64;
    let back = |now: u64| peak.saturating_sub(now) as f64 / grown;
    Ok(Measures::new()
        .with("returned_share", back(held).max(1e-6))
        .with("returned_at_once", back(freed).max(1e-6))
        .with("held_bytes", held.saturating_sub(before) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::heaps::{Broken, LarderHeaps, SystemMalloc};

    fn params(calls: &str) -> Params {
        Params::new()
            .with("mb", 1)
            .with("interval_ms", 2)
            .with_text("calls", calls)
    }

    #[test]
    fn every_block_comes_back() {
        for calls in ["no", "yes"] {
            let counting = Broken::new(SystemMalloc, 0);
            let measures = run(&counting, &params(calls)).expect("runs");
            assert_eq!(counting.out(), 0);
            assert!(counting.calls() >= 1000);
            let share = measures.get("returned_share").expect("told");
            assert!(share > 0.0 && share.is_finite(), "{share}");
        }
        let with_thread = LarderHeaps::every(Duration::from_millis(2), true).expect("classes");
        run(&with_thread, &params("no")).expect("runs");
    }

    #[test]
    fn nothing_is_no_burst() {
        assert!(run(&SystemMalloc, &params("no").with("mb", 0)).is_err());
        assert!(run(&SystemMalloc, &params("no").with("interval_ms", 0)).is_err());
    }
}
