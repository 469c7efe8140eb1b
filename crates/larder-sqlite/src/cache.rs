//! One cache, as SQLite calls it: by one thread at a time, that of its connection.

use core::cell::{RefCell, UnsafeCell};
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use larder_policy::{
    Arrival, Block, Frame, FrameState, Frames as Owner, Policy, Reason, Shadow, Shadows,
};

use crate::ffi::Page;
use crate::frames::{Frames, MOST, PARKED, PINNED, Slot};
use crate::process::{Counters, Process, Room, count};
use crate::rule::Rule;
use crate::table::Table;

/// Pages that a cache may have whatever the budget says: SQLite needs some at once to go on.
const LEAST: usize = 16;
/// Of the pages that there may be, the share in tenths that may be pinned before SQLite is asked to write some of them.
const MOST_PINNED_TENTHS: usize = 9;
/// A rule begins anew when its size changes, and a share of a budget moves often: it gets larger by one in so many frames, and smaller
/// when it has twice that too many.
const RESIZE_SHARE: usize = 16;
/// Most frames of a new rule. Its tables have about ten bytes for each frame, and a limit may allow far more pages than ever come.
const FIRST: usize = 1 << 16;

/// How SQLite asks for a page that is not there: not at all, or if it costs little, since SQLite can write dirty pages and ask again.
/// With any other number the page must come.
pub(crate) const FIND: c_int = 0;
pub(crate) const IF_EASY: c_int = 1;

/// How a new rule is made for so many frames. None: no memory.
pub(crate) type Make<P> = fn(frames: usize) -> Option<P>;

/// A cache, and its numbers, which other threads read.
pub(crate) struct Cache<P: Policy> {
    counters: Counters,
    inner: UnsafeCell<Inner<P>>,
    process: &'static Process,
}

struct Inner<P> {
    table: Table,
    rule: Rule<P>,
    /// Pages that the cache may have, by what SQLite said.
    limit: usize,
    /// The same, or any number where pages may not leave.
    most: usize,
    /// Frames up to here may be named to the rule.
    named: usize,
    frames: Frames,
    /// Frames that the rule had to be told are pinned. It has room for all.
    looked_at: RefCell<Vec<Frame>>,
    shadows: Shadows,
    /// No page has a larger number.
    largest: u32,
    purgeable: bool,
    /// Bytes of a page.
    bytes: usize,
    /// Bytes of SQLite's own, which a new page must have zeroed in part.
    extra: usize,
    make: Make<P>,
}

/// The cache as the rule sees it.
struct Victims<'c> {
    slots: &'c [*mut Slot],
    looked_at: &'c RefCell<Vec<Frame>>,
    gone: Option<(Frame, Option<Shadow>)>,
}

impl Owner for Victims<'_> {
    #[inline]
    fn state(&self, frame: Frame) -> FrameState {
        // SAFETY: the rule knows frames that hold a page, whose slots are alive.
        let slot = unsafe { &mut *self.slots[frame as usize] };
        if !slot.is(PINNED) {
            return FrameState::Clean;
        }
        if !slot.is(PARKED) {
            slot.word |= PARKED;
            self.looked_at.borrow_mut().push(frame);
        }
        FrameState::Pinned
    }

    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        self.gone = Some((frame, shadow));
    }
}

impl<P: Policy> Cache<P> {
    /// A cache of pages of `bytes` bytes. None: no memory.
    ///
    /// # Safety
    /// The cache lives until [`destroy`](Self::destroy), and calls of its methods do not overlap.
    pub(crate) unsafe fn create(
        bytes: usize,
        extra: usize,
        purgeable: bool,
        make: Make<P>,
        process: &'static Process,
    ) -> Option<*mut Self> {
        let frames = Frames::new(bytes, extra, process)?;
        let frame_bytes = frames.frame_bytes();
        let cache = Self {
            counters: Counters::default(),
            inner: UnsafeCell::new(Inner {
                table: Table::new()?,
                rule: Rule::none(),
                limit: LEAST,
                most: if purgeable { LEAST } else { usize::MAX },
                named: 0,
                frames,
                looked_at: RefCell::default(),
                shadows: Shadows::new(0),
                largest: 0,
                purgeable,
                bytes,
                extra,
                make,
            }),
            process,
        };
        cache.counters.page_bytes.store(bytes, Relaxed);
        cache.counters.frame_bytes.store(frame_bytes, Relaxed);
        cache.counters.purgeable.store(purgeable, Relaxed);
        let layout = core::alloc::Layout::new::<Self>();
        // SAFETY: a cache has bytes.
        let at = unsafe { std::alloc::alloc(layout) }.cast::<Self>();
        if at.is_null() {
            return None;
        }
        // SAFETY: the memory is new and has the size and alignment of a cache.
        unsafe { at.write(cache) };
        // SAFETY: the cache stays there until `destroy`, which takes it off the list.
        if !unsafe { process.enter(&(*at).counters) } {
            // SAFETY: it was made as a box is, and no other owner has it.
            drop(unsafe { Box::from_raw(at) });
            return None;
        }
        Some(at)
    }

    /// # Safety
    /// The cache came from [`create`](Self::create), and nothing uses it any more.
    pub(crate) unsafe fn destroy(cache: *mut Self) {
        // SAFETY: the caller's word; the allocation is that of a box.
        let mut cache = unsafe { Box::from_raw(cache) };
        cache.process.leave(&cache.counters);
        let inner = cache.inner.get_mut();
        let pages = inner.table.len();
        if inner.purgeable {
            cache.process.give(pages * inner.bytes);
        }
        // SQLite has truncated it before: what counts is how many pages there were.
        let most = inner.frames.len() * inner.bytes;
        let process = cache.process;
        drop(cache);
        process.ended(most);
    }

    /// What calls that do not overlap work on.
    #[inline]
    #[allow(clippy::mut_from_ref)] // SQLite calls a cache's methods by one thread at a time, and none of them calls another one.
    fn inner(&self) -> &mut Inner<P> {
        // SAFETY: as said; other threads see the counters alone.
        unsafe { &mut *self.inner.get() }
    }

    pub(crate) fn set_limit(&self, pages: usize) {
        let inner = self.inner();
        inner.limit = pages.clamp(1, MOST);
        if inner.purgeable {
            // Also none: then a page leaves as soon as it is not in use.
            inner.most = pages.min(MOST);
        }
        self.counters.limit.store(inner.limit, Relaxed);
        if let Some(capacity) = inner.rule.get().map(P::capacity) {
            let first = self.expected(inner).min(FIRST);
            let fitting = capacity.clamp(first, inner.limit);
            if fitting != capacity {
                inner.fit_rule(fitting);
            }
        }
        self.keep_limit(inner);
    }

    /// Pages that may come, by what SQLite said and by the budget.
    fn expected(&self, inner: &Inner<P>) -> usize {
        let budget = self.process.budget_pages(inner.bytes);
        inner.limit.min(budget.max(LEAST))
    }

    pub(crate) fn len(&self) -> usize {
        self.inner().table.len()
    }

    /// The page of a number, pinned; null if it is not there and does not come.
    ///
    /// A hit and its unpin are 34 instructions while the rule's answer is that it changes nothing, and some 50 more else, without a lock or
    /// an atomic read-modify-write.
    #[inline]
    pub(crate) fn fetch(&self, key: u32, create: c_int) -> *mut Page {
        let inner = self.inner();
        // SAFETY: slots in the table are alive.
        let Some(slot) = (unsafe { inner.table.find(key).as_mut() }) else {
            return self.miss(key, create);
        };
        count(&self.counters.hits);
        if !slot.is(PINNED) {
            slot.word |= PINNED;
            self.set_pinned(self.pinned() + 1);
            if !inner.rule.is_settled(slot) {
                return self.touch(slot);
            }
        }
        ptr::from_mut(slot).cast()
    }

    /// Not inlined, and without unwinding (as the two below), so that the path of a settled page needs neither stack nor saved registers.
    #[inline(never)]
    extern "C" fn touch(&self, slot: &mut Slot) -> *mut Page {
        self.inner().rule.touch(slot);
        ptr::from_mut(slot).cast()
    }

    #[inline]
    fn pinned(&self) -> usize {
        self.counters.pinned.load(Relaxed)
    }

    #[inline]
    fn set_pinned(&self, pinned: usize) {
        self.counters.pinned.store(pinned, Relaxed);
    }

    #[cold]
    #[inline(never)]
    extern "C" fn miss(&self, key: u32, create: c_int) -> *mut Page {
        if create == FIND {
            return ptr::null_mut();
        }
        let inner = self.inner();
        let Some(slot) = self.new_page(inner, key, create) else {
            return ptr::null_mut();
        };
        inner.largest = inner.largest.max(key);
        self.set_pinned(self.pinned() + 1);
        self.counters.pages.store(inner.table.len(), Relaxed);
        count(&self.counters.misses);
        slot.cast()
    }

    fn new_page(&self, inner: &mut Inner<P>, key: u32, create: c_int) -> Option<*mut Slot> {
        if !inner.purgeable {
            let slot = inner.frames.get()?;
            inner.enter(slot, key);
            return Some(slot);
        }
        let len = inner.table.len();
        let room = match len < inner.limit {
            true => self.process.room(inner.bytes, len, LEAST),
            false => self.process.room_of_full(inner.bytes, len, LEAST),
        };
        let most = if room == Room::Free {
            inner.limit
        } else {
            len.max(1)
        };
        if create == IF_EASY && self.pinned() * 10 >= most * MOST_PINNED_TENTHS {
            return None;
        }
        let expected = self.expected(inner);
        inner.prepare(most, expected)?;
        let rule = inner.rule.change()?;
        let block = Block(key.into());
        let shadow = inner.shadows.take(block, rule);
        let admission = rule.miss(block, shadow, Reason::Demand);
        if room == Room::Less
            && let Some(slot) = self.evict(inner)
        {
            self.free(inner, slot);
        }
        let recycled = match room {
            Room::Free => None,
            _ => self.evict(inner),
        };
        let slot = match recycled {
            Some(slot) => slot,
            None => match inner.one_more(expected) {
                Some(slot) => {
                    self.process.take(inner.bytes);
                    slot
                }
                // No memory is left but that of pages that may leave.
                None => self.evict(inner)?,
            },
        };
        inner.enter(slot, key);
        let arrival = Arrival::demand(block, inner.rule.request(), admission);
        // SAFETY: the slot is alive.
        let frame = unsafe { (*slot).frame() };
        inner.rule.change()?.insert(frame, arrival);
        Some(slot)
    }

    /// A page that may leave does so. Its slot is in no table.
    fn evict(&self, inner: &mut Inner<P>) -> Option<*mut Slot> {
        if inner.table.len() <= self.pinned() {
            return None;
        }
        let rule = inner.rule.change()?;
        let mut victims = Victims {
            slots: inner.frames.slots(),
            looked_at: &inner.looked_at,
            gone: None,
        };
        rule.evict(&mut victims, 1);
        let gone = victims.gone;
        for frame in inner.looked_at.get_mut().drain(..) {
            rule.park(frame);
        }
        let (frame, shadow) = gone?;
        let slot = inner.frames.slots()[frame as usize];
        // SAFETY: the rule knows frames that hold a page.
        let key = unsafe { (*slot).key };
        if let Some(shadow) = shadow {
            inner.shadows.put(Block(key.into()), shadow, rule);
        }
        // SAFETY: the page was in the table.
        unsafe { inner.table.remove(slot) };
        count(&self.counters.evictions);
        Some(slot)
    }

    /// Gives the memory of a slot back that is in no table and unknown to the rule.
    fn free(&self, inner: &mut Inner<P>, slot: *mut Slot) {
        // SAFETY: the slot is alive until now.
        inner.frames.put(unsafe { (*slot).frame() });
        if inner.purgeable {
            self.process.give(inner.bytes);
        }
        self.counters.pages.store(inner.table.len(), Relaxed);
    }

    /// Lets pages go until there are no more than there may be.
    fn keep_limit(&self, inner: &mut Inner<P>) {
        while inner.table.len() > inner.most
            && let Some(slot) = self.evict(inner)
        {
            self.free(inner, slot);
        }
    }

    /// # Safety
    /// SQLite has the page from [`fetch`](Self::fetch), and does not use it any more.
    #[inline]
    pub(crate) unsafe fn unpin(&self, page: *mut Page, discard: bool) {
        let inner = self.inner();
        // SAFETY: the page is the first field of its slot, which is alive while it is pinned.
        let slot = unsafe { &mut *page.cast::<Slot>() };
        if discard || slot.is(PARKED) || inner.table.len() > inner.most {
            return self.unpin_slow(slot, discard);
        }
        slot.word &= !PINNED;
        self.set_pinned(self.pinned() - 1);
    }

    #[cold]
    #[inline(never)]
    extern "C" fn unpin_slow(&self, slot: *mut Slot, discard: bool) {
        let inner = self.inner();
        if discard {
            return self.discard(inner, slot, false);
        }
        // SAFETY: as in `unpin`.
        let slot = unsafe { &mut *slot };
        let parked = slot.is(PARKED);
        slot.word = slot.frame();
        self.set_pinned(self.pinned() - 1);
        if parked && let Some(rule) = inner.rule.change() {
            rule.unpark(slot.frame());
        }
        self.keep_limit(inner);
    }

    /// A page is gone; or with `stale`, its contents are.
    #[cold]
    #[inline(never)]
    fn discard(&self, inner: &mut Inner<P>, slot: *mut Slot, stale: bool) {
        // SAFETY: the callers have slots of the table.
        let slot_ref = unsafe { &mut *slot };
        if slot_ref.is(PINNED) {
            self.set_pinned(self.pinned() - 1);
        }
        let (frame, block) = (slot_ref.frame(), Block(slot_ref.key.into()));
        if let Some(rule) = inner.rule.change() {
            if slot_ref.is(PARKED) {
                rule.unpark(frame);
            }
            if stale {
                if let Some(shadow) = rule.invalidate(frame) {
                    inner.shadows.put(block, shadow, rule);
                }
            } else {
                rule.remove(frame);
            }
        }
        // SAFETY: the slot is in the table.
        unsafe { inner.table.remove(slot) };
        self.free(inner, slot);
    }

    /// # Safety
    /// As [`unpin`](Self::unpin), but the page stays in use, under another number.
    pub(crate) unsafe fn rekey(&self, page: *mut Page, to: u32) {
        let inner = self.inner();
        // SAFETY: slots in the table are alive.
        let before = unsafe { inner.table.find(to) };
        let slot = page.cast::<Slot>();
        if before == slot {
            return;
        }
        if !before.is_null() {
            self.discard(inner, before, false);
        }
        // SAFETY: the page's slot is in the table, and is put in again under its new key.
        unsafe {
            inner.table.remove(slot);
            (*slot).key = to;
            inner.table.insert(slot);
        }
        inner.largest = inner.largest.max(to);
        // SAFETY: as above.
        let slot = unsafe { &mut *slot };
        if let Some(rule) = inner.rule.change() {
            if slot.is(PARKED) {
                slot.word &= !PARKED;
                rule.unpark(slot.frame());
            }
            rule.rekey(slot.frame(), Block(to.into()));
        }
    }

    /// Pages of this number and above are gone, pinned or not. With all pages, SQLite says that another connection has changed the file.
    pub(crate) fn truncate(&self, from: u32) {
        let inner = self.inner();
        // Page 1 may stay.
        let stale = from <= 2;
        if inner.table.len() == 0 || from > inner.largest {
            return;
        }
        let numbers = (inner.largest - from) as usize;
        if numbers < inner.table.chains() {
            for key in from..=inner.largest {
                // SAFETY: slots in the table are alive.
                let slot = unsafe { inner.table.find(key) };
                if !slot.is_null() {
                    self.discard(inner, slot, stale);
                }
            }
        } else {
            for frame in 0..inner.frames.len() {
                let slot = inner.frames.slots()[frame];
                // SAFETY: what is not null there is alive.
                if unsafe { slot.as_ref() }.is_some_and(|slot| slot.key >= from) {
                    self.discard(inner, slot, stale);
                }
            }
        }
        inner.largest = from.saturating_sub(1);
    }

    /// Gives all memory back that is not in use.
    pub(crate) fn shrink(&self) {
        let inner = self.inner();
        while let Some(slot) = self.evict(inner) {
            self.free(inner, slot);
        }
        if inner.table.len() == 0
            && let Some(table) = Table::new()
        {
            inner.table = table;
            inner.frames.clear();
            inner.looked_at = RefCell::default();
            if inner.purgeable {
                inner.rule.set(None);
                inner.named = 0;
                inner.shadows = Shadows::new(0);
            }
        }
        self.process.trim();
    }
}

impl<P: Policy> Inner<P> {
    /// Puts a new page into the table, pinned.
    fn enter(&mut self, slot: *mut Slot, key: u32) {
        // SAFETY: the slot is alive and in no table; its extra bytes are as many as SQLite asked for.
        unsafe {
            (*slot).key = key;
            (*slot).word = (*slot).frame() | PINNED;
            let zeroed = self.extra.min(size_of::<*mut c_void>());
            ptr::write_bytes((*slot).page.extra.cast::<u8>(), 0, zeroed);
            self.table.insert(slot);
        }
    }

    /// There is a rule, and not for many more frames than there may be now. A new one is for the pages that may come, up to [`FIRST`].
    fn prepare(&mut self, most: usize, expected: usize) -> Option<()> {
        if self.rule.get().is_none() {
            let frames = expected.min(FIRST);
            self.rule.set(Some((self.make)(frames)?));
            self.named = frames;
            self.shadows = Shadows::roomy(expected);
        }
        let capacity = self.rule.get()?.capacity();
        if most < capacity - capacity / (RESIZE_SHARE / 2) {
            self.fit_rule(most);
        }
        Some(())
    }

    /// Without memory for the new size, the rule keeps the old one.
    fn fit_rule(&mut self, frames: usize) {
        if let Some(rule) = self.rule.change()
            && rule.resize(frames.max(self.table.len()).max(1)).is_ok()
        {
            self.named = self.named.max(rule.capacity());
        }
    }

    /// One frame more that has memory, and that the rule may know. None: no memory.
    fn one_more(&mut self, expected: usize) -> Option<*mut Slot> {
        self.name_one_more(expected)?;
        self.frames.get()
    }

    /// The next frame may be named to the rule, and be pinned while it looks.
    fn name_one_more(&mut self, expected: usize) -> Option<()> {
        let next = self.frames.next();
        let rule = self.rule.change()?;
        let capacity = rule.capacity();
        if next >= self.named || self.table.len() >= capacity {
            // All are pinned and SQLite needs one more, or the rule was made for fewer.
            let mut frames = capacity.max(next + 1) + capacity / RESIZE_SHARE + 1;
            if capacity == self.named {
                // The rule was never made smaller: the cache still fills, and there is little to learn anew.
                frames = frames.max(expected.min(2 * capacity));
            }
            rule.resize(frames).ok()?;
            self.named = self.named.max(frames);
        }
        let looked_at = self.looked_at.get_mut();
        if looked_at.capacity() <= self.table.len() {
            looked_at.try_reserve(2 * self.table.len() + LEAST).ok()?;
        }
        Some(())
    }
}

/// The tests drive this part against a naive cache.
#[cfg(test)]
impl<P: Policy> Cache<P> {
    /// Frames that the rule is for, if there is one.
    pub(crate) fn capacity(&self) -> Option<usize> {
        self.inner().rule.get().map(P::capacity)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let inner = self.inner();
        let there = |slot: &&*mut Slot| !slot.is_null();
        let slots: Vec<*mut Slot> = inner.frames.slots().iter().filter(there).copied().collect();
        // SAFETY: what is not null is alive.
        let pinned = |slot: &&*mut Slot| unsafe { (***slot).is(PINNED) };
        let pinned = slots.iter().filter(pinned).count();
        if (slots.len(), pinned) != (inner.table.len(), self.pinned()) {
            return Err(format!("{} slots, {pinned} of them pinned", slots.len()));
        }
        for (frame, &slot) in inner.frames.slots().iter().enumerate() {
            // SAFETY: as above.
            if let Some(here) = unsafe { slot.as_ref() }
                // SAFETY: as above.
                && (here.frame() as usize != frame || unsafe { inner.table.find(here.key) } != slot)
            {
                return Err(format!("frame {frame} is not where {here:?} says"));
            }
        }
        match inner.rule.get() {
            Some(rule) if rule.len() != slots.len() => Err(format!(
                "the rule knows {} of {} pages",
                rule.len(),
                slots.len()
            )),
            Some(rule) => rule.check(),
            None => Ok(()),
        }
    }
}
