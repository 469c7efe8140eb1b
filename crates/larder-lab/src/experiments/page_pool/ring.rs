//! A bounded ring of pages from one producer to one consumer: the same for every supplier.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Slots of the ring. A MiB of pages may be on their way: enough that a side which lost its CPU for a moment does not stop
/// the other at once.
pub(super) const SLOTS: usize = 256;

/// Keeps the two sides' words on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

/// A ring after Lamport (1977): each side writes its own index only.
#[derive(Debug)]
pub(super) struct Ring {
    slots: [AtomicPtr<u8>; SLOTS],
    head: Line<AtomicUsize>,
    tail: Line<AtomicUsize>,
}

impl Ring {
    pub(super) fn new() -> Self {
        Self {
            slots: [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS],
            head: Line::default(),
            tail: Line::default(),
        }
    }

    /// Waits until there is room and sends a page. One thread only may send.
    pub(super) fn send(&self, page: NonNull<u8>) {
        let tail = self.tail.0.load(Ordering::Relaxed);
        wait_until(|| tail - self.head.0.load(Ordering::Acquire) < SLOTS);
        self.slots[tail % SLOTS].store(page.as_ptr(), Ordering::Relaxed);
        self.tail.0.store(tail + 1, Ordering::Release);
    }

    /// Waits until there is a page and takes it. One thread only may take. `None` once `closed` says so and the ring
    /// is empty.
    pub(super) fn take(&self, closed: impl Fn() -> bool) -> Option<NonNull<u8>> {
        let head = self.head.0.load(Ordering::Relaxed);
        let mut last = false;
        wait_until(|| {
            // Closed is read before the tail: what was sent before closing is then seen.
            last = closed();
            last || self.tail.0.load(Ordering::Acquire) != head
        });
        if self.tail.0.load(Ordering::Acquire) == head {
            return None;
        }
        let page = self.slots[head % SLOTS].load(Ordering::Relaxed);
        self.head.0.store(head + 1, Ordering::Release);
        NonNull::new(page)
    }
}

/// Spins for a moment, then lets others run: on a busy machine the other side may not be on a CPU.
fn wait_until(mut ready: impl FnMut() -> bool) {
    let mut tries = 0u32;
    while !ready() {
        tries += 1;
        if tries < 100 {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn hands_everything_over_once_and_in_order() {
        let ring = Ring::new();
        let closed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 1..=10_000usize {
                    ring.send(NonNull::new(ptr::without_provenance_mut(i)).expect("not null"));
                }
                closed.store(true, Ordering::Release);
            });
            let mut expected = 1;
            while let Some(page) = ring.take(|| closed.load(Ordering::Acquire)) {
                assert_eq!(page.as_ptr() as usize, expected);
                expected += 1;
            }
            assert_eq!(expected, 10_001);
        });
    }
}
