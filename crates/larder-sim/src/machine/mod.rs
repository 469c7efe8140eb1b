//! A modelled machine: files, a block cache under some rule, dirty blocks, readahead, one disk, a clock.
//!
//! Blocks lie on the disk in the order of their numbers. A read that misses waits for the disk. A written block is dirty until the
//! disk has it: when it is old, when too many are dirty, when the rule asks, or when its frame is wanted, and only then
//! something waits for it. A write reads nothing before.

mod disk;

use std::collections::BTreeMap;

use larder_policy::{
    Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow, Touch, rule,
};

use super::intern::Interner;
use super::run::Tally;
use super::{Kind, Record};
use disk::Disk;

pub use disk::Drive;

/// Readahead, in blocks: at first, and at most (`MIN_READAHEAD`, `MAX_READAHEAD` of Linux 2.4).
const READAHEAD: (u64, u64) = (3, 31);
/// More frames than 2.4.7's kswapd wants free beside a quarter of the cache: 765 at most (three times `zone_balance_max`).
const SPARE: usize = 1 << 12;
/// Seconds between two looks for old dirty blocks (`interval` of 2.4's kupdate).
const LOOK: u64 = 5;

const RESIDENT: u64 = 1 << 63;
const NOTHING: u64 = RESIDENT - 1;

/// How the model numbers requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// As the records say.
    Recorded,
    /// Each use is one.
    Apart,
    /// Uses of one block by one user of its file, one after the other, are one.
    Merged,
}

/// What is set up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setup {
    /// Blocks of the cache.
    pub blocks: usize,
    /// Different blocks of the trace, where they were counted: a cache far larger than that is made smaller, with the same result.
    pub distinct: usize,
    /// The disk.
    pub drive: Drive,
    /// Bytes that the clients move in a second where nothing waits; infinite if that takes no time.
    pub cpu: f64,
    /// Share of the cache from which dirty blocks are written behind (`nfract` of 2.4's bdflush).
    pub dirty: f64,
    /// Age in seconds at which a dirty block is written (`age_buffer`).
    pub old: f64,
    /// Sequential readers read ahead, and drop behind.
    pub readahead: bool,
    /// The requests' numbers.
    pub requests: Requests,
}

impl Setup {
    /// A cache of so many blocks on the disk of 2001, with 2.4's limits, without readahead.
    ///
    /// ```
    /// use larder_sim::machine::Setup;
    /// assert_eq!(Setup::new(100).dirty, 0.4);
    /// ```
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        Self {
            blocks,
            distinct: usize::MAX,
            drive: Drive::default(),
            cpu: f64::INFINITY,
            dirty: 0.4,
            old: 30.0,
            readahead: false,
            requests: Requests::Recorded,
        }
    }

    /// Frames that are made. Where all blocks that can come fill less than a quarter of them, nothing is evicted and kswapd finds no
    /// page short. Frames beyond that change nothing: the limit of dirty blocks is a share of `blocks`.
    fn frames(&self) -> usize {
        let ahead = if self.readahead { READAHEAD.1 } else { 0 };
        let come = self.distinct.saturating_mul(1 + ahead as usize);
        self.blocks
            .min(come.saturating_mul(4).saturating_add(SPARE))
    }
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Counted {
    /// Uses, and those that found their block.
    pub tally: Tally,
    /// Uses of tenant 0 alone.
    pub first_uses: u64,
    /// Of these, those that found their block.
    pub first_hits: u64,
    /// What the disk did.
    pub disk: DiskCounts,
    /// Bytes that the clients moved.
    pub payload: f64,
}

/// What the disk did.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct DiskCounts {
    /// Blocks read.
    pub read: u64,
    /// Blocks written. What is dirty at the end is not among them.
    pub written: u64,
    /// Commands.
    pub commands: u64,
    /// Seconds that a client waited: reads, and writes of a block whose frame was wanted.
    pub waited_s: f64,
    /// Seconds of writes that no client waited for.
    pub behind_s: f64,
    /// Seconds of it all: `waited + max(payload / speed of the clients, behind)`.
    pub total_s: f64,
}

impl Counted {
    /// What was counted after `before`, on clients of a speed.
    #[must_use]
    pub fn since(&self, before: &Self, cpu: f64) -> Self {
        let (disk, was) = (&self.disk, &before.disk);
        let mut since = Self {
            tally: Tally {
                hits: self.tally.hits - before.tally.hits,
                misses: self.tally.misses - before.tally.misses,
                lost: self.tally.lost - before.tally.lost,
                fetched: self.tally.fetched - before.tally.fetched,
                wasted: self.tally.wasted - before.tally.wasted,
            },
            first_uses: self.first_uses - before.first_uses,
            first_hits: self.first_hits - before.first_hits,
            disk: DiskCounts {
                read: disk.read - was.read,
                written: disk.written - was.written,
                commands: disk.commands - was.commands,
                waited_s: disk.waited_s - was.waited_s,
                behind_s: disk.behind_s - was.behind_s,
                total_s: 0.0,
            },
            payload: self.payload - before.payload,
        };
        since.disk.total_s = since.clock(cpu);
        since
    }

    fn clock(&self, cpu: f64) -> f64 {
        self.disk.waited_s + (self.payload / cpu).max(self.disk.behind_s)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// The block's place in the table.
    slot: u32,
    /// Its number, which is its place on the disk.
    block: u64,
    /// Its place in the queue of dirty frames; none if it is clean.
    dirty: Option<u64>,
    /// It was read ahead and not used yet.
    unused: bool,
}

#[derive(Debug)]
struct File {
    /// The block after the last that the trace named.
    end: u64,
    /// The block that was read last, plus one, and the readahead window.
    next: u64,
    window: u64,
    /// The block that was used last, and its client.
    last: Option<(u64, u16)>,
}

/// The owner of the frames.
#[derive(Debug)]
struct House {
    numbers: Interner,
    /// By block: resident and the frame, or a shadow, or nothing.
    slots: Vec<u64>,
    frames: Vec<Held>,
    free: Vec<Frame>,
    disk: Disk,
    asked: Vec<Frame>,
    /// The dirty frames, the oldest first, each with the time at which it became dirty.
    queue: BTreeMap<u64, (Frame, f64)>,
    wasted: u64,
}

impl House {
    /// The block's place in the table, a new one if it has none.
    fn slot(&mut self, block: u64) -> Result<u32, PolicyError> {
        let no_memory = PolicyError::Memory {
            bytes: self.slots.len().saturating_mul(24),
        };
        let slot = self.numbers.number(block).ok_or(no_memory)?;
        if slot as usize == self.slots.len() {
            self.slots.push(NOTHING);
        }
        Ok(slot)
    }

    /// The frame of a block that is in memory.
    fn frame(&self, block: u64) -> Option<Frame> {
        let slot = self.slots[self.numbers.known(block)? as usize];
        (slot & RESIDENT != 0).then_some(slot as Frame)
    }

    fn clean(&mut self, frame: Frame) -> Option<u64> {
        let held = &mut self.frames[frame as usize];
        self.queue.remove(&held.dirty.take()?);
        Some(held.block)
    }

    /// Writes what the rule asked for.
    fn write_asked(&mut self) {
        if !self.asked.is_empty() {
            let asked = core::mem::take(&mut self.asked);
            let blocks = asked.iter().filter_map(|&frame| self.clean(frame));
            let mut blocks: Vec<u64> = blocks.collect();
            self.disk.write_behind(&mut blocks);
        }
    }

    /// Writes the oldest dirty blocks while `more` says so.
    fn flush(&mut self, more: impl Fn(&Self, f64) -> bool) {
        let mut blocks = Vec::new();
        while let Some((_, &(frame, since))) = self.queue.first_key_value()
            && more(self, since)
        {
            blocks.extend(self.clean(frame));
        }
        self.disk.write_behind(&mut blocks);
    }
}

impl Frames for House {
    fn state(&self, frame: Frame) -> FrameState {
        match self.frames[frame as usize].dirty {
            Some(_) => FrameState::Dirty,
            None => FrameState::Clean,
        }
    }

    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        if let Some(at) = self.clean(frame) {
            self.disk.write_now(at);
        }
        let Held { slot, unused, .. } = self.frames[frame as usize];
        self.wasted += u64::from(unused);
        self.slots[slot as usize] = shadow.map_or(NOTHING, Shadow::get);
        self.free.push(frame);
    }

    fn write_back(&mut self, frame: Frame) {
        self.asked.push(frame);
    }
}

/// The machine, fed with a trace's records.
///
/// ```
/// use larder_sim::machine::{Machine, Setup};
/// use larder_sim::{Kind, Record};
///
/// let mut machine = Machine::new("lru", Setup::new(10))?;
/// for block in [1, 2, 1] {
///     machine.step(&Record { block, ..Record::default() })?;
/// }
/// machine.step(&Record { block: 7, kind: Kind::Write, ..Record::default() })?;
/// let counted = machine.counted();
/// assert_eq!((counted.tally.hits, counted.disk.read, counted.disk.written), (1, 2, 0));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
pub struct Machine {
    setup: Setup,
    rule: Box<dyn Policy>,
    house: House,
    files: Vec<File>,
    file_numbers: Interner,
    counted: Counted,
    number: u32,
    seconds: u64,
}

impl core::fmt::Debug for Machine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Machine")
            .field("setup", &self.setup)
            .field("counted", &self.counted())
            .finish_non_exhaustive()
    }
}

impl Machine {
    /// An empty cache under a rule.
    ///
    /// # Errors
    /// [`PolicyError`]: no such rule, no such size, no memory.
    pub fn new(name: &str, setup: Setup) -> Result<Self, PolicyError> {
        let blocks = setup.frames();
        let rule = rule(name, blocks)?;
        let no_memory = |_| PolicyError::Memory {
            bytes: blocks.saturating_mul(size_of::<Held>()),
        };
        let (mut frames, mut free) = (Vec::new(), Vec::new());
        frames.try_reserve_exact(blocks).map_err(no_memory)?;
        frames.resize(blocks, Held::default());
        free.try_reserve_exact(blocks).map_err(no_memory)?;
        free.extend((0..blocks as Frame).rev());
        Ok(Self {
            rule,
            setup,
            house: House {
                numbers: Interner::new(),
                slots: Vec::new(),
                frames,
                free,
                disk: Disk::new(setup.drive),
                asked: Vec::new(),
                queue: BTreeMap::new(),
                wasted: 0,
            },
            files: Vec::new(),
            file_numbers: Interner::new(),
            counted: Counted::default(),
            number: 0,
            seconds: 0,
        })
    }

    /// A record of the trace.
    ///
    /// # Errors
    /// [`PolicyError::Memory`].
    pub fn step(&mut self, record: &Record) -> Result<(), PolicyError> {
        match record.kind {
            Kind::Read => self.read(record)?,
            Kind::Write => self.write(record)?,
            Kind::Remove => self.remove(record)?,
            Kind::Readahead => self.read_ahead(record)?,
            // The model has its own.
            _ => {}
        }
        self.house.write_asked();
        self.pass();
        Ok(())
    }

    /// All that was counted so far.
    #[must_use]
    pub fn counted(&self) -> Counted {
        let House { disk, wasted, .. } = &self.house;
        let mut counted = self.counted;
        counted.tally.wasted = *wasted;
        counted.disk = DiskCounts {
            read: disk.read,
            written: disk.written,
            commands: disk.commands,
            waited_s: disk.waited,
            behind_s: disk.behind,
            total_s: 0.0,
        };
        counted.disk.total_s = counted.clock(self.setup.cpu);
        counted
    }

    fn now(&self) -> f64 {
        let House { disk, .. } = &self.house;
        disk.waited + (self.counted.payload / self.setup.cpu).max(disk.behind)
    }

    /// Time goes on: kswapd's second, kupdate's look, bdflush's limit.
    fn pass(&mut self) {
        let limit = (self.setup.blocks as f64 * self.setup.dirty) as usize;
        if self.house.queue.len() > limit {
            self.house.flush(|house, _| house.queue.len() > limit);
        }
        // Ticks take time themselves when they write; those are for the next event.
        let now = self.now();
        while ((self.seconds + 1) as f64) <= now {
            self.seconds += 1;
            self.rule.tick(&mut self.house);
            self.house.write_asked();
            if self.seconds.is_multiple_of(LOOK) {
                let (seconds, old) = (self.seconds as f64, self.setup.old);
                self.house.flush(|_, since| since + old <= seconds);
            }
        }
    }

    /// The record's file, which reaches as far as the record now.
    fn file(&mut self, record: &Record) -> Result<&mut File, PolicyError> {
        let number = self.file_numbers.number(u64::from(record.file));
        let number = number.ok_or(PolicyError::Memory {
            bytes: self.files.len().saturating_mul(size_of::<File>()),
        })? as usize;
        if number == self.files.len() {
            self.files.push(File {
                end: 0,
                // Where a file begins, as `block_of` numbers its blocks: its first block follows nothing.
                next: u64::from(record.file) << 40,
                window: 0,
                last: None,
            });
        }
        let file = &mut self.files[number];
        file.end = file.end.max(record.block.saturating_add(1));
        Ok(file)
    }

    /// A use: counted, numbered. The frame that has the block.
    fn used(&mut self, record: &Record) -> Result<Option<Frame>, PolicyError> {
        let found = self.house.frame(record.block);
        let counted = &mut self.counted;
        match found {
            Some(_) => counted.tally.hits += 1,
            None => counted.tally.misses += 1,
        }
        if record.tenant == 0 {
            counted.first_uses += 1;
            counted.first_hits += u64::from(found.is_some());
        }
        counted.payload += f64::from(record.bytes);
        let file = self.file(record)?;
        let user = Some((record.block, record.tenant));
        let again = core::mem::replace(&mut file.last, user) == user;
        match self.setup.requests {
            Requests::Recorded => self.number = record.request,
            Requests::Merged if again => {}
            Requests::Apart | Requests::Merged => self.number = self.number.wrapping_add(1),
        }
        if let Some(frame) = found {
            self.house.frames[frame as usize].unused = false;
            let request = self.number;
            self.rule.touch(frame, Touch { request });
        }
        Ok(found)
    }

    /// Brings a block in, without the disk. None if no frame can be had.
    fn bring(&mut self, block: u64, reason: Reason) -> Result<Option<Frame>, PolicyError> {
        let at = self.house.slot(block)?;
        let slot = self.house.slots[at as usize];
        let identity = Block(block);
        let shadow = (slot != NOTHING).then(|| Shadow::new(slot));
        let admission = self.rule.miss(identity, shadow, reason);
        let frame = loop {
            if let Some(frame) = self.house.free.pop() {
                break frame;
            }
            if self.rule.evict(&mut self.house, 1) == 0 {
                self.counted.tally.lost += 1;
                return Ok(None);
            }
        };
        self.house.frames[frame as usize] = Held {
            slot: at,
            block,
            dirty: None,
            unused: reason == Reason::Readahead,
        };
        self.house.slots[at as usize] = RESIDENT | u64::from(frame);
        let arrival = Arrival {
            block: identity,
            reason,
            request: self.number,
            admission,
        };
        self.rule.insert(frame, arrival);
        Ok(Some(frame))
    }

    fn read(&mut self, record: &Record) -> Result<(), PolicyError> {
        let block = record.block;
        let found = self.used(record)?;
        let file = self.file(record)?;
        let sequential = block == file.next;
        let follows = block.saturating_add(1);
        if follows != file.next {
            file.next = follows; // a second use of the same block changes nothing
            if !sequential {
                file.window = 0;
            }
        }
        if found.is_some() {
            return Ok(());
        }
        self.bring(block, Reason::Demand)?;
        let mut blocks = 1;
        if self.setup.readahead && sequential {
            let file = self.file(record)?;
            let window = (2 * file.window).clamp(READAHEAD.0, READAHEAD.1);
            file.window = window;
            let end = file.end;
            self.drop_behind(block, window);
            for ahead in follows..follows.saturating_add(window).min(end) {
                if self.house.frame(ahead).is_some()
                    || self.bring(ahead, Reason::Readahead)?.is_none()
                {
                    break;
                }
                self.counted.tally.fetched += 1;
                blocks += 1;
            }
        }
        self.house.disk.read(block, blocks);
        Ok(())
    }

    /// A block that the trace says was read ahead.
    fn read_ahead(&mut self, record: &Record) -> Result<(), PolicyError> {
        self.file(record)?;
        let block = record.block;
        if self.house.frame(block).is_none() && self.bring(block, Reason::Readahead)?.is_some() {
            self.counted.tally.fetched += 1;
            self.house.disk.read(block, 1);
        }
        Ok(())
    }

    /// `drop_behind` of 2.4.7: what the window has passed, back to the first block that is not there.
    fn drop_behind(&mut self, block: u64, window: u64) {
        for behind in (block.saturating_sub(window)..block).rev() {
            let Some(frame) = self.house.frame(behind) else {
                break;
            };
            self.rule.drop_behind(frame);
        }
    }

    fn write(&mut self, record: &Record) -> Result<(), PolicyError> {
        let bytes = f64::from(record.bytes);
        let whole = record.bytes == 0 || bytes >= self.setup.drive.block;
        let frame = match self.used(record)? {
            Some(frame) => {
                if whole {
                    self.rule.drop_behind(frame); // generic_file_write: written to its end
                }
                frame
            }
            None => {
                let reason = if whole { Reason::Write } else { Reason::Demand };
                match self.bring(record.block, reason)? {
                    Some(frame) => frame,
                    None => {
                        self.house.disk.write_now(record.block);
                        return Ok(());
                    }
                }
            }
        };
        let now = self.now();
        let House { frames, queue, .. } = &mut self.house;
        let held = &mut frames[frame as usize];
        if held.dirty.is_none() {
            let place = queue.last_key_value().map_or(0, |(last, _)| last + 1);
            held.dirty = Some(place);
            queue.insert(place, (frame, now));
        }
        Ok(())
    }

    /// The block is gone; if it was dirty it is not written.
    fn remove(&mut self, record: &Record) -> Result<(), PolicyError> {
        self.file(record)?;
        let Some(slot) = self.house.numbers.known(record.block) else {
            return Ok(());
        };
        if let Some(frame) = self.house.frame(record.block) {
            self.rule.remove(frame);
            let _ = self.house.clean(frame);
            self.house.wasted += u64::from(self.house.frames[frame as usize].unused);
            self.house.free.push(frame);
        }
        self.house.slots[slot as usize] = NOTHING;
        Ok(())
    }

    /// Bytes of the rule and of the tables.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let House {
            numbers,
            slots,
            frames,
            free,
            ..
        } = &self.house;
        self.rule.bytes()
            + numbers.bytes() as usize
            + slots.capacity() * size_of::<u64>()
            + frames.capacity() * size_of::<Held>()
            + free.capacity() * size_of::<Frame>()
    }

    /// The rule's explanation of its decisions.
    #[must_use]
    pub fn explain(&self) -> Vec<(&'static str, f64)> {
        self.rule.explain()
    }
}

#[cfg(test)]
mod tests;
