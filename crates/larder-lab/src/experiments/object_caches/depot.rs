//! What it costs to exchange magazines with the depot, with more threads than CPUs: does one that lost its CPU hold up the others?
//!
//! Each thread takes more blocks than the magazines of a CPU or of a heap hold, and gives them back. So it comes to the depot a
//! few times in each burst, and the kernel takes its CPU away there as often as anywhere. Behind a lock the others would go to sleep,
//! which is counted; or wait in a loop, which is CPU time.

use std::time::Duration;

use crate::frame::words::{ratio, short};
use crate::measure::{Plan, RunView};
use crate::model::{Block, Cell, Finding, Measures, Params, Section, Table, Value};

use super::his_loop::{self, Loop};
use super::plan::{OURS, PEERS, group};
use crate::contestants::heaps::{Heap, Heaps};

/// Name of the group.
pub(super) const DEPOT: &str = "depot";

/// Blocks of a burst: a magazine has at most 255.
const BURST: usize = 1024;

/// Two threads are what the CPUs of a small machine carry.
const THREADS: [i64; 4] = [1, 2, 8, 64];

const CPU: &str = "cpu_ns_per_cycle";
const SLEEPS: &str = "sleeps_per_million";

fn cell(contestant: &str, threads: i64, quick: bool) -> Cell {
    let blocks = if quick { 500_000 } else { 20_000_000 };
    let params = Params::new()
        .with_text("shape", "depot")
        .with("threads", threads)
        .with("turns", blocks / BURST as i64 / threads)
        .with("bytes", 64)
        .with_text("cpus", "any");
    Cell::new(contestant, params)
}

/// Adds the group. `names` are the contestants that this build has.
pub(super) fn add(plan: &mut Plan, quick: bool, names: &[&str]) {
    let cells = OURS
        .into_iter()
        .chain(PEERS)
        .filter(|name| names.contains(name))
        .flat_map(|name| THREADS.map(|threads| cell(name, threads, quick)))
        .collect();
    plan.groups.push(group(
        DEPOT,
        cell("malloc", 1, quick),
        CPU,
        cells,
        if quick { (6, 6) } else { (15, 33) },
        Duration::from_secs_f64(if quick { 0.4 } else { 8.0 }),
    ));
}

/// A burst is taken and given back, `bursts` times; each block is written once. False when there is no memory.
#[inline(never)]
fn bursts<H: Heap>(heap: &mut H, bursts: u64, bytes: usize) -> bool {
    let mut blocks = [None; BURST];
    for _ in 0..bursts {
        for place in &mut blocks {
            *place = heap.alloc(bytes);
            // SAFETY: the block is ours until it is freed, and no smaller than an int.
            place.map(|block| unsafe { block.as_ptr().cast::<u32>().write_volatile(1) });
        }
        let mut whole = true;
        for place in &mut blocks {
            match place.take() {
                // SAFETY: it was allocated above, with this size, and is freed once.
                Some(block) => unsafe { heap.free(block, bytes) },
                None => whole = false,
            }
        }
        if !whole {
            return false;
        }
    }
    true
}

/// One run: `threads` threads, each with `turns` bursts of blocks of `bytes` bytes.
///
/// # Errors
/// As his loop.
pub(super) fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let work = Loop {
        blocks: BURST as u64,
        work: bursts,
    };
    his_loop::timed(heaps, params, work)
}

fn find<'a>(view: &RunView<'a>, contestant: &str, threads: i64) -> Option<&'a Cell> {
    view.cells(DEPOT).into_iter().find(|cell| {
        cell.contestant == contestant
            && !cell.twin
            && cell.params.int("threads").is_ok_and(|n| n == threads)
    })
}

fn measured<'a>(view: &RunView<'a>, contestant: &str) -> Option<[&'a Cell; 2]> {
    let [.., two, _, most] = THREADS;
    Some([find(view, contestant, two)?, find(view, contestant, most)?])
}

/// What 64 threads cost where two did, and how often they sleep.
pub(super) fn findings(view: &RunView<'_>) -> Option<Finding> {
    let all: Vec<String> = OURS
        .into_iter()
        .chain(PEERS)
        .filter_map(|name| {
            let [two, most] = measured(view, name)?;
            let dearer = view.ratio(DEPOT, most, two, CPU)?;
            let sleeps = view.middle(DEPOT, most, SLEEPS)?;
            Some(format!(
                "{name} {} of the CPU time and {} sleeps in a million blocks",
                ratio(&dearer),
                short(sleeps)
            ))
        })
        .collect();
    (!all.is_empty()).then(|| Finding {
        question: "Does a thread that lost its CPU hold up the others at the depot?".to_owned(),
        asked_by: "larder".to_owned(),
        answer: format!("64 threads against two: {}.", all.join("; ")),
        verdict: None,
        ..Finding::default()
    })
}

/// CPU time and sleeps by threads.
pub(super) fn section(view: &RunView<'_>) -> Option<Section> {
    let row = |name: &str| {
        let cells = THREADS.map(|threads| find(view, name, threads));
        let mut row = vec![Value::Text(name.to_owned())];
        for (metric, unit) in [(CPU, "ns"), (SLEEPS, "")] {
            row.extend(cells.map(|cell| {
                cell.and_then(|cell| view.middle(DEPOT, cell, metric))
                    .map_or(Value::Empty, |value| Value::Number(value, unit.to_owned()))
            }));
        }
        cells.iter().any(Option::is_some).then_some(row)
    };
    let rows: Vec<_> = OURS.into_iter().chain(PEERS).filter_map(row).collect();
    let columns = std::iter::once("allocator".to_owned())
        .chain(THREADS.map(|n| format!("{n} threads, CPU time")))
        .chain(THREADS.map(|n| format!("{n} threads, sleeps per million")))
        .collect();
    (!rows.is_empty()).then(|| Section {
        title: "The depot".to_owned(),
        blocks: vec![Block::Table(Table {
            title: format!("{BURST} blocks of 64 bytes taken, then freed: for each block"),
            columns,
            long: false,
            rows,
            notes: Vec::new(),
        })],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::heaps::{Broken, SystemMalloc};

    #[test]
    fn a_burst_takes_its_blocks_and_gives_each_back() {
        let counting = Broken::new(SystemMalloc, 0);
        let params = cell("malloc", 2, true).params.with("turns", 3);
        let measures = run(&counting, &params).expect("runs");
        // The first burst, the turns, the check.
        assert_eq!(counting.calls(), 2 * (4 * BURST as u64 + 500));
        assert_eq!(counting.out(), 0);
        assert!(measures.get(CPU).is_some_and(|ns| ns > 0.0 && ns < 1e5));
    }
}
