//! Instructions of one pair, counted by valgrind's callgrind.

use anyhow::{Context, ensure};

use super::plan::group;
use crate::contestants::heaps::{Heap, Heaps};
use crate::contestants::timing::{keep, ns_per_op, thread_cpu_ns};
use crate::frame::words::Bound;
use crate::measure::callgrind::{available, count, per_piece};
use crate::measure::{Plan, RunView};
use crate::model::{Block, Cell, Goal, Measures, Params, Section, Skipped, Table, Value};

/// Name of the group and of its contestant.
pub(super) const INSTRUCTIONS: &str = "instructions";
/// Name of the contestant that is the loop without an allocator.
pub(super) const LOOP: &str = "loop";
/// Bytes of a block. The loops know it when they are compiled, as a program that allocates one type does.
const BYTES: usize = 64;
/// Pairs of the shorter run; the longer one makes twice as many.
const PAIRS: u64 = 100_000;
/// The share of the pairs that is made before the clock starts.
const WARM_SHARE: u64 = 8;

// Otherwise the share of one is off by the remainder.
const _: () = assert!(PAIRS.is_multiple_of(WARM_SHARE));

/// Most instructions of a pair with a handle.
const MOST: f64 = 14.0;

#[inline(never)]
fn pairs<H: Heap>(heap: &mut H, turns: u64) -> bool {
    for _ in 0..turns {
        let Some(block) = heap.alloc(BYTES) else {
            return false;
        };
        keep(block.as_ptr());
        // SAFETY: ours, and not used afterwards.
        unsafe { heap.free(block, BYTES) };
    }
    true
}

#[inline(never)]
fn turns_alone(at: *const u8, turns: u64) {
    for _ in 0..turns {
        keep(at);
    }
}

/// What is counted: a warm-up of an eighth, and as many pairs as are asked for.
///
/// # Errors
/// Missing factors and no memory.
pub(super) fn pairs_of<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let mut heap = heaps.local()?;
    let mut enough = true;
    let ns = timed(params, |turns| enough &= pairs(&mut heap, turns))?;
    ensure!(enough, "no memory for a block of {BYTES} bytes");
    Ok(ns)
}

/// The loop without an allocator.
///
/// # Errors
/// Missing factors.
pub(super) fn nothing_of(params: &Params) -> anyhow::Result<Measures> {
    let block = [0_u8; BYTES];
    timed(params, |turns| turns_alone(block.as_ptr(), turns))
}

fn timed(params: &Params, mut work: impl FnMut(u64)) -> anyhow::Result<Measures> {
    let turns = params.count("turns")? as u64;
    ensure!(turns > 0, "0 turns were asked for; at least 1 can be done");
    work(turns / WARM_SHARE);
    let start = thread_cpu_ns();
    work(turns);
    let spent = thread_cpu_ns() - start;
    Ok(Measures::new().with("ns_per_pair", ns_per_op(spent, turns)))
}

/// Counts the instructions of one pair of the contestant that the factor `allocator` names, the loop included: the difference
/// of two runs of the same program, one with twice as many, so that everything else cancels. The program runs itself under
/// valgrind through its worker subcommand.
///
/// # Errors
/// Valgrind is missing, cannot run this program, or its output has no count.
pub(super) fn run(params: &Params) -> anyhow::Result<Measures> {
    available().map_err(anyhow::Error::msg)?;
    let program = std::env::current_exe().context("the program's own path cannot be found")?;
    let contestant = params.text("allocator")?;
    let counted = |turns: u64| {
        let params = Params::new()
            .with_text("shape", "counted")
            .with("bytes", BYTES as i64)
            .with("turns", i64::try_from(turns)?);
        count(&program, "object-caches", contestant, &params)
    };
    let (short, long) = (counted(PAIRS)?, counted(2 * PAIRS)?);
    let each = per_piece(short, long, PAIRS, WARM_SHARE);
    Ok(Measures::new().with("instructions", each))
}

fn cell(allocator: &str) -> Cell {
    let params = Params::new().with_text("allocator", allocator);
    Cell::new(INSTRUCTIONS, params)
}

/// Adds the group; counting needs one round, since a count does not depend on noise. `names` are the contestants that this
/// build has. Those that need restartable sequences are not among them: valgrind has none.
pub(super) fn add(plan: &mut Plan, quick: bool, names: &[&str]) {
    if let Err(why) = available() {
        plan.skipped.push(Skipped {
            what: INSTRUCTIONS.to_owned(),
            why,
        });
        return;
    }
    let peers = ["malloc", "mimalloc", "jemalloc", "rpmalloc", "snmalloc"];
    let peers = if quick { &[][..] } else { &peers[..] };
    let ours = ["heap", "object-handle", "global"];
    let cells: Vec<Cell> = std::iter::once(&LOOP)
        .chain(&ours)
        .chain(peers)
        .filter(|name| names.contains(name))
        .map(|name| cell(name))
        .collect();
    // The twin of the reference is counted too. Some 0.8 s for each count.
    let guess = std::time::Duration::from_millis(1600 * (cells.len() as u64 + 1));
    plan.groups.push(group(
        INSTRUCTIONS,
        cell(LOOP),
        INSTRUCTIONS,
        cells,
        (1, 1),
        guess,
    ));
}

/// Instructions of an allocator's pair, the loop included.
fn counted(view: &RunView<'_>, allocator: &str) -> Option<f64> {
    let cell = view.cells(INSTRUCTIONS).into_iter().find(|cell| {
        !cell.twin
            && cell
                .params
                .text("allocator")
                .is_ok_and(|name| name == allocator)
    })?;
    view.middle(INSTRUCTIONS, cell, INSTRUCTIONS)
}

/// The table, if anything was counted.
pub(super) fn section(view: &RunView<'_>) -> Option<Section> {
    let alone = counted(view, LOOP);
    let rows: Vec<_> = view
        .cells(INSTRUCTIONS)
        .into_iter()
        .filter(|cell| !cell.twin)
        .filter_map(|cell| {
            let name = cell.params.text("allocator").ok()?;
            let all = view.middle(INSTRUCTIONS, cell, INSTRUCTIONS)?;
            let number = |value| Value::Number(value, String::new());
            Some(vec![
                Value::Text(name.to_owned()),
                number(all),
                alone.map_or(Value::Empty, |alone| number(all - alone)),
            ])
        })
        .collect();
    let table = Table {
        title: format!("Instructions of a block of {BYTES} bytes there and back, by one thread"),
        columns: ["allocator", "with the loop", "without"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        notes: vec![
            "Differences of two runs under callgrind. The size is known when the loop is compiled. Valgrind has no restartable \
             sequences, so what takes them is not here: its instructions are counted in the disassembly, where the library is \
             tested (tests/instructions.rs)."
                .to_owned(),
        ],
        long: false,
    };
    (!table.rows.is_empty()).then(|| Section {
        title: "Instructions".to_owned(),
        blocks: vec![Block::Table(table)],
    })
}

/// What was counted against what a handle's pair may take.
pub(super) fn goals(view: &RunView<'_>) -> Vec<Goal> {
    let Some(alone) = counted(view, LOOP) else {
        return Vec::new();
    };
    ["heap", "object-handle"]
        .into_iter()
        .filter_map(|name| {
            // Start and end of a process differ by some hundredths of a pair's.
            let value = (10.0 * (counted(view, name)? - alone)).round() / 10.0;
            let what = format!("instructions of a block of {BYTES} bytes, there and back: {name}");
            let against = "the loop alone, taken off";
            let goal = Bound::AtMost(MOST).counted(view, what, against, value);
            Some(goal.in_unit("instructions"))
        })
        .collect()
}
