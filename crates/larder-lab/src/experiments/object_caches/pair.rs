//! One thread, one size: what a block costs, there and back.

use anyhow::ensure;

use super::his_loop::cycles;
use crate::contestants::heaps::Heaps;
use crate::contestants::timing::{ns_per_op, resident_bytes, thread_cpu_ns};
use crate::model::{Measures, Params};

/// The share of the turns that is made before the clock starts.
const WARM_SHARE: u64 = 8;

/// `turns` times: alloc, write one int, free. CPU time of the thread.
///
/// # Errors
/// Missing factors and no memory.
pub(super) fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let turns = params.count("turns")? as u64;
    let bytes = params.count("bytes")?;
    ensure!(
        turns > 0 && bytes >= 4,
        "{turns} turns of {bytes} bytes were asked for; at least 1 turn and 4 bytes can be done"
    );
    let before = resident_bytes();
    let mut heap = heaps.local()?;
    let warm = cycles(&mut heap, turns / WARM_SHARE + 1, bytes);
    let start = thread_cpu_ns();
    let ok = cycles(&mut heap, turns, bytes);
    let spent = thread_cpu_ns() - start;
    ensure!(warm && ok, "no memory for a block of {bytes} bytes");
    drop(heap);
    let measures = Measures::new()
        .with("ns_per_pair", ns_per_op(spent, turns))
        .with("held_bytes", resident_bytes().saturating_sub(before) as f64);
    Ok(match heaps.path_taken()? {
        Some(share) => measures.with("path_share", share),
        None => measures,
    })
}
