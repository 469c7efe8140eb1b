//! A CPU's slot, and the zero slots that stand in for all slots while a CPU layer is disabled.

use core::cell::UnsafeCell;

use super::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use super::{FILL_MASK, WORD};
use crate::os::{MAX_CPUS, MetaRegion};

/// What one CPU owns. Two cache lines, because the hardware prefetches them in pairs; the second one is not used.
///
/// The restartable sections know the offsets.
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(64))]
pub(super) struct Slot {
    pub(super) body: Body,
    pub(super) beside: Beside,
    _unused: [u64; 8],
}

/// The part of a slot that only its current owner changes. A thread that counts rounds reads it meanwhile, so these are
/// atomics.
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct Body {
    /// Tops of the two magazines; 0 is none.
    tops: [AtomicUsize; 2],
    /// Bytes of rounds that each may hold; 0 until there are two.
    capacity: AtomicUsize,
    /// loom reports a thread that changes the slot and is not its owner.
    #[cfg(loom)]
    owner: loom::cell::UnsafeCell<()>,
}

impl Body {
    pub(super) fn top(&self, which: usize) -> usize {
        self.tops[which].load(Ordering::Relaxed)
    }

    pub(super) fn tops(&self) -> [usize; 2] {
        [self.top(0), self.top(1)]
    }

    pub(super) fn set_top(&self, which: usize, top: usize) {
        self.changes();
        self.tops[which].store(top, Ordering::Relaxed);
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    pub(super) fn set_capacity(&self, bytes: usize) {
        self.changes();
        self.capacity.store(bytes, Ordering::Relaxed);
    }

    fn changes(&self) {
        #[cfg(loom)]
        self.owner.with_mut(|_| ());
    }

    /// Takes both magazines out. The child of a fork may find the slot as it is between any two of these stores and use it:
    /// a place without a magazine must have no room.
    pub(super) fn clear(&self) -> [usize; 2] {
        let tops = self.tops();
        self.set_capacity(0);
        for which in 0..2 {
            fence(Ordering::Release);
            self.set_top(which, 0);
        }
        tops
    }
}

/// The part of a slot that other threads may read or change.
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct Beside {
    /// Rounds given to each magazine. An aborted section may count one twice. Only the current owner adds, so no addition
    /// needs an exchange.
    pub(super) pushes: [AtomicU64; 2],
    /// Fork generation of the holder; 0 is free. Used in locked mode only.
    pub(super) lock: AtomicU32,
}

#[cfg(not(loom))]
const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Slot>() == 128);
    assert!(offset_of!(Slot, body) + offset_of!(Body, tops) == 0);
    assert!(offset_of!(Slot, body) + offset_of!(Body, capacity) == 16);
    assert!(offset_of!(Slot, beside) + offset_of!(Beside, pushes) == 24);
    assert!(APART + offset_of!(Slot, _unused) <= size_of::<Slot>());
};

/// The disabled slots of all CPU layers: nothing is ever written to them, for a section that finds neither a round nor room
/// leaves.
struct Disabled(UnsafeCell<[Slots; MAX_CPUS / 16]>);

/// Zeroes for sixteen slots, aligned as slots are.
#[repr(align(128))]
struct Slots(#[allow(dead_code)] [u8; 16 * size_of::<Slot>()]);

// SAFETY: it is never written.
unsafe impl Sync for Disabled {}

/// In a cell, so that it costs no place in the program's file.
static DISABLED_SLOTS: Disabled = Disabled(UnsafeCell::new(
    [const { Slots([0; 16 * size_of::<Slot>()]) }; MAX_CPUS / 16],
));

/// Address of the disabled slots.
pub(super) fn disabled() -> usize {
    DISABLED_SLOTS.0.get().expose_provenance()
}

/// Bytes of slots for every CPU that Linux can number, whatever this machine reports: a container may show a doctored
/// /sys, and a section does not check its CPU number before it indexes. Untouched slots cost addresses only.
pub(super) const LIVE_BYTES: usize = MAX_CPUS * size_of::<Slot>() + COLOURS * size_of::<Slot>();

/// Places in a page where the slots of a CPU layer may begin.
const COLOURS: usize = 4096 / size_of::<Slot>();

/// Where slots begin in a multiple of their size. CPU layers begin at such multiples, and hence their first line never lies at
/// the same place in its page as a line of slots. Processors compare the addresses of loads and earlier stores by that place
/// first. Where those of a layer and a slot were the same, a get and a put took three times as long.
const APART: usize = 64;

/// Where the slots of the next CPU layer begin in their region, in bytes below a page. Regions begin at pages, so without it the
/// slots that one CPU has on all CPU layers would meet in the same few sets of its caches: there is one for each size class, and the
/// cache has fewer ways.
fn colour() -> usize {
    use core::sync::atomic::AtomicUsize;
    touched_at_start! {
        /// Shelves so far.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
    }
    NEXT.fetch_add(1, Ordering::Relaxed) % COLOURS * size_of::<Slot>()
}

/// Where the slots begin in a region of [`LIVE_BYTES`] zeroes that belongs to them from now on.
pub(super) fn lay_out(region: &MetaRegion) -> usize {
    let first = region.span().addr() + colour() + APART;
    // Zero is no value of loom's atomics.
    #[cfg(loom)]
    for i in 0..super::sections::CPUS {
        // SAFETY: the region has room for more slots than that, at addresses of slots, and no other thread knows of it yet.
        unsafe { (first as *mut Slot).add(i).write(Slot::default()) };
    }
    first
}

/// Rounds that were given to a slot, and those that lie in its magazines now.
///
/// # Safety
/// The slot lives. Other threads may use it meanwhile.
pub(super) unsafe fn counts(slot: *mut Slot) -> (u64, i64) {
    // SAFETY: the slot lives, and all of it is atomics, which may be shared; sections change them by single stores.
    let Slot { body, beside, .. } = unsafe { &*slot };
    let rounds = |top: usize| ((top & FILL_MASK) / WORD) as i64;
    (
        beside
            .pushes
            .iter()
            .map(|n| n.load(Ordering::Relaxed))
            .sum(),
        body.tops().into_iter().map(rounds).sum(),
    )
}
