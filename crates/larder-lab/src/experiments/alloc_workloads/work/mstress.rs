//! The pattern of mimalloc's stress test: phases; in each all threads are new, and what they leave goes to the next.

use std::sync::{Mutex, PoisonError};

use super::super::draw::Draw;
use super::super::stamp::{Block, Lost, Owner, give_all};
use super::super::workload::{Job, Workload, with_heaps};
use crate::contestants::heaps::{Heap, Heaps};

/// Phases.
const PHASES: u64 = 8;
/// Places through which blocks migrate.
const PLACES: usize = 1000;

pub(in super::super) struct Mstress;

type Places = Vec<Mutex<Option<Block>>>;

impl Workload for Mstress {
    const NAME: &'static str = "mstress";
    const ABOUT: &'static str =
        "phases of new threads with mixed sizes; some blocks migrate and outlive their thread";
    const OPS: u64 = 150_000;

    fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
        let places: Places = (0..PLACES).map(|_| Mutex::new(None)).collect();
        let each = job.share().div_ceil(PHASES);
        let mut ops = 0;
        for phase in 0..PHASES as usize {
            ops += with_heaps(heaps, job.threads, |heap, thread| {
                live(heap, &places, phase * job.threads + thread, each)
            })?;
        }
        let places = places.into_iter();
        let rest =
            places.flat_map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner));
        give_all(rest, &mut heaps.local()?)?;
        Ok(ops)
    }
}

/// Mostly some words, sometimes much more.
fn bytes(draw: &mut Draw) -> usize {
    match draw.below(1000) {
        0 => draw.within(8 << 10, 64 << 10),
        1..=19 => draw.within(1 << 10, 8 << 10),
        _ => 8 << draw.below(7),
    }
}

#[inline(never)]
fn live<H: Heap>(heap: &mut H, places: &Places, number: usize, ops: u64) -> Result<u64, Lost> {
    let (mut draw, mut owner) = (Draw::new(number), Owner::new(number));
    let mut data: Vec<Block> = Vec::with_capacity(4096);
    let mut retained: Vec<Block> = Vec::with_capacity(4096);
    for _ in 0..ops {
        let block = owner.take(heap, bytes(&mut draw))?;
        match draw.below(8) {
            // A quarter lives to the end of the phase.
            0 | 1 if retained.len() < retained.capacity() => retained.push(block),
            _ if data.len() < data.capacity() => data.push(block),
            _ => block.give(heap)?,
        }
        if draw.below(2) == 0 && !data.is_empty() {
            let at = draw.below(data.len());
            data.swap_remove(at).give(heap)?;
        }
        if draw.below(50) == 0 && !data.is_empty() {
            let at = draw.below(data.len());
            let block = data.swap_remove(at);
            let place = &places[draw.below(PLACES)];
            let other = place
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .replace(block);
            if let Some(other) = other {
                data.push(other);
            }
        }
    }
    give_all(retained.into_iter().chain(data), heap)?;
    Ok(ops)
}
