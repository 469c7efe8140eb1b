//! The memory management of 2.4.7 without swap: what vanilla, the patch and 2.4.8 share.
//!
//! Sources: `mm/vmscan.c` and `mm/swap.c` of 2.4.0 with R. van Riel's patch of 14 May 2001 ("vmscan.c fixes", in 2.4.5), and
//! the hunks of D. Phillips' patch against 2.4.7 (26 July 2001, <01072622195600.00285@starship>).

use core::marker::PhantomData;

use super::super::capacity::capacity;
use super::super::{Arrival, Frame, FrameState, Frames, Policy, PolicyError, Reason, Touch};
use super::age;
use super::page_lists::{On, PageLists};
use super::targets::Targets;

/// Pages of readahead and swap together, as a power of two, with 32 MB or more (`page_cluster`).
const PAGE_CLUSTER: u32 = 4;
/// Writes that one page_launder starts.
const MAX_LAUNDER: usize = 4 << PAGE_CLUSTER;
/// A scan covers this share of the active list, as a power of two.
const DEF_PRIORITY: u32 = 6;
/// Scans that an allocating process tries.
const USER_TRIES: usize = 6;
/// Times that kswapd goes on while both shortages stay. The kernel's goes on until they are gone or memory is.
const KSWAPD_LOOPS: usize = 2;
/// Times that an allocation ages the active list while nothing at all is inactive. The oldest age is 0 after 7 rounds of 11.
const ALLOC_TRIES: usize = 128;

/// What a version of the kernel does differently. As given here, it is what use-once does.
pub trait Version: Send + 'static {
    /// drop_behind, and generic_file_write's deactivation of pages that were written to their end, are there.
    const DROPS_BEHIND: bool = false;

    /// `lru_cache_add`.
    fn add(pages: &mut PageLists, page: Frame) {
        pages.add(page, On::Dirty, 0);
    }

    /// A page is used: by the call that brought it in, or as one that was found in the cache; then the lookup has set Referenced.
    fn used(pages: &mut PageLists, page: Frame);

    /// `page_launder` and `reclaim_page`: the page's own signs of use. (Other users are the caller's business.)
    fn in_use(pages: &PageLists, page: Frame) -> bool {
        pages.referenced(page)
    }

    /// A page with such signs, or with another user, has come from an inactive list to the active one. Referenced stays set (since
    /// 2.4.5): the next scan makes the page older.
    fn rescued(pages: &mut PageLists, page: Frame) {
        pages.set_age(page, age::START);
    }
}

/// `deactivate_page_nolock`: forgets the uses of a page and moves an active one to an inactive list.
pub(super) fn deactivate(pages: &mut PageLists, page: Frame) {
    pages.set_age(page, 0);
    pages.refer(page, false);
    if pages.is_on(page, On::Active) {
        pages.move_to(page, On::Dirty);
    }
}

/// A 2.4.7 of some version.
#[derive(Debug)]
pub struct Vm<V> {
    pub(super) pages: PageLists,
    targets: Targets,
    capacity: usize,
    rescues: u64,
    ignored: u64,
    version: PhantomData<V>,
}

impl<V: Version> Vm<V> {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            pages: PageLists::new(frames)?,
            targets: Targets::new(frames),
            rescues: 0,
            ignored: 0,
            version: PhantomData,
        })
    }

    fn free(&self) -> usize {
        self.capacity.saturating_sub(self.pages.total())
    }

    fn free_shortage(&self) -> i64 {
        self.targets
            .free_shortage(self.free(), self.pages.len(On::Clean))
    }

    fn inactive_shortage(&self) -> i64 {
        self.targets.inactive_shortage(
            self.free(),
            self.pages.len(On::Clean),
            self.pages.len(On::Dirty),
        )
    }

    /// `__alloc_pages` where no page is free: one page from the inactive clean list, and what is done if there is none.
    fn alloc_page<F: Frames>(&mut self, frames: &mut F) -> bool {
        if self.inactive_shortage() > self.targets.inactive() / 2 && self.free_shortage() > 0 {
            self.kswapd(frames);
        }
        for _ in 0..ALLOC_TRIES {
            if self.reclaim_page(frames) {
                return true;
            }
            self.try_to_free_pages(frames, true);
            if self.pages.inactive() > 0 {
                break; // else: nothing is inactive yet, age on
            }
        }
        self.reclaim_page(frames) || self.last_resort(frames)
    }

    /// Where the kernel waits for a write to end: the oldest page that is not in use leaves dirty.
    fn last_resort<F: Frames>(&mut self, frames: &mut F) -> bool {
        let oldest = [On::Clean, On::Dirty, On::Active]
            .into_iter()
            .flat_map(|on| self.pages.iter(on))
            .find(|&page| frames.state(page) != FrameState::Pinned);
        if let Some(page) = oldest {
            self.pages.remove(page);
            frames.evicted(page, None);
        }
        oldest.is_some()
    }

    /// One turn of kswapd's loop, and more while it would not sleep.
    fn kswapd<F: Frames>(&mut self, frames: &mut F) {
        for _ in 0..KSWAPD_LOOPS {
            if self.inactive_shortage() > 0 || self.free_shortage() > 0 {
                self.try_to_free_pages(frames, false);
            }
            if self.free_shortage() <= 0 || self.inactive_shortage() <= 0 {
                break;
            }
        }
    }

    /// `do_try_to_free_pages`; `user` if a process does it that needs a page.
    fn try_to_free_pages<F: Frames>(&mut self, frames: &mut F, user: bool) {
        if self.free_shortage() > 0 {
            self.page_launder(frames, user);
        }
        if self.free_shortage() > 0 || self.inactive_shortage() > 0 {
            self.refill_inactive(frames, user);
        }
    }

    /// `reclaim_page`: the tail of the inactive clean list, unless it was used since.
    fn reclaim_page<F: Frames>(&mut self, frames: &mut F) -> bool {
        self.targets.press();
        for _ in 0..self.pages.len(On::Clean) {
            let Some(page) = self.pages.tail(On::Clean) else {
                break;
            };
            let state = frames.state(page);
            if V::in_use(&self.pages, page) || state == FrameState::Pinned {
                self.rescue(page);
            } else if state == FrameState::Dirty {
                self.pages.move_to(page, On::Dirty);
            } else {
                self.pages.remove(page);
                frames.evicted(page, None);
                return true;
            }
        }
        false
    }

    fn rescue(&mut self, page: Frame) {
        self.pages.move_to(page, On::Active);
        V::rescued(&mut self.pages, page);
        self.rescues += 1;
    }

    /// `page_launder`: all clean pages of the inactive dirty list become inactive clean, the dirty ones wait at its head; if
    /// pages are still short, a second round starts writes.
    fn page_launder<F: Frames>(&mut self, frames: &mut F, sync: bool) {
        let mut cleaned = 0;
        for writing in [false, true] {
            let mut launder = if writing { MAX_LAUNDER } else { 0 };
            for _ in 0..self.pages.len(On::Dirty) {
                let Some(page) = self.pages.tail(On::Dirty) else {
                    break;
                };
                let mut state = frames.state(page);
                if V::in_use(&self.pages, page) || state == FrameState::Pinned {
                    self.rescue(page);
                    continue;
                }
                if state == FrameState::Dirty && writing {
                    if launder > 0 {
                        launder -= 1;
                        frames.write_back(page); // its end is for a later round to see
                    } else if sync && cleaned == 0 {
                        frames.write_back(page); // and waits
                        state = frames.state(page);
                    }
                }
                if state == FrameState::Clean {
                    self.pages.move_to(page, On::Clean);
                    cleaned += 1;
                } else {
                    self.pages.move_to(page, On::Dirty); // to the head
                }
            }
            if self.free_shortage() <= 0 {
                break;
            }
        }
    }

    /// `refill_inactive`: kswapd deactivates what is short, a process a cluster.
    fn refill_inactive<F: Frames>(&mut self, frames: &mut F, user: bool) {
        let (mut count, tries) = match user {
            true => (1 << PAGE_CLUSTER, USER_TRIES),
            false => (self.inactive_shortage(), 1 << DEF_PRIORITY),
        };
        for _ in 0..tries {
            count -= self.refill_inactive_scan(frames, count.max(1));
            if count <= 0 || self.inactive_shortage() <= 0 {
                break;
            }
        }
    }

    /// `refill_inactive_scan` with a target: ages a 64th of the active list (at least one page: the kernel's lists are never
    /// that short) and deactivates pages of age 0, up to `target`.
    fn refill_inactive_scan<F: Frames>(&mut self, frames: &mut F, target: i64) -> i64 {
        let scans = (self.pages.len(On::Active) >> DEF_PRIORITY).max(1);
        self.scan_active(frames, scans, target)
    }

    /// `refill_inactive_scan` without a target: background ageing, once a second, unless much is inactive.
    fn background_ageing<F: Frames>(&mut self, frames: &mut F) {
        let inactive = self.free() + self.pages.inactive();
        let active = self.pages.len(On::Active).max(self.capacity / 2);
        let scans = if active > 10 * inactive {
            self.pages.len(On::Active) >> 4
        } else if active > 3 * inactive {
            self.pages.len(On::Active) >> 8
        } else {
            return;
        };
        self.scan_active(frames, scans, i64::MAX);
    }

    fn scan_active<F: Frames>(&mut self, frames: &mut F, scans: usize, target: i64) -> i64 {
        let mut deactivated = 0;
        for _ in 0..scans {
            let Some(page) = self.pages.tail(On::Active) else {
                break;
            };
            if self.pages.referenced(page) {
                self.pages.refer(page, false);
                self.pages.set_age(page, age::up(self.pages.age(page)));
            } else {
                self.pages.set_age(page, age::down(self.pages.age(page)));
                if self.pages.age(page) == 0 && frames.state(page) != FrameState::Pinned {
                    deactivate(&mut self.pages, page);
                    deactivated += 1;
                    if deactivated >= target {
                        break;
                    }
                    continue;
                }
            }
            self.pages.move_to(page, On::Active); // to the head
        }
        deactivated
    }
}

impl<V: Version> Policy for Vm<V> {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.pages.total()
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        self.targets.press();
        V::add(&mut self.pages, frame);
        match arrival.reason {
            Reason::Readahead => {}
            Reason::Demand => V::used(&mut self.pages, frame),
            Reason::Write => {
                V::used(&mut self.pages, frame);
                if V::DROPS_BEHIND {
                    deactivate(&mut self.pages, frame); // written to its end
                }
            }
        }
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        self.pages.refer(frame, true);
        V::used(&mut self.pages, frame);
    }

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        (0..wanted).take_while(|_| self.alloc_page(frames)).count()
    }

    fn remove(&mut self, frame: Frame) {
        self.pages.remove(frame);
        self.targets.relieve();
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.pages.grow(capacity(frames)?)?;
        self.capacity = frames;
        self.targets.resize(frames);
        Ok(())
    }

    /// kswapd's second.
    fn tick<F: Frames>(&mut self, frames: &mut F) {
        self.kswapd(frames);
        self.targets.decay();
        self.background_ageing(frames);
    }

    fn drop_behind(&mut self, frame: Frame) {
        if V::DROPS_BEHIND {
            deactivate(&mut self.pages, frame);
        } else {
            self.ignored += 1;
        }
    }

    fn check(&self) -> Result<(), String> {
        self.pages.check()
    }

    fn bytes(&self) -> usize {
        self.pages.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("active", self.pages.len(On::Active) as f64),
            ("inactive dirty", self.pages.len(On::Dirty) as f64),
            ("inactive clean", self.pages.len(On::Clean) as f64),
            ("inactive target", self.targets.inactive() as f64),
            ("rescued from an inactive list", self.rescues as f64),
            ("drop-behind hints ignored", self.ignored as f64),
        ]
    }
}
