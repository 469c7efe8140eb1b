//! Which rule chooses among which frames: one for all blocks, and one more for each tenant with a limit.

use std::collections::HashMap;

use super::dirty::DirtyBlocks;
use super::epoch_clock::Marks;
use super::eviction::Victims;
use super::frame_set::FrameSet;
use super::rule::{CacheRule, NamedRule, Use};
use crate::error::CacheError;
use crate::key::{Key, TenantId};
use crate::table::Table;
use larder_policy::{Admission, Arrival, Block, Frame, Reason, Shadow, Shadows};

/// The partition of all blocks that are not of a tenant with a limit.
pub(super) const SHARED: u32 = 0;

/// What a rule said at a miss, and when: to another rule, or another size, it says nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admitted {
    admission: Admission,
    changes: u64,
    /// It still remembered the block.
    pub(super) remembered: bool,
}

/// The frames of a partition, which its rule knows by numbers of its own: so the rule's tables are as large as the partition.
#[derive(Debug, Default)]
struct Slots {
    frames: Vec<Frame>,
    free: Vec<u32>,
}

impl Slots {
    fn reserve(&mut self, slots: usize) -> Result<(), CacheError> {
        let more = slots.saturating_sub(self.frames.len());
        let free = slots.saturating_sub(self.free.len());
        let reserved = self.frames.try_reserve_exact(more);
        let reserved = reserved.and_then(|()| self.free.try_reserve_exact(free));
        reserved.map_err(|_| CacheError::Memory { frames: slots })
    }

    fn take(&mut self, frame: Frame) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.frames[slot as usize] = frame;
                slot
            }
            None => {
                self.frames.push(frame);
                self.frames.len() as u32 - 1
            }
        }
    }
}

/// A rule, the frames that it chooses among, and what it remembers of blocks that left.
pub(super) struct Partition {
    /// The name of the rule.
    pub(super) name: &'static str,
    pub(super) rule: Box<dyn CacheRule>,
    shadows: Shadows,
    /// Frames for which the shadows have room.
    room: usize,
    /// Whose blocks these are. None is the [`SHARED`] partition's, whose rule knows the frames by their own numbers.
    tenant: Option<TenantId>,
    slots: Slots,
    /// Dirty blocks, and blocks that are being read or written.
    pub(super) dirty: usize,
    pub(super) moving: usize,
    /// How many came to rest.
    pub(super) rested: u64,
    /// Where writing went on to when room was last made here.
    pub(super) swept: Key,
}

impl Partition {
    fn new((name, rule): NamedRule, frames: usize, tenant: Option<TenantId>) -> Self {
        Self {
            name,
            rule,
            shadows: Shadows::new(frames),
            room: frames,
            tenant,
            slots: Slots::default(),
            dirty: 0,
            moving: 0,
            rested: 0,
            swept: Key(0),
        }
    }

    fn len(&self) -> usize {
        self.rule.len()
    }

    fn capacity(&self) -> usize {
        self.rule.capacity()
    }

    /// Blocks beyond its size.
    pub(super) fn excess(&self) -> usize {
        self.len().saturating_sub(self.capacity())
    }

    /// Which frames the rule's numbers stand for, if they are not the frames' own.
    fn frames(&self) -> Option<&[Frame]> {
        self.tenant.is_some().then_some(&self.slots.frames)
    }

    pub(super) fn keep(&mut self, key: Key, shadow: Shadow) {
        self.rule.keep(&mut self.shadows, key, shadow);
    }

    fn resize(&mut self, frames: usize) -> Result<(), CacheError> {
        if self.tenant.is_some() {
            self.slots.reserve(frames.max(self.len()))?;
        }
        self.rule.resize(frames)?;
        if frames > self.room {
            (self.shadows, self.room) = (Shadows::new(frames), frames);
        }
        Ok(())
    }
}

fn reason(unused: bool) -> Reason {
    match unused {
        true => Reason::Readahead,
        false => Reason::Demand,
    }
}

/// A block that is in memory already comes to a rule.
fn bring(rule: &mut dyn CacheRule, slot: Frame, key: Key, reason: Reason) {
    let block = Block(key.0);
    let admission = rule.miss(block, None, reason);
    let arrival = Arrival::demand(block, 0, admission);
    rule.insert(slot, Arrival { reason, ..arrival });
}

/// All of them.
pub(super) struct Partitions {
    all: Vec<Partition>,
    of_tenant: HashMap<TenantId, u32>,
    /// By frame: its number in the rule of its partition, if that is a tenant's. Empty as long as no tenant had a limit.
    slot_of: Vec<u32>,
    /// Frames of dirty blocks that their rules had to pass, and do not look at. Without room until there is one.
    parked: FrameSet,
    /// Frames of the cache.
    capacity: usize,
    /// How often a rule or a size has changed.
    changes: u64,
}

impl Partitions {
    /// One, with a rule that has the size of the cache; it may grow to `most` frames.
    pub(super) fn new(rule: NamedRule, most: usize) -> Self {
        Self {
            capacity: rule.1.capacity(),
            all: vec![Partition::new(rule, most, None)],
            of_tenant: HashMap::new(),
            slot_of: Vec::new(),
            parked: FrameSet::default(),
            changes: 0,
        }
    }

    pub(super) fn shared(&self) -> &Partition {
        &self.all[SHARED as usize]
    }

    pub(super) fn get(&self, partition: u32) -> &Partition {
        &self.all[partition as usize]
    }

    pub(super) fn get_mut(&mut self, partition: u32) -> &mut Partition {
        &mut self.all[partition as usize]
    }

    /// No tenant has a limit.
    #[inline(always)]
    pub(super) fn is_one(&self) -> bool {
        self.all.len() == 1
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Partition)> {
        (0..).zip(&self.all)
    }

    pub(super) fn numbers(&self) -> core::ops::Range<u32> {
        0..self.all.len() as u32
    }

    pub(super) fn of_tenant(&self, tenant: TenantId) -> u32 {
        self.of_tenant.get(&tenant).copied().unwrap_or(SHARED)
    }

    /// Frames of the cache.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Blocks in memory.
    pub(super) fn len(&self) -> usize {
        match self.is_one() {
            true => self.shared().len(),
            false => self.all.iter().map(Partition::len).sum(),
        }
    }

    /// Frames that tenants have for themselves.
    fn limited(&self) -> usize {
        self.all[1..].iter().map(Partition::capacity).sum()
    }

    /// The frame that a partition's rule knows by a number.
    pub(super) fn frame(&self, partition: u32, slot: Frame) -> Frame {
        let frames = self.get(partition).frames();
        frames.map_or(slot, |frames| frames[slot as usize])
    }

    /// The number by which its partition's rule knows a frame.
    #[inline(always)]
    fn slot(&self, partition: u32, frame: Frame) -> Frame {
        match partition {
            SHARED => frame,
            _ => self.slot_of[frame as usize],
        }
    }

    /// A block is to come: what its rule says to that.
    #[inline(always)]
    pub(super) fn miss(&mut self, partition: u32, key: Key, reason: Reason) -> Admitted {
        let changes = self.changes;
        let Partition { rule, shadows, .. } = self.get_mut(partition);
        let shadow = rule.recall(shadows, key);
        // Shadows stay for a while after the rule has forgotten them.
        let remembered = shadow.is_some_and(|shadow| rule.remembers(shadow));
        Admitted {
            admission: rule.miss(Block(key.0), shadow, reason),
            changes,
            remembered,
        }
    }

    /// A block comes into a frame.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        partition: u32,
        frame: Frame,
        (key, reason, request): (Key, Reason, u32),
        admitted: Admitted,
    ) {
        let arrival = Arrival {
            block: Block(key.0),
            reason,
            request,
            admission: match admitted.changes == self.changes {
                true => admitted.admission,
                false => Admission::default(),
            },
        };
        let slot = self.take_slot(partition, frame);
        self.get_mut(partition).rule.insert(slot, arrival);
    }

    /// A block that its rule took out stays after all.
    pub(super) fn insert_again(&mut self, partition: u32, slot: Frame, key: Key) {
        let arrival = Arrival::demand(Block(key.0), 0, Admission::default());
        self.get_mut(partition).rule.insert(slot, arrival);
    }

    #[inline(always)]
    fn take_slot(&mut self, partition: u32, frame: Frame) -> Frame {
        if partition == SHARED {
            return frame;
        }
        let slot = self.get_mut(partition).slots.take(frame);
        self.slot_of[frame as usize] = slot;
        slot
    }

    /// The rule has let go of a frame.
    #[inline(always)]
    pub(super) fn left(&mut self, partition: u32, frame: Frame) {
        if partition != SHARED {
            let slot = self.slot_of[frame as usize];
            self.get_mut(partition).slots.free.push(slot);
        }
    }

    /// Some frames are parked.
    #[inline(always)]
    pub(super) fn any_parked(&self) -> bool {
        self.parked.any()
    }

    /// How many frames are parked.
    pub(super) fn parked(&self) -> usize {
        self.parked.len()
    }

    pub(super) fn is_parked(&self, frame: Frame) -> bool {
        self.parked.any() && self.parked.has(frame)
    }

    /// The rule does not look at frames that it had to pass, by its numbers, until they are [unparked](Self::unpark). Nothing is
    /// called with them until then. The cache has `most` frames.
    pub(super) fn park(&mut self, partition: u32, most: usize, slots: &[Frame]) {
        let Self { all, parked, .. } = self;
        let part = &mut all[partition as usize];
        // Without memory for the set the rule passes them again.
        if part.rule.keeps_apart() || parked.grow(most).is_err() {
            return;
        }
        for &slot in slots {
            let frame = part.frames().map_or(slot, |frames| frames[slot as usize]);
            if !parked.has(frame) {
                parked.put(frame);
                part.rule.park(slot);
            }
        }
    }

    /// The rule looks at a frame again. Says whether it did not until now.
    #[inline]
    pub(super) fn unpark(&mut self, partition: u32, frame: Frame) -> bool {
        let was = self.parked.any() && self.parked.take(frame);
        if was {
            let slot = self.slot(partition, frame);
            self.get_mut(partition).rule.unpark(slot);
        }
        was
    }

    /// A block is gone for other reasons than the rule's.
    pub(super) fn remove(&mut self, partition: u32, frame: Frame) {
        debug_assert!(!self.is_parked(frame), "frame {frame} is parked");
        let slot = self.slot(partition, frame);
        self.get_mut(partition).rule.remove(slot);
        self.left(partition, frame);
    }

    /// [`CacheRule::touch_all`], of uses of one partition's blocks.
    #[inline(always)]
    pub(super) fn touch_all(
        &mut self,
        partition: u32,
        uses: &[Use],
        table: &Table,
        marks: Option<Marks>,
    ) -> bool {
        let slot_of = match partition {
            SHARED => None,
            _ => Some(&*self.slot_of),
        };
        let rule = &mut self.all[partition as usize].rule;
        rule.touch_all(uses, table, marks, slot_of)
    }

    /// Calls `work` with a rule and with what it chooses among.
    #[inline(always)]
    pub(super) fn choose<'i, 'c>(
        &'i mut self,
        partition: u32,
        table: &'c Table,
        dirty: &'i DirtyBlocks,
        work: impl FnOnce(&mut dyn CacheRule, &mut Victims<'i, 'c>),
    ) -> Victims<'i, 'c> {
        let Partition {
            rule,
            slots,
            tenant,
            ..
        } = &mut self.all[partition as usize];
        let frames = tenant.is_some().then_some(&*slots.frames);
        let mut victims = Victims::new(table, dirty, frames);
        work(&mut **rule, &mut victims);
        victims
    }

    /// Changes how many frames the cache has. Those of tenants with a limit stay.
    pub(super) fn resize(&mut self, frames: usize) -> Result<(), CacheError> {
        let limited = self.limited();
        let beside = self.beside(frames, limited)?;
        self.get_mut(SHARED).resize(beside)?;
        self.capacity = frames;
        self.changes += 1;
        Ok(())
    }

    /// What `limited` frames leave of a cache of this many.
    fn beside(&self, frames: usize, limited: usize) -> Result<usize, CacheError> {
        let beside = frames.checked_sub(limited).filter(|&beside| beside > 0);
        beside.ok_or(CacheError::Limits { frames, limited })
    }

    /// What a partition has for a tenant.
    fn limit_of(&self, partition: u32) -> usize {
        match partition {
            SHARED => 0,
            _ => self.get(partition).capacity(),
        }
    }

    /// What the others have when a tenant has so many frames for itself.
    pub(super) fn beside_limit(
        &self,
        tenant: TenantId,
        frames: usize,
    ) -> Result<usize, CacheError> {
        let had = self.limit_of(self.of_tenant(tenant));
        let limited = (self.limited() - had).saturating_add(frames);
        self.beside(self.capacity, limited)
    }

    /// Gives a tenant so many frames for itself, and the others as many less. `rule` is for a tenant that had no limit, and has room for the
    /// blocks that are then to be [moved](Self::transfer) to the partition that is returned.
    pub(super) fn limit(
        &mut self,
        tenant: TenantId,
        frames: usize,
        most: usize,
        rule: Option<NamedRule>,
    ) -> Result<u32, CacheError> {
        let at = self.of_tenant(tenant);
        let had = self.limit_of(at);
        let beside = self.beside_limit(tenant, frames)?;
        let memory = |_| CacheError::Memory { frames };
        let more = most.saturating_sub(self.slot_of.len());
        self.slot_of.try_reserve_exact(more).map_err(memory)?;
        self.all.try_reserve(1).map_err(memory)?;
        self.of_tenant.try_reserve(1).map_err(memory)?;
        self.slot_of.resize(most, 0);
        self.changes += 1;
        if let Some(rule) = rule {
            let mut new = Partition::new(rule, frames, Some(tenant));
            new.slots.reserve(new.capacity())?;
            self.get_mut(SHARED).resize(beside)?;
            self.all.push(new);
            let at = self.all.len() as u32 - 1;
            self.of_tenant.insert(tenant, at);
            return Ok(at);
        }
        // The one that becomes smaller first, so that there are never more than all frames.
        let (first, second) = match frames > had {
            true => ((SHARED, beside), (at, frames)),
            false => ((at, frames), (SHARED, beside)),
        };
        let before = self.get(first.0).capacity();
        self.get_mut(first.0).resize(first.1)?;
        let resized = self.get_mut(second.0).resize(second.1);
        if resized.is_err() {
            // What it cannot have back it lacks until the next change.
            let _ = self.get_mut(first.0).resize(before);
        }
        resized.map(|()| at)
    }

    /// A tenant has no limit any more, and its frames are the others'. Its blocks were moved. Returns the number of a partition that
    /// has another one from now on, and which.
    pub(super) fn unlimit(&mut self, tenant: TenantId) -> Option<(u32, u32)> {
        let at = self.of_tenant.remove(&tenant)?;
        let last = self.all.len() as u32 - 1;
        self.all.swap_remove(at as usize);
        if let Some(moved) = self.all.get(at as usize).and_then(|moved| moved.tenant) {
            self.of_tenant.insert(moved, at);
        }
        self.changes += 1;
        Some((last, at))
    }

    /// The shared partition gets room for what a tenant has for itself, and for its blocks. Returns the size that it is to have when
    /// these were [moved](Self::transfer).
    pub(super) fn share(&mut self, partition: u32) -> Result<usize, CacheError> {
        let (shared, part) = (self.shared(), self.get(partition));
        let frames = shared.capacity() + part.capacity();
        let blocks = shared.len() + part.len();
        self.get_mut(SHARED).resize(frames.max(blocks))?;
        Ok(frames)
    }

    /// How large a rule must be made that is to [replace](Self::replace_rule) a partition's: as large as the numbers by which that knows
    /// its blocks.
    pub(super) fn names(&self, partition: u32) -> usize {
        let part = self.get(partition);
        match partition {
            SHARED => part.room,
            _ => part.slots.frames.len().max(part.capacity()),
        }
    }

    /// Another rule chooses among a partition's blocks from now on, and learns of them in the order in which the former one would have let
    /// them go. `unused` were read ahead. None is parked.
    pub(super) fn replace_rule(
        &mut self,
        partition: u32,
        (name, mut rule): NamedRule,
        table: &Table,
        unused: &FrameSet,
    ) -> Result<(), CacheError> {
        let part = &mut self.all[partition as usize];
        let (frames, capacity) = (part.len(), part.capacity());
        let mut order: Vec<Frame> = Vec::new();
        let reserved = order.try_reserve_exact(frames);
        reserved.map_err(|_| CacheError::Memory { frames })?;
        let room = frames.max(capacity);
        if rule.capacity() != room {
            rule.resize(room)?;
        }
        part.rule.evict_erased(&mut order, frames);
        for &slot in &order {
            let frame = part.frames().map_or(slot, |frames| frames[slot as usize]);
            let reason = reason(unused.has(frame));
            bring(&mut *rule, slot, table.frames().key(frame), reason);
        }
        (part.name, part.rule) = (name, rule);
        part.shadows = Shadows::new(part.room);
        self.changes += 1;
        match room == capacity {
            true => Ok(()),
            // Some are too many, and held.
            false => Ok(self.get_mut(partition).rule.resize(capacity)?),
        }
    }

    /// Moves blocks from one partition to another, which has room for them, and then gets so many frames. Its rule takes them for blocks
    /// that come. None is parked.
    pub(super) fn transfer(
        &mut self,
        (from, to): (u32, u32),
        frames: usize,
        blocks: &[(Key, Frame)],
        unused: &FrameSet,
    ) -> Result<(), CacheError> {
        for &(key, frame) in blocks {
            self.remove(from, frame);
            let slot = self.take_slot(to, frame);
            let reason = reason(unused.has(frame));
            bring(&mut *self.get_mut(to).rule, slot, key, reason);
        }
        match self.get(to).capacity() == frames {
            true => Ok(()),
            false => self.get_mut(to).resize(frames),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let slots = |part: &Partition| part.slots.frames.capacity() + part.slots.free.capacity();
        let part = |part: &Partition| {
            part.rule.bytes() + part.shadows.bytes() + slots(part) * size_of::<u32>()
        };
        self.all.iter().map(part).sum::<usize>()
            + self.slot_of.capacity() * size_of::<u32>()
            + self.parked.bytes()
    }

    /// Of a partition with `resident` blocks, of which `dirty` are dirty. For tests.
    pub(super) fn check(
        &self,
        partition: u32,
        resident: usize,
        dirty: usize,
    ) -> Result<(), String> {
        let part = self.get(partition);
        part.rule.check()?;
        let (len, capacity) = (part.len(), part.capacity());
        if resident != len {
            return Err(format!(
                "{resident} frames hold a block of partition {partition}, and its rule has {len}"
            ));
        }
        if part.dirty != dirty {
            let said = part.dirty;
            return Err(format!(
                "{dirty} blocks of partition {partition} are dirty, not {said}"
            ));
        }
        let slots = &part.slots;
        let used = slots.frames.len() - slots.free.len();
        let wrong = |&slot: &u32| self.slot_of[slots.frames[slot as usize] as usize] != slot;
        let mut free = slots.free.clone();
        free.sort_unstable();
        let mut taken =
            (0..slots.frames.len() as u32).filter(|slot| free.binary_search(slot).is_err());
        if part.tenant.is_some() && (used != len || taken.any(|slot| wrong(&slot))) {
            return Err(format!(
                "partition {partition} of {capacity} frames has {used} slots in use for {len} blocks, or names a frame twice"
            ));
        }
        Ok(())
    }
}
