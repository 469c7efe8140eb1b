//! Objects that are expensive to make: each use constructs one, works with it and takes it apart.

use super::super::draw::Draw;
use super::super::stamp::{Block, Lost, Owner, STAMP};
use super::super::workload::{Job, Workload, with_heaps};
use crate::contestants::heaps::{Heap, Heaps};

/// Sizes of the four kinds.
const KINDS: [usize; 4] = [64, 128, 192, 320];
/// Objects of a thread.
const OUT: usize = 64;

pub(in super::super) struct Constructors;

impl Workload for Constructors {
    const NAME: &'static str = "constructors";
    const ABOUT: &'static str = "objects of four kinds whose constructor fills them and whose destructor looks at every word";
    const OPS: u64 = 80_000;

    fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
        with_heaps(heaps, job.threads, |heap, thread| {
            objects(heap, thread, job.share())
        })
    }
}

/// An object: the owner's number, then words that follow from the first of them.
struct Object {
    block: Block,
    first: u64,
}

fn next(word: u64) -> u64 {
    word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1)
}

impl Object {
    fn words(&self) -> usize {
        self.block.bytes() / STAMP - 1
    }

    #[inline(always)]
    fn construct<H: Heap>(
        heap: &mut H,
        owner: &mut Owner,
        bytes: usize,
        first: u64,
    ) -> Result<Self, Lost> {
        let object = Self {
            block: owner.take_head(heap, bytes)?,
            first,
        };
        let mut word = first;
        for i in 0..object.words() {
            // SAFETY: within the block, behind the owner's number.
            unsafe { object.at(i).write(word) };
            word = next(word);
        }
        Ok(object)
    }

    #[inline(always)]
    fn at(&self, i: usize) -> *mut u64 {
        self.block.at().as_ptr().cast::<u64>().wrapping_add(1 + i)
    }

    #[inline(always)]
    fn destruct<H: Heap>(self, heap: &mut H) -> Result<(), Lost> {
        let mut word = self.first;
        let mut wrong = 0;
        for i in 0..self.words() {
            // SAFETY: as above, and it was constructed.
            wrong |= unsafe { self.at(i).read_volatile() } ^ word;
            word = next(word);
        }
        if wrong != 0 {
            return Err(Lost::Wrong(
                "an object is not as its constructor left it".to_owned(),
            ));
        }
        self.block.give(heap)
    }
}

#[inline(never)]
fn objects<H: Heap>(heap: &mut H, thread: usize, ops: u64) -> Result<u64, Lost> {
    let (mut draw, mut owner) = (Draw::new(thread), Owner::new(thread));
    let mut out: Vec<Option<Object>> = (0..OUT).map(|_| None).collect();
    for op in 0..ops {
        let bytes = KINDS[draw.below(KINDS.len())];
        let fresh = Object::construct(heap, &mut owner, bytes, op)?;
        if let Some(object) = out[draw.below(OUT)].replace(fresh) {
            object.destruct(heap)?;
        }
    }
    for object in out.into_iter().flatten() {
        object.destruct(heap)?;
    }
    Ok(ops)
}
