//! Interpreters come and go: each makes a heap of its own, fills it, works and takes everything down. "A parrot-interpreter
//! destruction could be murder."

use super::super::draw::Draw;
use super::super::stamp::{Block, Lost, Owner, give_all};
use super::super::workload::{Job, in_threads};
use crate::contestants::heaps::{Heap, Heaps};

/// Size classes that an interpreter uses: the "30+ fixed-sized caches" of the mail.
const CLASSES: usize = 30;
/// Objects of an interpreter.
const OBJECTS: usize = 300;

/// `interpreters`.
pub(super) fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
    let ops = in_threads(job.threads, |thread| {
        let lives = job.share().div_ceil(OBJECTS as u64);
        let mut draw = Draw::new(thread);
        let mut owner = Owner::new(thread);
        let mut objects = Vec::with_capacity(OBJECTS);
        for _ in 0..lives {
            let mut heap = heaps.local()?;
            live(&mut heap, &mut draw, &mut owner, &mut objects)?;
            if H::DIES_WHOLE {
                // The objects die with the heap; only that they are whole is looked at.
                for object in objects.drain(..) {
                    object.check()?;
                }
            } else {
                give_all(objects.drain(..), &mut heap)?;
            }
            drop(heap);
        }
        Ok(lives * OBJECTS as u64)
    })?;
    Ok(ops.iter().sum())
}

/// What an interpreter does: some of its objects live to its end, others are replaced.
#[inline(never)]
fn live<H: Heap>(
    heap: &mut H,
    draw: &mut Draw,
    owner: &mut Owner,
    objects: &mut Vec<Block>,
) -> Result<(), Lost> {
    for made in 0..OBJECTS {
        let fresh = owner.take(heap, 16 * (1 + made % CLASSES))?;
        if made < OBJECTS / 2 {
            objects.push(fresh);
        } else {
            let at = draw.below(objects.len());
            std::mem::replace(&mut objects[at], fresh).give(heap)?;
        }
    }
    Ok(())
}
