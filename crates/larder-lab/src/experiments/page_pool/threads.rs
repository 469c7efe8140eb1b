//! Many threads, each with pages of its own.

use std::sync::Barrier;
use std::time::Instant;

use anyhow::ensure;

use crate::contestants::supply::Supply;
use crate::contestants::timing::{ns_per_op, process_cpu_ns, resident_bytes};
use crate::model::{Measures, Params};

use super::loops;
use super::shapes::WARM_SHARE;

/// `threads` threads make `pages` pairs together, each its share: get, write 8 bytes, put.
///
/// Memory is read while all threads are alive and have no page in hand, and compared with the moment before their
/// first get: what stays is what the supplier keeps for them. The threads' stacks are there at both moments.
///
/// # Errors
/// Missing factors, threads that cannot be started, and a supplier without pages.
pub(super) fn run<S: Supply>(supply: &S, params: &Params) -> anyhow::Result<Measures> {
    let threads = params.count("threads")?;
    let total = params.count("pages")? as u64;
    ensure!(
        threads > 0 && total > 0,
        "{total} pages by {threads} threads were asked for; both must be at least 1"
    );
    let share = total.div_ceil(threads as u64);
    // The main thread stands at each gate too.
    let gates = [(); 6].map(|()| Barrier::new(threads + 1));
    let [parked, warm, ready, go, done, leave] = &gates;
    let worker = || -> anyhow::Result<bool> {
        let local = supply.local();
        parked.wait();
        warm.wait();
        // Warm-up: the supplier's first work for a thread is not what is compared.
        let outcome = local.map(|mut local| {
            let ok = loops::pair(&mut local, share.div_ceil(WARM_SHARE));
            (local, ok)
        });
        ready.wait();
        go.wait();
        let outcome = outcome.map(|(mut local, ok)| {
            let ok = ok & loops::pair(&mut local, share);
            (local, ok)
        });
        done.wait();
        leave.wait();
        // The thread's supplier lives until memory was read.
        outcome.map(|(_local, ok)| ok)
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        parked.wait();
        let before = resident_bytes();
        warm.wait();
        ready.wait();
        let cpu = process_cpu_ns();
        let start = Instant::now();
        go.wait();
        done.wait();
        let wall = start.elapsed().as_secs_f64();
        let cpu = process_cpu_ns() - cpu;
        let held = resident_bytes().saturating_sub(before);
        leave.wait();
        for handle in handles {
            let ok = handle
                .join()
                .map_err(|_| anyhow::anyhow!("a thread panicked"))??;
            ensure!(ok, "the supplier ran out of pages with {threads} threads");
        }
        let pairs = share * threads as u64;
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
    fn every_thread_does_its_share() {
        for threads in [1, 3, 64] {
            let params = Params::new().with("threads", threads).with("pages", 6400);
            let measures = run(&SystemMalloc::new(), &params).expect("runs");
            assert!(measures.get("mops_per_s").expect("timed") > 0.0);
        }
    }

    #[test]
    fn a_dry_supplier_ends_the_run_and_does_not_hang_it() {
        let params = Params::new().with("threads", 4).with("pages", 400);
        assert!(run(&ArrayStacks { pages: 0 }, &params).is_err());
        assert!(run(&SystemMalloc::new(), &params.with("threads", 0)).is_err());
    }
}
