//! The slabs of one cache by how full they are. Pure bookkeeping under one lock; a thread that needs pages or calls a
//! constructor lets go of the lock first.
//!
//! Objects are taken from the fullest slabs, so that the emptiest become whole and can go back.

use super::map::{MARK_LINE, PageMap};
use super::meta::{BlockNumber, Meta};
use super::shape::Shape;
use super::slab::{self, Slab};

/// The list of slabs whose objects are all free.
const WHOLE: usize = 0;
/// The lists of slabs of which some are free: 1 to 8, by eighths in use.
const PARTIAL: usize = 1;
/// The list of slabs with no free object.
const FULL: usize = 9;
const LISTS: usize = 10;

/// What lies beside the lists and does not change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) meta: &'a Meta,
    pub(super) map: &'a PageMap,
    pub(super) shape: &'a Shape,
    /// Objects are constructed, so it is tracked which are.
    pub(super) constructs: bool,
}

impl<'a> Ground<'a> {
    /// # Safety
    /// `number` is a slab of this cache, the lock of its lists is held for `'s`, and there is no other value of it.
    pub(super) unsafe fn slab<'s>(&self, number: BlockNumber) -> Slab<'s>
    where
        'a: 's,
    {
        // SAFETY: the caller's promise; slabs are set up before they are added.
        unsafe { Slab::at(self.meta.at(number), self.shape, self.constructs) }
    }

    /// First page of a slab.
    ///
    /// # Safety
    /// As for [`slab`](Self::slab).
    pub(super) unsafe fn page_of(&self, number: BlockNumber) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { self.slab(number) }.page()
    }

    /// Where a slab's first object begins.
    ///
    /// # Safety
    /// As for [`slab`](Self::slab).
    pub(super) unsafe fn start_of(&self, number: BlockNumber) -> usize {
        // SAFETY: the caller's promise.
        let slab = unsafe { self.slab(number) };
        self.map.addr(slab.page()) + slab.colour()
    }

    /// Writes a new slab into its block, the first object `colour` bytes in; `zero` says that its pages are.
    ///
    /// # Safety
    /// The block was taken with [`slab_bytes`] and is the caller's.
    pub(super) unsafe fn set_up(&self, number: BlockNumber, page: u32, colour: usize, zero: bool) {
        // SAFETY: the caller's promise.
        unsafe {
            slab::set_up(
                self.meta.at(number),
                self.shape,
                self.constructs,
                page,
                colour,
                zero,
            )
        };
    }
}

/// How many objects a taker gets: enough, and up to `most` those after the last one whose marks share its cache line. Their next taker
/// may be another thread, and each would wait for the other's marks at each call.
#[derive(Debug)]
pub(super) struct Batch {
    enough: usize,
    most: usize,
    taken: usize,
    /// Where the marks of the last one lie.
    line: usize,
}

impl Batch {
    pub(super) fn new(enough: usize, most: usize) -> Self {
        Self {
            enough,
            most,
            taken: 0,
            line: 0,
        }
    }

    /// Whether the object at an address is one of them. It is counted.
    fn wants(&mut self, addr: usize) -> bool {
        let line = addr / MARK_LINE;
        let wants = self.taken < self.enough || (self.taken < self.most && line == self.line);
        self.taken += usize::from(wants);
        self.line = line;
        wants
    }
}

/// The lists.
#[derive(Debug, Default)]
pub(super) struct Slabs {
    heads: [BlockNumber; LISTS],
    /// Slabs that exist.
    slabs: usize,
    /// Slabs whose objects are all free, and the fewest of them since the interval began.
    whole: usize,
    whole_least: usize,
    /// Objects that are free.
    free: usize,
    /// Objects that are free and not constructed, where it is tracked.
    unmade: usize,
}

impl Slabs {
    /// Slabs that exist.
    pub(super) fn slabs(&self) -> usize {
        self.slabs
    }

    /// Whether an object that was just taken of a slab is zero, as far as is known.
    pub(super) fn is_untouched(&self, ground: Ground<'_>, number: BlockNumber) -> bool {
        // SAFETY: the page map named it for an object that is out, so it is a slab of this cache; the lock is held.
        unsafe { ground.slab(number) }.is_untouched()
    }

    /// Slabs whose objects are all free.
    pub(super) fn whole(&self) -> usize {
        self.whole
    }

    /// Objects that are free in slabs.
    pub(super) fn free(&self) -> usize {
        self.free
    }

    /// Adds a slab that was just set up.
    pub(super) fn add(&mut self, ground: Ground<'_>, number: BlockNumber) {
        self.slabs += 1;
        self.free += ground.shape.objects;
        if ground.constructs {
            self.unmade += ground.shape.objects;
        }
        self.push(ground, number, WHOLE);
    }

    /// Takes the free objects of a batch, at most `fresh` of them not constructed yet, and calls `f` with each one's
    /// address and whether it is constructed. Says how many.
    pub(super) fn take(
        &mut self,
        ground: Ground<'_>,
        mut batch: Batch,
        fresh: usize,
        mut f: impl FnMut(usize, bool),
    ) -> usize {
        let mut made = 0;
        // Twice: constructed objects of any slab come before others.
        let ready = self.free > self.unmade;
        for fresh in [ready.then_some(0), ground.constructs.then_some(fresh)] {
            let Some(fresh) = fresh else { continue };
            for list in (PARTIAL..FULL).rev().chain([WHOLE]) {
                let mut number = self.heads[list];
                while number != 0 && batch.taken < batch.enough {
                    // SAFETY: a slab of this list, so of this cache; the lock is held, since `self` is borrowed mutably.
                    let mut slab = unsafe { ground.slab(number) };
                    let base = ground.map.addr(slab.page()) + slab.colour();
                    let addr = |i: usize| base + i * ground.shape.stride;
                    let (a, b) = slab.take(
                        fresh - made,
                        |i| batch.wants(addr(i)),
                        |i, constructed| f(addr(i), constructed),
                    );
                    let next = *slab.links().1;
                    if a + b > 0 {
                        made += b;
                        self.free -= a + b;
                        self.unmade -= b;
                        self.relist(ground, number);
                    }
                    number = next;
                }
                if batch.taken >= batch.enough {
                    return batch.taken;
                }
            }
        }
        batch.taken
    }

    /// Brings an object of slab `number` back; false when it is here already.
    pub(super) fn put(
        &mut self,
        ground: Ground<'_>,
        number: BlockNumber,
        index: usize,
        constructed: bool,
    ) -> bool {
        // SAFETY: the page map names slabs of this cache; the lock is held.
        let done = unsafe { ground.slab(number) }.put(index, constructed);
        if done {
            self.free += 1;
            self.unmade += usize::from(!constructed && ground.constructs);
            self.relist(ground, number);
        }
        done
    }

    /// Ends an interval and says how many whole slabs it did not need.
    pub(super) fn end_interval(&mut self) -> usize {
        let idle = self.whole_least.min(self.whole);
        self.whole_least = self.whole;
        idle
    }

    /// Takes whole slabs out, at most as many as `out` holds. Says how many.
    pub(super) fn take_whole(&mut self, ground: Ground<'_>, out: &mut [BlockNumber]) -> usize {
        self.take_list(ground, WHOLE, out)
    }

    /// Takes any slabs out, in use or not. Says how many.
    pub(super) fn take_any(&mut self, ground: Ground<'_>, out: &mut [BlockNumber]) -> usize {
        let mut n = 0;
        for list in 0..LISTS {
            n += self.take_list(ground, list, &mut out[n..]);
        }
        n
    }

    fn take_list(&mut self, ground: Ground<'_>, list: usize, out: &mut [BlockNumber]) -> usize {
        let mut n = 0;
        for slot in out {
            let number = self.heads[list];
            if number == 0 {
                break;
            }
            // SAFETY: a slab of this list; the lock is held.
            let slab = unsafe { ground.slab(number) };
            self.free -= slab.free();
            self.unmade -= slab.unmade();
            self.slabs -= 1;
            self.unlink(ground, number);
            *slot = number;
            n += 1;
        }
        n
    }

    /// Moves a slab to the list that its free objects say.
    fn relist(&mut self, ground: Ground<'_>, number: BlockNumber) {
        // SAFETY: a slab of this cache; the lock is held.
        let slab = unsafe { ground.slab(number) };
        let list = match slab.free() {
            0 => FULL,
            free if free == ground.shape.objects => WHOLE,
            free => PARTIAL + ground.shape.eighth(ground.shape.objects - free),
        };
        if list != slab.list() {
            self.unlink(ground, number);
            self.push(ground, number, list);
        }
    }

    fn push(&mut self, ground: Ground<'_>, number: BlockNumber, list: usize) {
        let head = core::mem::replace(&mut self.heads[list], number);
        if head != 0 {
            // SAFETY: the head of a list of this cache; the lock is held, and the value is gone at once.
            *unsafe { ground.slab(head) }.links().0 = number;
        }
        // SAFETY: as above.
        let mut slab = unsafe { ground.slab(number) };
        slab.set_list(list);
        let (previous, next) = slab.links();
        (*previous, *next) = (0, head);
        if list == WHOLE {
            self.whole += 1;
        }
    }

    fn unlink(&mut self, ground: Ground<'_>, number: BlockNumber) {
        let (list, previous, next) = {
            // SAFETY: a slab of this cache; the lock is held, and the value is gone at once.
            let mut slab = unsafe { ground.slab(number) };
            let list = slab.list();
            let (previous, next) = slab.links();
            (list, *previous, *next)
        };
        if next != 0 {
            // SAFETY: a neighbour on the same list.
            *unsafe { ground.slab(next) }.links().0 = previous;
        }
        if previous == 0 {
            self.heads[list] = next;
        } else {
            // SAFETY: a neighbour on the same list.
            *unsafe { ground.slab(previous) }.links().1 = next;
        }
        if list == WHOLE {
            self.whole -= 1;
            self.whole_least = self.whole_least.min(self.whole);
        }
    }
}

/// Bytes of the block that keeps what is known of a slab.
pub(super) fn slab_bytes(ground: Ground<'_>) -> usize {
    slab::bytes(ground.shape, ground.constructs)
}

#[cfg(all(test, not(loom)))]
#[path = "slabs_tests.rs"]
mod tests;
