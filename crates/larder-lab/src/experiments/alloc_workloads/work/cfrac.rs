//! As cfrac does: numbers of a few words, each result a new block, most of them dead after the next step.
//!
//! The continued fraction of the square root of N, with the convergents' numerators modulo N (Morrison and Brillhart 1975).
//! The last step must satisfy A^2 = (-1)^k Q modulo N: a number that was overwritten does not.

use super::super::stamp::{Block, Lost, Owner, STAMP};
use super::super::workload::{Job, Workload, with_heaps};
use crate::contestants::heaps::{Heap, Heaps};

/// A product of two primes, 2^40 + 15 and 2^39 + 23.
const N: u128 = ((1 << 40) + 15) * ((1 << 39) + 23);
/// Numbers made in a step.
const PER_STEP: u64 = 7;

pub(in super::super) struct Cfrac;

impl Workload for Cfrac {
    const NAME: &'static str = "cfrac";
    const ABOUT: &'static str =
        "the continued fraction of a square root, every number in a block of its own";
    const OPS: u64 = 150_000;

    fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
        let steps = (job.share() / PER_STEP).max(2);
        with_heaps(heaps, job.threads, |heap, thread| {
            fraction(heap, thread, steps)
        })
    }
}

/// A number in a block: the owner's number, then as many words of 32 bits as it needs.
struct Number {
    block: Block,
}

impl Number {
    #[inline(always)]
    fn new<H: Heap>(heap: &mut H, owner: &mut Owner, value: u128) -> Result<Self, Lost> {
        let words = (128 - value.leading_zeros() as usize).div_ceil(32).max(1);
        let block = owner.take_head(heap, STAMP + 4 * words)?;
        for word in 0..words {
            // SAFETY: the block has as many words behind its owner's number.
            unsafe {
                let at = block.at().as_ptr().add(STAMP + 4 * word).cast::<u32>();
                at.write((value >> (32 * word)) as u32);
            }
        }
        Ok(Self { block })
    }

    #[inline(always)]
    fn value(&self) -> u128 {
        let words = (self.block.bytes() - STAMP) / 4;
        (0..words).fold(0, |value, word| {
            // SAFETY: written in `new`.
            let part = unsafe {
                self.block
                    .at()
                    .as_ptr()
                    .add(STAMP + 4 * word)
                    .cast::<u32>()
                    .read_volatile()
            };
            value | u128::from(part) << (32 * word)
        })
    }

    /// Puts a new value in the place of this one.
    #[inline(always)]
    fn set<H: Heap>(&mut self, heap: &mut H, owner: &mut Owner, value: u128) -> Result<Self, Lost> {
        let fresh = Self::new(heap, owner, value)?;
        Ok(std::mem::replace(self, fresh))
    }
}

#[inline(never)]
fn fraction<H: Heap>(heap: &mut H, thread: usize, steps: u64) -> Result<u64, Lost> {
    let owner = &mut Owner::new(thread);
    let root = N.isqrt();
    let mut p = Number::new(heap, owner, 0)?;
    let mut q = Number::new(heap, owner, 1)?;
    let mut a = Number::new(heap, owner, root)?;
    let mut before = Number::new(heap, owner, 1)?;
    let mut now = Number::new(heap, owner, root)?;
    for _ in 0..steps {
        let product = Number::new(heap, owner, a.value() * q.value())?;
        let old = p.set(heap, owner, product.value().wrapping_sub(p.value()))?;
        old.block.give(heap)?;
        product.block.give(heap)?;
        let square = Number::new(heap, owner, p.value().wrapping_mul(p.value()))?;
        // p stays below the root of N, unless a number was overwritten: then the wrapped result fails at the end.
        let old = q.set(
            heap,
            owner,
            N.wrapping_sub(square.value()) / q.value().max(1),
        )?;
        old.block.give(heap)?;
        square.block.give(heap)?;
        let old = a.set(heap, owner, root.wrapping_add(p.value()) / q.value().max(1))?;
        old.block.give(heap)?;
        let product = Number::new(heap, owner, a.value().wrapping_mul(now.value()))?;
        let next = Number::new(
            heap,
            owner,
            product.value().wrapping_add(before.value()) % N,
        )?;
        product.block.give(heap)?;
        let old = std::mem::replace(&mut before, std::mem::replace(&mut now, next));
        old.block.give(heap)?;
    }
    // `before` is the convergent that belongs to the last but one Q, which `now` has moved past.
    let holds = relation_holds(before.value(), q.value(), steps);
    for number in [p, q, a, before, now] {
        number.block.give(heap)?;
    }
    if holds {
        Ok(steps * PER_STEP)
    } else {
        Err(Lost::Wrong(format!(
            "the continued fraction of {N} went wrong within {steps} steps: a number was overwritten"
        )))
    }
}

/// A^2 = (-1)^k Q modulo N.
fn relation_holds(a: u128, q: u128, k: u64) -> bool {
    let square = times_modulo(a % N, a % N);
    let q = q % N;
    square == if k.is_multiple_of(2) { q } else { (N - q) % N }
}

/// Product modulo N by doubling, which is slow and does not overflow.
fn times_modulo(mut a: u128, mut b: u128) -> u128 {
    let mut sum = 0;
    while b > 0 {
        if b & 1 == 1 {
            sum = (sum + a) % N;
        }
        a = 2 * a % N;
        b >>= 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::heaps::SystemMalloc;

    #[test]
    fn the_relation_holds_after_any_number_of_steps() {
        for steps in [2, 3, 4, 50, 1001] {
            fraction(&mut SystemMalloc, 0, steps).expect("right");
        }
        assert!(!relation_holds(5, 7, 2));
    }
}
