//! The memory management of Linux 2.4.7 without swap: as released on 20 July 2001 ("vanilla" in Lord's table), with Daniel
//! Phillips' use-once patch ("patched"), and as that was merged into 2.4.8.
//!
//! Sources: `mm/vmscan.c` and `mm/swap.c` of 2.4.0 with R. van Riel's patch of 14 May 2001 ("vmscan.c fixes", in 2.4.5), and
//! the hunks of D. Phillips' patch against 2.4.7 (26 July 2001, <01072622195600.00285@starship>).

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

/// The versions.
const VANILLA: u8 = 0;
const USE_ONCE: u8 = 1;
const MERGED: u8 = 2;

/// Linux 2.4.7. A block comes in active at age 2. A use only sets its Referenced bit; the scan of the active ring turns that
/// into an age higher by 3, and the lack of a use into half the age; at 0 the block becomes inactive. Sequential readers and writers push what
/// they passed out of the active ring ([`drop_behind`](super::super::Policy::drop_behind)), popular or not: the first of
/// Phillips' complaints. An inactive block is rescued if it was used since, or has an age.
///
/// Source: `mm/{vmscan,swap,filemap,page_alloc}.c` of 2.4.0 and the patches up to 2.4.7, see the
/// module `kernel`. 10 bytes a frame; a hit is one store.
///
/// Without ticks the inactive lists go to a quarter of memory; dirty pages are written in bulk, as in the kernel.
///
/// ```
/// use larder_policy::{Linux247, replay::Replay};
/// let mut cache = Replay::new(Linux247::new(100)?)?;
/// for block in 0..1_000 {
///     cache.access(block % 10, block);
///     cache.access(100 + block, block);
/// }
/// assert_eq!(cache.hits(), 990); // the ten used often stay
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
///
/// `VERSION` says which of three kernels it is; each has a constructor.
#[derive(Debug)]
pub struct Linux247<const VERSION: u8 = VANILLA> {
    pub(super) pages: PageLists,
    targets: Targets,
    capacity: usize,
    rescues: u64,
    ignored: u64,
}

impl Linux247 {
    /// Linux 2.4.7 as released, for this many frames.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Self::make(frames)
    }
}

impl Linux247<USE_ONCE> {
    /// Linux 2.4.7 with "Optimization for use-once pages" (26 July 2001). A block comes in inactive, at age 0. Its first use, by
    /// the call that brought it or later, makes that 2 (`check_used_once`); any further use sets its Referenced bit, and when
    /// the block reaches the tail of an inactive list, that bit rescues it to the active ring. Nothing is dropped behind: what is
    /// used once leaves anyway. Blocks read ahead and never used leave unused.
    ///
    /// A block whose age has sunk to 0 on the active ring looks new again at its next use (its author says so).
    ///
    /// Source: D. Phillips, <01072622195600.00285@starship>. 10 bytes a frame; a hit is two stores.
    ///
    /// ```
    /// use larder_policy::{Linux247, replay::Replay};
    /// let mut cache = Replay::new(Linux247::use_once(1_000)?)?;
    /// for block in 0..300 {
    ///     cache.access(block, 0);
    ///     cache.access(block, 1);
    /// }
    /// for block in 1_000..6_000 {
    ///     cache.access(block, 2); // once: these leave
    /// }
    /// (0..300).for_each(|block| assert!(cache.access(block, 3)));
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Linux247::new).
    pub fn use_once(frames: usize) -> Result<Self, PolicyError> {
        Self::make(frames)
    }
}

impl Linux247<MERGED> {
    /// Linux 2.4.8 and 2.4.9: use-once as it was merged. As [`use_once`](Linux247::use_once), but `check_used_once` looks at inactive blocks only, and one
    /// that has an age, so was used before, goes to the active ring at this second use, not when it reaches the tail. Its
    /// Referenced bit stays set, which makes it older at the next scan: the double boost that its author later regretted.
    ///
    /// Source: `mm/filemap.c` of 2.4.8 and 2.4.9. 10 bytes a frame; a hit is one or two
    /// stores, the second use moves a node.
    ///
    /// ```
    /// use larder_policy::{Arrival, Block, Linux247, Policy, Touch};
    /// let mut rule = Linux247::merged(4)?;
    /// for frame in 0..4 {
    ///     rule.insert(frame, Arrival::demand(Block(frame.into()), 0, Default::default()));
    /// }
    /// rule.touch(0, Touch { request: 1 });
    /// assert_eq!(rule.explain()[0], ("active", 1.0)); // at once
    /// # Ok::<(), larder_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Linux247::new).
    pub fn merged(frames: usize) -> Result<Self, PolicyError> {
        Self::make(frames)
    }
}

impl<const VERSION: u8> Linux247<VERSION> {
    fn make(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            pages: PageLists::new(frames)?,
            targets: Targets::new(frames),
            rescues: 0,
            ignored: 0,
        })
    }

    /// drop_behind, and generic_file_write's deactivation of pages that were written to their end, are there.
    const DROPS_BEHIND: bool = VERSION == VANILLA;

    /// `lru_cache_add`.
    fn add(&mut self, page: Frame) {
        match VERSION {
            VANILLA => self.pages.add(page, On::Active, age::START),
            _ => self.pages.add(page, On::Dirty, 0),
        }
    }

    /// A page is used: by the call that brought it in, or as one that was found in the cache; then the lookup has set Referenced.
    /// `check_used_once` of the patch, and of 2.4.8.
    #[inline]
    fn used(&mut self, page: Frame) {
        if VERSION == VANILLA || VERSION == MERGED && self.pages.is_on(page, On::Active) {
            return;
        }
        if self.pages.age(page) == 0 {
            self.pages.set_age(page, age::START);
            self.pages.refer(page, false);
        } else if VERSION == MERGED {
            self.pages.move_to(page, On::Active); // activate_page: it has START at least
            self.pages
                .set_age(page, self.pages.age(page).max(age::START));
        }
    }

    /// `page_launder` and `reclaim_page`: the page's own signs of use. (Other users are the caller's business.)
    fn in_use(&self, page: Frame) -> bool {
        self.pages.referenced(page) || VERSION == VANILLA && self.pages.age(page) > 0
    }

    /// `deactivate_page_nolock`: forgets the uses of a page and moves an active one to an inactive list.
    fn deactivate(&mut self, page: Frame) {
        self.pages.set_age(page, 0);
        self.pages.refer(page, false);
        if self.pages.is_on(page, On::Active) {
            self.pages.move_to(page, On::Dirty);
        }
    }

    /// Parked pages are no part of the zone: else their share of the inactive target could not be met, and each eviction would go
    /// round the active list for it.
    fn fit_targets(&mut self) {
        let zone = self.capacity.saturating_sub(self.pages.parked());
        self.targets.resize(zone);
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
            if self.in_use(page) || state == FrameState::Pinned {
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
        if VERSION != VANILLA {
            // Referenced stays set (since 2.4.5): the next scan makes the page older.
            self.pages.set_age(page, age::START);
        }
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
                if self.in_use(page) || state == FrameState::Pinned {
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
                    self.deactivate(page);
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

impl<const VERSION: u8> Policy for Linux247<VERSION> {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.pages.total()
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        self.targets.press();
        self.add(frame);
        match arrival.reason {
            Reason::Readahead => {}
            Reason::Demand => self.used(frame),
            Reason::Write => {
                self.used(frame);
                if Self::DROPS_BEHIND {
                    self.deactivate(frame); // written to its end
                }
            }
        }
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        self.pages.refer(frame, true);
        self.used(frame);
    }

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        (0..wanted).take_while(|_| self.alloc_page(frames)).count()
    }

    fn remove(&mut self, frame: Frame) {
        self.pages.remove(frame);
        self.targets.relieve();
    }

    fn park(&mut self, frame: Frame) {
        self.pages.park(frame);
        self.fit_targets();
    }

    fn unpark(&mut self, frame: Frame) {
        self.pages.unpark(frame);
        self.fit_targets();
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.pages.grow(capacity(frames)?)?;
        self.capacity = frames;
        self.fit_targets();
        Ok(())
    }

    /// kswapd's second.
    fn tick<F: Frames>(&mut self, frames: &mut F) {
        self.kswapd(frames);
        self.targets.decay();
        self.background_ageing(frames);
    }

    fn drop_behind(&mut self, frame: Frame) {
        if Self::DROPS_BEHIND {
            self.deactivate(frame);
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
