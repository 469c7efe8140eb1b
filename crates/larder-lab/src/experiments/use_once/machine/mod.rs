//! A modelled machine: files, a page cache under some rule, dirty pages, readahead, one disk, a clock.

use std::collections::VecDeque;

use anyhow::{Context, bail};
use larder_policy::{
    Arrival, Block, Frame, FrameState, Frames, Policy, Reason, Shadow, Touch, rule,
};

use larder_sim::{Kind, Record};

use super::disk::{Disk, address, seconds};

/// Readahead, in pages: at first, and at most (`MIN_READAHEAD`, `MAX_READAHEAD` of 2.4).
const READAHEAD: (u64, u64) = (3, 31);
/// Share of the cache from which dirty pages are written behind (`nfract` of 2.4's bdflush).
const DIRTY_SHARE: f64 = 0.4;
/// Age in seconds at which a dirty page is written (`age_buffer`), and seconds between two looks (`interval`).
const OLD: f64 = 30.0;
const LOOK: u64 = 5;

const RESIDENT: u64 = 1 << 63;
const NOTHING: u64 = RESIDENT - 1;

/// What is set up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup<'a> {
    pub(super) rule: &'a str,
    /// Pages of the cache.
    pub(super) pages: usize,
    pub(super) clients: u16,
    /// Sequential readers read ahead, and drop behind.
    pub(super) readahead: bool,
    /// Uses of one page by one file's user, one after the other, have one request number.
    pub(super) merged: bool,
    /// Records at the beginning that are not counted: clients fill their directories.
    pub(super) warm: usize,
}

/// Its result.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) uses: u64,
    pub(super) hits: u64,
    /// Of tenant 0 alone.
    pub(super) first_uses: u64,
    pub(super) first_hits: u64,
    pub(super) pages_read: u64,
    pub(super) pages_written: u64,
    pub(super) commands: u64,
    pub(super) payload: f64,
    pub(super) seconds: f64,
    waited: f64,
    behind: f64,
}

impl Outcome {
    fn since(&self, before: &Self) -> Self {
        Self {
            uses: self.uses - before.uses,
            hits: self.hits - before.hits,
            first_uses: self.first_uses - before.first_uses,
            first_hits: self.first_hits - before.first_hits,
            pages_read: self.pages_read - before.pages_read,
            pages_written: self.pages_written - before.pages_written,
            commands: self.commands - before.commands,
            payload: self.payload - before.payload,
            waited: self.waited - before.waited,
            behind: self.behind - before.behind,
            seconds: 0.0,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Held {
    file: u32,
    page: u64,
    /// When it became dirty; none if it is clean.
    dirty: Option<f64>,
}

#[derive(Debug, Default)]
struct File {
    /// By page: resident and the frame, or a shadow, or nothing.
    pages: Vec<u64>,
    /// The page that was read last, plus one, and the readahead window.
    next: u64,
    window: u64,
    /// The page that was used last, and its client: for `merged`.
    last: Option<(u64, u16)>,
}

/// The owner of the frames.
#[derive(Default)]
struct House {
    files: Vec<File>,
    frames: Vec<Held>,
    free: Vec<Frame>,
    disk: Disk,
    asked: Vec<Frame>,
    dirty: usize,
    /// Frames in the order in which they became dirty, with when; stale if the frame says otherwise.
    queue: VecDeque<(Frame, f64)>,
}

impl House {
    fn slot(&mut self, file: u32, page: u64) -> &mut u64 {
        let (file, page) = (file as usize, page as usize);
        if file >= self.files.len() {
            self.files.resize_with(file + 1, File::default);
        }
        let pages = &mut self.files[file].pages;
        if page >= pages.len() {
            pages.resize(page + 1, NOTHING);
        }
        &mut pages[page]
    }

    fn clean(&mut self, frame: Frame) -> Option<u64> {
        let held = &mut self.frames[frame as usize];
        held.dirty.take()?;
        self.dirty -= 1;
        Some(address(held.file, held.page))
    }

    /// Writes what the rule asked for.
    fn write_asked(&mut self) {
        if !self.asked.is_empty() {
            let asked = core::mem::take(&mut self.asked);
            let pages = asked.iter().filter_map(|&frame| self.clean(frame));
            let mut pages: Vec<u64> = pages.collect();
            self.disk.write_behind(&mut pages);
        }
    }

    /// Writes the oldest dirty pages while `more` says so.
    fn flush(&mut self, more: impl Fn(&Self, f64) -> bool) {
        let mut pages = Vec::new();
        while let Some(&(frame, since)) = self.queue.front() {
            let stale = self.frames[frame as usize].dirty != Some(since);
            if !stale && !more(self, since) {
                break;
            }
            self.queue.pop_front();
            if !stale {
                pages.extend(self.clean(frame));
            }
        }
        self.disk.write_behind(&mut pages);
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
        let Held { file, page, .. } = self.frames[frame as usize];
        *self.slot(file, page) = shadow.map_or(NOTHING, Shadow::get);
        self.free.push(frame);
    }

    fn write_back(&mut self, frame: Frame) {
        self.asked.push(frame);
    }
}

/// The machine.
pub(super) struct Machine<'a> {
    setup: Setup<'a>,
    rule: Box<dyn Policy>,
    house: House,
    outcome: Outcome,
    number: u32,
    seconds: u64,
}

impl<'a> Machine<'a> {
    pub(super) fn new(setup: Setup<'a>) -> anyhow::Result<Self> {
        let rule = rule(setup.rule, setup.pages).context("the modelled machine's page cache")?;
        Ok(Self {
            rule,
            setup,
            house: House {
                frames: vec![Held::default(); setup.pages],
                free: (0..setup.pages as Frame).rev().collect(),
                ..House::default()
            },
            outcome: Outcome::default(),
            number: 0,
            seconds: 0,
        })
    }

    pub(super) fn run(mut self, records: impl Iterator<Item = Record>) -> anyhow::Result<Outcome> {
        let mut before = Outcome::default();
        for (at, record) in records.enumerate() {
            if at == self.setup.warm {
                before = self.counted();
            }
            let page = record.block & ((1 << 40) - 1);
            if record.file >= 1 << 24 || page >= 1 << 26 {
                bail!(
                    "the workload uses page {page} of file {}: the model has 2^24 files of 2^26 pages",
                    record.file
                );
            }
            match record.kind {
                Kind::Read => self.read(&record, page)?,
                Kind::Write => self.write(&record, page)?,
                Kind::Remove => self.remove(record.file, page),
                Kind::Readahead => drop(self.bring(record.file, page, Reason::Readahead)),
            }
            self.house.write_asked();
            self.pass();
        }
        let counted = self.counted().since(&before);
        let seconds = self.clock(&counted);
        Ok(Outcome { seconds, ..counted })
    }

    /// All that was counted so far.
    fn counted(&self) -> Outcome {
        let disk = &self.house.disk;
        Outcome {
            pages_read: disk.pages_read,
            pages_written: disk.pages_written,
            commands: disk.commands,
            waited: disk.waited,
            behind: disk.behind,
            ..self.outcome
        }
    }

    fn clock(&self, of: &Outcome) -> f64 {
        seconds(of.waited, of.behind, of.payload, self.setup.clients)
    }

    fn now(&self) -> f64 {
        self.clock(&self.counted())
    }

    /// Time goes on: kswapd's second, kupdate's look, bdflush's limit.
    fn pass(&mut self) {
        let limit = (self.setup.pages as f64 * DIRTY_SHARE) as usize;
        if self.house.dirty > limit {
            self.house.flush(|house, _| house.dirty > limit);
        }
        // Ticks take time themselves when they write; those are for the next event.
        let now = self.now();
        while ((self.seconds + 1) as f64) <= now {
            self.seconds += 1;
            self.rule.tick(&mut self.house);
            self.house.write_asked();
            if self.seconds.is_multiple_of(LOOK) {
                let seconds = self.seconds as f64;
                self.house.flush(|_, since| since + OLD <= seconds);
            }
        }
    }

    /// A use: counted, numbered.
    fn used(&mut self, record: &Record, page: u64, hit: bool) {
        self.outcome.uses += 1;
        self.outcome.hits += u64::from(hit);
        if record.tenant == 0 {
            self.outcome.first_uses += 1;
            self.outcome.first_hits += u64::from(hit);
        }
        self.outcome.payload += f64::from(record.bytes);
        self.house.slot(record.file, page);
        let file = &mut self.house.files[record.file as usize];
        let again = file.last == Some((page, record.tenant));
        file.last = Some((page, record.tenant));
        if !(again && self.setup.merged) {
            self.number = self.number.wrapping_add(1);
        }
    }

    fn frame(&mut self, file: u32, page: u64) -> Option<Frame> {
        let slot = *self.house.slot(file, page);
        (slot & RESIDENT != 0).then_some(slot as Frame)
    }

    /// Brings a page in, without the disk. None if no frame can be had.
    fn bring(&mut self, file: u32, page: u64, reason: Reason) -> Option<Frame> {
        let slot = *self.house.slot(file, page);
        let block = Block(address(file, page));
        let shadow = (slot != NOTHING).then(|| Shadow::new(slot));
        let admission = self.rule.miss(block, shadow, reason);
        while self.house.free.is_empty() {
            if self.rule.evict(&mut self.house, 1) == 0 {
                return None;
            }
        }
        let frame = self.house.free.pop()?;
        self.house.frames[frame as usize] = Held {
            file,
            page,
            dirty: None,
        };
        *self.house.slot(file, page) = RESIDENT | u64::from(frame);
        let arrival = Arrival {
            block,
            reason,
            request: self.number,
            admission,
        };
        self.rule.insert(frame, arrival);
        Some(frame)
    }

    fn read(&mut self, record: &Record, page: u64) -> anyhow::Result<()> {
        let file = record.file;
        let found = self.frame(file, page);
        self.used(record, page, found.is_some());
        let of_file = &mut self.house.files[file as usize];
        let sequential = page == of_file.next;
        if page + 1 != of_file.next {
            of_file.next = page + 1; // a second use of the same page changes nothing
            if !sequential {
                of_file.window = 0;
            }
        }
        if let Some(frame) = found {
            let request = self.number;
            self.rule.touch(frame, Touch { request });
            return Ok(());
        }
        self.bring(file, page, Reason::Demand)
            .context("no frame can be evicted")?;
        let mut pages = 1;
        if self.setup.readahead && sequential {
            let of_file = &mut self.house.files[file as usize];
            let window = (2 * of_file.window).clamp(READAHEAD.0, READAHEAD.1);
            of_file.window = window;
            self.drop_behind(file, page, window);
            let end = self.house.files[file as usize].pages.len() as u64;
            for ahead in page + 1..(page + 1 + window).min(end) {
                if self.frame(file, ahead).is_some()
                    || self.bring(file, ahead, Reason::Readahead).is_none()
                {
                    break;
                }
                pages += 1;
            }
        }
        self.house.disk.read(address(file, page), pages);
        Ok(())
    }

    /// `drop_behind` of 2.4.7: what the window has passed, back to the first page that is not there.
    fn drop_behind(&mut self, file: u32, page: u64, window: u64) {
        for behind in (page.saturating_sub(window)..page).rev() {
            let Some(frame) = self.frame(file, behind) else {
                break;
            };
            self.rule.drop_behind(frame);
        }
    }

    fn write(&mut self, record: &Record, page: u64) -> anyhow::Result<()> {
        let (file, whole) = (record.file, f64::from(record.bytes) >= super::disk::PAGE);
        let found = self.frame(file, page);
        self.used(record, page, found.is_some());
        let frame = match found {
            Some(frame) => {
                let request = self.number;
                self.rule.touch(frame, Touch { request });
                if whole {
                    self.rule.drop_behind(frame); // generic_file_write: written to its end
                }
                frame
            }
            None => {
                let reason = if whole { Reason::Write } else { Reason::Demand };
                self.bring(file, page, reason)
                    .context("no frame can be evicted")?
            }
        };
        let now = self.now();
        let held = &mut self.house.frames[frame as usize];
        if held.dirty.is_none() {
            held.dirty = Some(now);
            self.house.dirty += 1;
            self.house.queue.push_back((frame, now));
        }
        Ok(())
    }

    /// The page is gone; if it was dirty it is not written.
    fn remove(&mut self, file: u32, page: u64) {
        if let Some(frame) = self.frame(file, page) {
            self.rule.remove(frame);
            let _ = self.house.clean(frame);
            self.house.free.push(frame);
        }
        *self.house.slot(file, page) = NOTHING;
    }
}

#[cfg(test)]
mod tests;
