//! The CPU layer: a stock's per-CPU magazines, two for every CPU, and the way to empty them from another thread.
//!
//! Sections find their slot through one word, `base`. To empty the CPU layer, a thread disables it: it points `base` at
//! the *disabled* slots, which are zero and so look empty to pop and full to push, and has the kernel restart every section
//! that is under way. From then on only the thread that disabled the CPU layer touches the live slots. The fast path pays nothing.
//!
//! A new CPU layer is disabled, too, until the first magazine comes. So making one costs nothing.

#[cfg(all(test, loom))]
mod loom_tests;
mod rounds;

use core::ptr::NonNull;
use std::sync::Arc;

use super::WORD;
use super::backoff::Backoff;
use super::locked::{self, Held};
use super::magazines::Magazine;
use super::sections::{BEYOND, DISABLED, NOT_NOW, Sections, restart_sequences};
use super::slot::{LIVE_BYTES, Slot, counts, disabled, lay_out};
use super::sync::{AtomicI64, AtomicU32, AtomicUsize, Ordering, yield_now};
use crate::os::lock::order::sleeps;
use crate::os::rseq::{Mode, mode};
use crate::os::tries::SLOT_TRIES;
use crate::os::{MAX_CPUS, MetaRegion, Span, System, fork, page_size, possible_cpus, usable_cpus};

/// Why a magazine was not put in the CPU layer. It still belongs to the caller.
#[derive(Debug)]
pub(super) enum NotExchanged {
    /// The slot changed in the meantime, or its lock is taken: look again.
    NotNow(Magazine),
    /// The CPU layer is being emptied, or closed for good.
    Disabled(Magazine),
}

/// The result of an attempt to begin emptying the CPU layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// The CPU layer is disabled, and this thread may empty it.
    Begun,
    /// Another thread empties it.
    Busy,
    /// The CPU layer is closed.
    Closed,
    /// The kernel would not restart the sections (a seccomp filter that came later).
    NoBarrier,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    PerCpu,
    Locked,
}

/// What the fast path needs comes first, so that a pointer to the CPU layer leads to it without an addition. It lies apart from
/// the slots within a page: see `lay_out`.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct CpuLayer {
    /// Address of the slots that sections use: the live or the disabled ones; in locked mode always the disabled ones, so that
    /// pop and push need not ask for the mode.
    base: AtomicUsize,
    /// How pop and push look there.
    sections: Sections,
    kind: Kind,
    /// In locked mode, what `base` is in per-CPU mode: the address of the live or the disabled slots.
    gate: AtomicUsize,
    /// Address of the live slots; 0 until the first magazine comes.
    live: AtomicUsize,
    /// Slots among which threads choose in locked mode.
    slots: usize,
    /// Slots that may have magazines: those of the CPUs that the machine reports as possible, and more when threads run on
    /// others.
    reach: AtomicUsize,
    /// Fork generation of the thread that empties the CPU layer; 0 when no thread does.
    draining: AtomicU32,
    closed: AtomicU32,
    /// Rounds that came here in magazines less those that left in magazines.
    came: AtomicI64,
    backoff: Backoff,
    system: Arc<dyn System>,
}

#[cfg(not(loom))]
const _: () = assert!(align_of::<CpuLayer>() == size_of::<Slot>());

impl CpuLayer {
    pub(super) fn new(system: Arc<dyn System>, mode: Mode) -> Self {
        let (kind, sections) = match mode {
            Mode::PerCpu(registration) => (Kind::PerCpu, Sections::new(registration)),
            Mode::Locked(_) => (Kind::Locked, Sections::idle()),
        };
        // Threads that cannot run at the same time need no slots of their own. To ask which CPUs are possible takes long.
        let slots = match kind {
            Kind::PerCpu => possible_cpus(),
            Kind::Locked => usable_cpus().min(MAX_CPUS),
        };
        Self {
            base: AtomicUsize::new(disabled()),
            sections,
            gate: AtomicUsize::new(disabled()),
            live: AtomicUsize::new(0),
            slots,
            reach: AtomicUsize::new(slots),
            kind,
            draining: AtomicU32::new(0),
            closed: AtomicU32::new(0),
            came: AtomicI64::new(0),
            backoff: Backoff::default(),
            system,
        }
    }

    /// The live slots, made if there are none; 0 when the system has no memory for them.
    fn live_or_make(&self) -> usize {
        match self.live() {
            0 => self.make_live(),
            live => live,
        }
    }

    #[cold]
    fn make_live(&self) -> usize {
        let region = || MetaRegion::new(self.system.clone(), LIVE_BYTES, align_of::<Slot>()).ok();
        let Some(region) = self.backoff.attempt(region) else {
            return 0;
        };
        let made = lay_out(&region);
        match self
            .live
            .compare_exchange(0, made, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => {
                // Released by `drop` below. The loser of the race drops its region at once.
                region.into_span();
                self.heal();
                made
            }
            Err(live) => live,
        }
    }

    fn live(&self) -> usize {
        self.live.load(Ordering::Acquire)
    }

    /// The word that says whether the CPU layer is disabled.
    fn gate(&self) -> &AtomicUsize {
        match self.kind {
            Kind::PerCpu => &self.base,
            Kind::Locked => &self.gate,
        }
    }

    fn is_live(&self) -> bool {
        self.gate().load(Ordering::Acquire) != disabled()
    }

    /// The mode that this process would use for a new CPU layer.
    pub(super) fn default_mode() -> Mode {
        mode()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) != 0
    }

    /// Exchanges an empty magazine of this CPU for `new`. `None` when the CPU had none in that place.
    pub(super) fn replace_empty(&self, new: Magazine) -> Result<Option<Magazine>, NotExchanged> {
        // SAFETY: `replace` passes the CPU layer's own words.
        self.replace(
            new,
            |s, base, live, end, top| unsafe { s.replace_empty(base, live, end, top) },
            |slot, top| slot.replace_empty(top),
        )
    }

    /// Exchanges a full magazine of this CPU for `new`.
    pub(super) fn replace_full(&self, new: Magazine) -> Result<Option<Magazine>, NotExchanged> {
        // SAFETY: `replace` passes the CPU layer's own words.
        self.replace(
            new,
            |s, base, live, end, top| unsafe { s.replace_full(base, live, end, top) },
            |slot, top| slot.replace_full(top),
        )
    }

    /// Gives this CPU the magazine if place `which` (0 or 1) has none.
    pub(super) fn add(&self, which: usize, new: Magazine) -> Result<(), NotExchanged> {
        self.replace(
            new,
            // SAFETY: `replace` passes the CPU layer's own words.
            |s, base, live, end, top| unsafe { s.set_if_none(base, live, end, which * WORD, top) },
            |slot, top| slot.set_if_none(which, top).then_some(0),
        )
        .map(|_| ())
    }

    /// The exchange that the three above have in common. `section` and `held` return the old top; the section may
    /// return `NOT_NOW`, `DISABLED` or `BEYOND` instead.
    fn replace(
        &self,
        new: Magazine,
        section: impl Fn(Sections, &AtomicUsize, usize, usize, usize) -> usize,
        held: impl FnOnce(&mut Held<'_>, usize) -> Option<usize>,
    ) -> Result<Option<Magazine>, NotExchanged> {
        let live = self.live_or_make();
        if live == 0 {
            return Err(NotExchanged::NotNow(new));
        }
        let rounds = new.len();
        let top = new.into_top();
        let result = match self.kind {
            Kind::PerCpu => loop {
                let reach = self.reach.load(Ordering::Relaxed);
                let end = live + reach * size_of::<Slot>();
                match section(self.sections, &self.base, live, end, top) {
                    // `reach` grows before the magazine is there: a thread that empties the CPU layer disables it first and
                    // reads `reach` then.
                    BEYOND if reach < MAX_CPUS => {
                        let more = (2 * reach).clamp(1, MAX_CPUS);
                        self.reach.fetch_max(more, Ordering::SeqCst);
                    }
                    BEYOND => break NOT_NOW,
                    result => break result,
                }
            },
            Kind::Locked => match self.hold() {
                Some(mut slot) => held(&mut slot, top).unwrap_or(NOT_NOW),
                None if self.is_live() => NOT_NOW,
                None => DISABLED,
            },
        };
        // SAFETY: refused, so the magazine is still this function's; or accepted, so the old one now is.
        let owned = |top| unsafe { Magazine::from_top(top) };
        match result {
            NOT_NOW => Err(NotExchanged::NotNow(
                owned(top).unwrap_or_else(|| unreachable!("new is a magazine")),
            )),
            DISABLED => Err(NotExchanged::Disabled(
                owned(top).unwrap_or_else(|| unreachable!("new is a magazine")),
            )),
            old => {
                let old = owned(old);
                let left = old.as_ref().map_or(0, Magazine::len);
                self.count(rounds as i64 - left as i64);
                Ok(old)
            }
        }
    }

    /// Lets this CPU's magazines hold `rounds`; false when it does not have two.
    pub(super) fn set_capacity(&self, rounds: usize) -> bool {
        let bytes = rounds * WORD;
        match self.kind {
            // SAFETY: as in `pop_section`; callers pass at most MAX_ROUNDS.
            Kind::PerCpu => unsafe { self.sections.set_capacity(&self.base, self.live(), bytes) },
            Kind::Locked => self.hold().is_some_and(|mut slot| slot.set_capacity(bytes)),
        }
    }

    /// Takes all magazines of all CPUs. False when the CPU layer is closed, when another thread empties it, when the kernel does
    /// not restart the sections, or when some slot's lock could not be taken. Calls `begun` first, unless it takes nothing.
    pub(super) fn drain(&self, begun: impl FnOnce(), take: impl FnMut(Magazine)) -> bool {
        if self.begin_drain() != Begin::Begun {
            return false;
        }
        begun();
        let all = self.drain_disabled(take);
        self.end_drain();
        all
    }

    /// Enables the CPU layer, unless it is closed or has nothing to enable.
    fn end_drain(&self) {
        let live = self.live();
        if live != 0 && !self.is_closed() {
            self.gate().store(live, Ordering::Release);
        }
        self.draining.store(0, Ordering::Release);
    }

    /// Waits a while for the thread that empties the CPU layer.
    pub(super) fn await_drain(&self) {
        sleeps("the thread that empties a CPU layer");
        for _ in 0..SLOT_TRIES {
            let seen = self.draining.load(Ordering::Acquire);
            if seen == 0 || seen != fork::generation() {
                return;
            }
            yield_now();
        }
    }

    /// Disables the CPU layer for good and takes all magazines.
    pub(super) fn close(&self, take: impl FnMut(Magazine)) -> bool {
        let begun = loop {
            match self.begin_drain() {
                Begin::Busy => {
                    sleeps("the thread that empties a CPU layer");
                    yield_now();
                }
                Begin::Closed => return true,
                begun => break begun,
            }
        };
        self.closed.store(1, Ordering::Release);
        if begun == Begin::NoBarrier {
            // A section under way may still commit, so nothing is taken. What is in the CPU layer is lost and never used again.
            self.gate().store(disabled(), Ordering::SeqCst);
            return false;
        }
        let all = self.drain_disabled(take);
        self.draining.store(0, Ordering::Release);
        all
    }

    /// Enables a CPU layer that is disabled although no thread empties it: a new one; one whose slots were made during a drain;
    /// or, in the child of a fork, one whose drain the fork interrupted, since the draining thread does not exist in the
    /// child. What such a drain had not taken yet is still in the live slots.
    pub(super) fn heal(&self) {
        if !self.is_live() && self.seize() {
            self.end_drain();
        }
    }

    /// Rounds came or left in magazines.
    fn count(&self, rounds: i64) {
        if rounds != 0 {
            self.came.fetch_add(rounds, Ordering::Relaxed);
        }
    }

    /// Rounds taken from the magazines of all CPUs, and rounds given. Rounds taken are not counted one by one: they are
    /// those that came and are not here. So the first number is off by what happens during this call.
    pub(super) fn counts(&self) -> (u64, u64) {
        let (mut pushes, mut here) = (0, 0);
        for i in 0..self.reach() {
            // SAFETY: a live slot.
            let (given, rounds) = unsafe { counts(self.slot(i)) };
            pushes += given;
            here += rounds;
        }
        let pops = pushes as i64 + self.came.load(Ordering::Relaxed) - here;
        (u64::try_from(pops).unwrap_or(0), pushes)
    }

    /// Slots that may have magazines, of the live ones if there are any.
    fn reach(&self) -> usize {
        if self.live() == 0 {
            return 0;
        }
        self.reach.load(Ordering::SeqCst)
    }

    /// Pretends that the machine reports so many CPUs.
    #[cfg(test)]
    pub(super) fn pretend_cpus(&mut self, cpus: usize) {
        self.reach.store(cpus, Ordering::Relaxed);
    }

    /// Slot `i`, of a CPU layer that has live ones.
    fn slot(&self, i: usize) -> *mut Slot {
        (self.live() + i * size_of::<Slot>()) as *mut Slot
    }

    /// A slot for this thread in locked mode: its own by hash, else a neighbour, else none.
    fn hold(&self) -> Option<Held<'_>> {
        if self.live() == 0 {
            return None;
        }
        let mine = locked::thread_number();
        let held = (0..2).find_map(|step| {
            // SAFETY: a live slot of this CPU layer; in locked mode slots are only used through the lock.
            unsafe { locked::try_hold(self.slot((mine + step) % self.slots)) }
        })?;
        // Checked under the lock: a thread that disables the CPU layer takes every lock afterwards.
        self.is_live().then_some(held)
    }

    /// Claims for this thread the right to disable and enable; false when another thread has it.
    fn seize(&self) -> bool {
        let generation = fork::generation();
        let seen = self.draining.load(Ordering::Relaxed);
        seen != generation
            && self
                .draining
                .compare_exchange(seen, generation, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Claims for this thread the right to empty the CPU layer, and disables it.
    fn begin_drain(&self) -> Begin {
        if !self.seize() {
            return Begin::Busy;
        }
        if self.is_closed() {
            self.draining.store(0, Ordering::Release);
            return Begin::Closed;
        }
        let was_live = self.is_live();
        self.gate().store(disabled(), Ordering::SeqCst);
        // A CPU layer that was disabled already has no section to restart.
        if was_live && matches!(self.kind, Kind::PerCpu) && !restart_sequences() {
            // Without the barrier a section under way may still commit: nothing may be taken.
            self.end_drain();
            return Begin::NoBarrier;
        }
        Begin::Begun
    }

    fn drain_disabled(&self, mut take: impl FnMut(Magazine)) -> bool {
        let mut all = true;
        for i in 0..self.reach() {
            let tops = match self.kind {
                Kind::PerCpu => {
                    let slot = self.slot(i);
                    // SAFETY: the CPU layer is disabled and every section restarted, so this thread alone uses the slots.
                    // Untouched slots are read only, to leave their memory unbacked.
                    let body = unsafe { &(*slot).body };
                    match body.tops() {
                        [0, 0] => [0, 0],
                        _ => body.clear(),
                    }
                }
                Kind::Locked => match self.hold_after_tries(i) {
                    Some(mut slot) => slot.clear(),
                    None => {
                        all = false;
                        continue;
                    }
                },
            };
            for top in tops {
                // SAFETY: just taken out of the slot that owned it.
                if let Some(magazine) = unsafe { Magazine::from_top(top) } {
                    self.count(-(magazine.len() as i64));
                    take(magazine);
                }
            }
        }
        all
    }

    /// Takes all magazines of a CPU layer that no other thread uses and that is never used again.
    pub(super) fn clear(&mut self, mut take: impl FnMut(Magazine)) {
        for i in 0..self.reach() {
            let slot = self.slot(i);
            // SAFETY: the CPU layer is borrowed mutably, so no section and no holder is at its slots.
            for top in unsafe { (*slot).body.tops() } {
                // SAFETY: the slot owned it, and is never looked at again: the caller is dropping the CPU layer.
                if let Some(magazine) = unsafe { Magazine::from_top(top) } {
                    take(magazine);
                }
            }
        }
    }

    fn hold_after_tries(&self, i: usize) -> Option<Held<'_>> {
        (0..SLOT_TRIES).find_map(|_| {
            // SAFETY: as in `hold`.
            let held = unsafe { locked::try_hold(self.slot(i)) };
            if held.is_none() {
                sleeps("the thread that holds a slot");
                yield_now();
            }
            held
        })
    }
}

impl Drop for CpuLayer {
    fn drop(&mut self) {
        // The region begins at a page, and the slots less than a page behind.
        let region = self.live() & !(page_size() - 1);
        if let Some(at) = NonNull::new(region as *mut u8) {
            let span = Span {
                at,
                len: LIVE_BYTES.next_multiple_of(page_size()),
            };
            // SAFETY: exactly the region that `make_live` mapped; its last user is dropping it. A refusal leaks addresses.
            let _ = unsafe { self.system.release(span) };
        }
    }
}
