//! How slabs go back to the pool.

use core::any::Any;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::cache::Cache;
use super::meta::BlockNumber;
use super::slabs::slab_bytes;
use super::supply::{Objects, Plain};
use crate::os::coarse_now;
use crate::os::lock::order::{Rank, calls};

/// Slabs that go back together.
const BATCH: usize = 64;

/// What a destructor panicked with. The slabs go back first, then the unwinding goes on.
pub(super) type Panic = Option<Box<dyn Any + Send>>;

impl Cache {
    /// Ends a working-set interval (Bonwick and Adams 2001): full magazines that it did not need go to the slabs, whole
    /// slabs that it did not need to the pool. Then the CPUs' magazines go to the depot, so that the next interval shows
    /// which of these are needed, too. Returns bytes of slabs that went.
    ///
    /// The interval began at `began`: what goes was unused from then on.
    pub(super) fn maintain(&self, began: u64) -> usize {
        self.forget_barren();
        let (idle, before) = {
            let mut slabs = self.slabs();
            (slabs.end_interval(), slabs.whole())
        };
        self.stock.reap(usize::MAX, &self.as_supply());
        // Slabs that these objects made whole were not needed, either.
        let idle = idle + self.slabs().whole().saturating_sub(before);
        let (bytes, panic) = self.release_whole(idle, began);
        // A cache that was not used has nothing there: its last interval gathered it.
        if self.take_shelved() {
            if !self.stock.gather() {
                self.shelved();
            }
            self.stock.begin_interval();
        }
        go_on(panic);
        bytes
    }

    /// Everything that is not in use and not in a handle goes, now. Returns bytes of slabs that went.
    pub(super) fn trim(&self) -> usize {
        self.stock.drain(&self.as_supply());
        let (bytes, panic) = self.release_whole(usize::MAX, coarse_now());
        go_on(panic);
        bytes
    }

    /// Before memory grows: where the depot's magazines may hold a slab's worth, their objects go to the slabs; then all whole
    /// slabs go. Returns bytes of slabs that went.
    pub(super) fn collect(&self) -> usize {
        self.stock
            .empty_depot(self.shape.objects, &self.as_supply());
        let (bytes, panic) = self.release_whole(usize::MAX, coarse_now());
        go_on(panic);
        bytes
    }

    /// For returning objects to their slabs; nothing is constructed through it.
    pub(super) fn as_supply(&self) -> Objects<'_, Plain> {
        Objects {
            cache: self,
            constructor: Plain,
            spare: None,
            untouched: None,
        }
    }

    /// At most `most` whole slabs go to the pool, unused since `since`.
    pub(super) fn release_whole(&self, most: usize, since: u64) -> (usize, Panic) {
        if self.is_type_stable() {
            return (0, None);
        }
        if most == 0 {
            return (0, None);
        }
        let _moving = self.inner().pool.moving();
        let mut panic = None;
        let mut left = most;
        let mut released = 0;
        while left > 0 {
            let mut numbers = [0; BATCH];
            let n = {
                let mut slabs = self.slabs();
                let n = slabs.take_whole(self.ground(), &mut numbers[..BATCH.min(left)]);
                self.disclaim(&numbers[..n]);
                n
            };
            if n == 0 {
                break;
            }
            let thrown = self.give_back(&numbers[..n], since);
            panic = panic.or(thrown);
            left -= n;
            released += n;
        }
        (released * self.shape.bytes(), panic)
    }

    /// All slabs go, whether objects are in use or not. No object is visited unless there is a destructor.
    pub(super) fn release_all(&self) -> Panic {
        let mut panic = None;
        loop {
            let mut numbers = [0; BATCH];
            let n = self.slabs().take_any(self.ground(), &mut numbers);
            if n == 0 {
                return panic;
            }
            self.disclaim(&numbers[..n]);
            let thrown = self.give_back(&numbers[..n], coarse_now());
            panic = panic.or(thrown);
        }
    }

    /// The pages of slabs that were taken out have no owner any more: a later put of one of their objects is reported
    /// as a misuse.
    fn disclaim(&self, slabs: &[BlockNumber]) {
        for &slab in slabs {
            // SAFETY: taken out of the lists, so this thread's alone.
            let page = unsafe { self.ground().page_of(slab) };
            self.inner().map.clear(page, self.shape.shown_pages());
        }
    }

    /// Ends the objects of slabs that were taken out, and brings the pages to the pool.
    fn give_back(&self, slabs: &[BlockNumber], since: u64) -> Panic {
        let (inner, ground) = (self.inner(), self.ground());
        let mut panic = None;
        let mut destroyed = 0;
        let mut addrs = [0; BATCH];
        for (&number, addr) in slabs.iter().zip(&mut addrs) {
            // SAFETY: taken out of the lists, so this thread's alone.
            let mut slab = unsafe { ground.slab(number) };
            *addr = inner.map.addr(slab.page());
            let start = *addr + slab.colour();
            destroyed += slab.take_constructed(|index| {
                let at = NonNull::new((start + index * self.shape.stride) as *mut u8);
                if let (Some(destroy), Some(at)) = (self.hooks.destroy, at) {
                    let _outside = calls("a destructor", Rank::Reaper);
                    // SAFETY: the object is constructed and not in use; the maker of the cache answers for the function.
                    let call = AssertUnwindSafe(|| unsafe { destroy(at, self.hooks.data) });
                    if let Err(payload) = catch_unwind(call) {
                        panic.get_or_insert(payload);
                    }
                }
            });
            // SAFETY: taken with this size, and the slab is gone.
            unsafe { inner.meta.put(number, slab_bytes(ground)) };
        }
        self.destroyed
            .fetch_add(destroyed as u64, Ordering::Relaxed);
        let pages = self.shape.pages;
        inner.pool.put_spans(
            addrs[..slabs.len()].iter().map(|&addr| (addr, pages)),
            since,
        );
        self.held
            .fetch_sub(slabs.len() * self.shape.bytes(), Ordering::Relaxed);
        panic
    }
}

pub(super) fn go_on(panic: Panic) {
    if let Some(payload) = panic {
        std::panic::resume_unwind(payload);
    }
}
