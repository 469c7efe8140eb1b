//! Many threads, each with pages of its own.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::contestants::supply::Supply;
use crate::contestants::timing::{ns_per_op, process_cpu_ns, resident_bytes};
use crate::model::{Measures, Params};

use super::loops;

/// Pairs between two looks at the flag that ends the run.
const BLOCK: u64 = 512;
/// Pairs of a thread before the clock starts: the supplier's first work for it is not what is compared.
const WARM: u64 = 50_000;

/// `threads` threads make as many pairs as they can in `milliseconds`: get, write 8 bytes, put.
///
/// The time is given and not the pairs, because starting and ending the threads costs every supplier the same time: of
/// a count of pairs it would take the larger share from the faster one.
///
/// Memory is read while all threads are alive and own no page, and compared with the moment before their
/// first get: what stays is what the supplier keeps for them. The threads' stacks are there at both moments.
///
/// # Errors
/// Missing factors, threads that cannot be started, and a supplier without pages.
pub(super) fn run<S: Supply>(supply: &S, params: &Params) -> anyhow::Result<Measures> {
    let threads = params.count("threads")?;
    let time = Duration::from_millis(params.count("milliseconds")? as u64);
    ensure!(
        threads > 0 && !time.is_zero(),
        "{} ms of {threads} threads were asked for; both must be at least 1",
        time.as_millis()
    );
    // The main thread stands at each gate too.
    let gates = [(); 5].map(|()| Barrier::new(threads + 1));
    let [parked, warm, ready, done, leave] = &gates;
    // No barrier here: the threads that it releases would keep the CPUs from the threads that still wait for its lock, for seconds.
    let (go, stop) = (&AtomicBool::new(false), &AtomicBool::new(false));
    let worker = || -> anyhow::Result<Option<u64>> {
        let local = supply.local();
        parked.wait();
        warm.wait();
        let outcome = local.map(|mut local| {
            let ok = loops::pair(&mut local, WARM);
            (local, ok)
        });
        ready.wait();
        while !go.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let outcome = outcome.map(|(mut local, mut ok)| {
            let mut pairs = 0;
            // Once also when the time is over: on a busy machine no thread may have had a CPU.
            while ok {
                ok = loops::pair(&mut local, BLOCK);
                pairs += BLOCK;
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            (local, ok.then_some(pairs))
        });
        done.wait();
        leave.wait();
        // The thread's supplier lives until memory was read.
        outcome.map(|(_local, pairs)| pairs)
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        parked.wait();
        let before = resident_bytes();
        warm.wait();
        ready.wait();
        let cpu = process_cpu_ns();
        let start = Instant::now();
        go.store(true, Ordering::Release);
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let wall = start.elapsed().as_secs_f64();
        done.wait();
        let cpu = process_cpu_ns() - cpu;
        let held = resident_bytes().saturating_sub(before);
        leave.wait();
        let mut pairs = 0;
        for handle in handles {
            let made = handle
                .join()
                .map_err(|_| anyhow::anyhow!("a thread panicked"))??;
            pairs += made
                .with_context(|| format!("the supplier ran out of pages with {threads} threads"))?;
        }
        Ok(Measures::new()
            .with("mops_per_s", pairs as f64 / wall.max(1e-9) / 1e6)
            .with("ns_per_page", ns_per_op(cpu, pairs))
            .with("held_bytes", held as f64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::supply::{ArrayStacks, SystemMalloc};

    #[test]
    fn any_number_of_threads_is_timed() {
        for threads in [1, 3, 64] {
            let params = Params::new()
                .with("threads", threads)
                .with("milliseconds", 5);
            let measures = run(&SystemMalloc::default(), &params).expect("runs");
            assert!(measures.get("mops_per_s").expect("timed") > 0.0);
        }
    }

    #[test]
    fn a_dry_supplier_ends_the_run_and_does_not_hang_it() {
        let params = Params::new().with("threads", 4).with("milliseconds", 5);
        assert!(run(&ArrayStacks { pages: 0 }, &params).is_err());
        assert!(run(&SystemMalloc::default(), &params.with("threads", 0)).is_err());
    }
}
