//! Larson and Krishnan, "Memory allocation for long-running server applications" (ISMM 1998): blocks outlive the threads
//! that allocated them.

use std::sync::Mutex;
use std::thread::Scope;

use anyhow::Context;

use super::super::draw::Draw;
use super::super::stamp::{Block, Lost, Owner};
use super::super::workload::Job;
use crate::contestants::heaps::{Heap, Heaps};

/// Slots of a thread, as in the usual call of the program.
const SLOTS: usize = 5000;
/// Threads that follow each other in a lane.
const GENERATIONS: usize = 10;
/// Sizes.
const BYTES: (usize, usize) = (8, 1000);

type Outcome = Mutex<Vec<anyhow::Result<u64>>>;

/// `larson`.
pub(super) fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
    let turns = job.share().div_ceil(GENERATIONS as u64);
    let ends = &Outcome::default();
    std::thread::scope(|scope| {
        for lane in 0..job.threads {
            let slots = Vec::with_capacity(SLOTS);
            scope.spawn(move || generation(scope, heaps, (lane, 0), slots, turns, ends));
        }
    });
    let ends = std::mem::take(&mut *ends.lock().ok().context("a thread panicked")?);
    ends.into_iter().sum()
}

/// One thread's life; its last act is to start the next one.
fn generation<'scope, H: Heaps>(
    scope: &'scope Scope<'scope, '_>,
    heaps: &'scope H,
    (lane, number): (usize, usize),
    mut slots: Vec<Block>,
    turns: u64,
    ends: &'scope Outcome,
) {
    let end = heaps.local().and_then(|mut heap| {
        let mut ops = serve(&mut heap, lane * GENERATIONS + number, &mut slots, turns)?;
        if number + 1 == GENERATIONS {
            for block in slots.drain(..) {
                block.give(&mut heap)?;
                ops += 1;
            }
        }
        Ok(ops)
    });
    let good = end.is_ok();
    if let Ok(mut ends) = ends.lock() {
        ends.push(end);
    }
    if good && number + 1 < GENERATIONS {
        scope.spawn(move || generation(scope, heaps, (lane, number + 1), slots, turns, ends));
    }
}

#[inline(never)]
fn serve<H: Heap>(
    heap: &mut H,
    number: usize,
    slots: &mut Vec<Block>,
    turns: u64,
) -> Result<u64, Lost> {
    let mut draw = Draw::new(number);
    let mut owner = Owner::new(number);
    while slots.len() < SLOTS && (slots.len() as u64) < turns {
        slots.push(owner.take(heap, draw.within(BYTES.0, BYTES.1))?);
    }
    for _ in 0..turns {
        let slot = draw.below(slots.len());
        let fresh = owner.take(heap, draw.within(BYTES.0, BYTES.1))?;
        std::mem::replace(&mut slots[slot], fresh).give(heap)?;
    }
    Ok(turns)
}
