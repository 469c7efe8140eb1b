//! A trace that is kept: dense block numbers, 4 bytes a request in most traces, in memory or, from a bound on, in a file.

use std::path::Path;
use std::sync::Arc;

use super::intern::Interner;
use super::originals::{Collector, Originals};
use super::spill::{Spill, append, numbers};
use super::{Format, Kind, ReadOptions, Record, SimError, Trace};

/// Records of a chunk. 4 MiB of block numbers: small enough for a CPU's cache, large enough to amortise the work for each chunk.
const CHUNK: usize = 1 << 20;

/// A part of a trace.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The blocks, dense.
    pub blocks: Vec<u32>,
    /// The number of the first record's request.
    pub first_request: u32,
    /// The requests' numbers; empty when each record is a request of its own.
    pub requests: Vec<u32>,
    /// What each record does, as [`Kind`]; empty when all read.
    pub kinds: Vec<Kind>,
    /// All blocks up to the end of this chunk have smaller numbers.
    pub bound: u32,
    /// The trace's own block numbers.
    pub originals: Originals,
    /// Uses that count as a second for rules that age by time; 0 if time stands still.
    pub tick: u32,
}

impl Chunk {
    /// Bytes of its records.
    fn bytes(&self) -> u64 {
        (size_of_val(self.blocks.as_slice())
            + size_of_val(self.requests.as_slice())
            + size_of_val(self.kinds.as_slice())) as u64
    }

    /// Calls `each` with block, request and kind of every record.
    #[inline]
    pub fn for_each(&self, mut each: impl FnMut(u32, u32, Kind)) {
        for (n, &block) in self.blocks.iter().enumerate() {
            let request = match self.requests.get(n) {
                Some(request) => *request,
                None => self.first_request.wrapping_add(n as u32),
            };
            each(
                block,
                request,
                self.kinds.get(n).copied().unwrap_or_default(),
            );
        }
    }
}

/// Counts of a trace, made while it is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Uses: reads and writes of a block.
    pub uses: u64,
    /// Of these, writes.
    pub writes: u64,
    /// Blocks read ahead.
    pub readahead: u64,
    /// Blocks removed.
    pub removed: u64,
    /// Requests.
    pub requests: u64,
    /// Different blocks.
    pub blocks: u32,
    /// Most bytes of a use; 0 where the trace has no sizes.
    #[serde(default)]
    pub most_bytes: u32,
    /// FNV-1a over the dense numbers, requests and kinds: equal traces have equal ones.
    pub checksum: u64,
}

impl Counts {
    /// Counts a trace to its end and keeps only the blocks' numbers.
    ///
    /// # Errors
    /// [`SimError`].
    pub fn of(mut trace: Trace, mut progress: impl FnMut(&Trace)) -> Result<Self, SimError> {
        let name = trace.name().to_owned();
        let mut loader = Loader::of(&trace);
        let mut records = Vec::new();
        let mut more = true;
        while more {
            records.clear();
            more = trace.fill(&mut records)?;
            loader.add(&name, &records, |_| Ok(()))?;
            progress(&trace);
        }
        Ok(loader.finish().1)
    }
}

/// Makes chunks from records.
#[derive(Debug)]
pub struct Loader {
    interner: Interner,
    chunk: Chunk,
    counts: Counts,
    last_request: Option<u32>,
    sum: u64,
    /// Each use counts as a request of its own.
    apart: bool,
    originals: Collector,
    tick: u32,
    max_memory: u64,
}

impl Default for Loader {
    fn default() -> Self {
        Self::new()
    }
}

impl Loader {
    /// A loader that has seen no record.
    #[must_use]
    pub fn new() -> Self {
        Self {
            interner: Interner::new(),
            chunk: Chunk::default(),
            counts: Counts {
                checksum: 0xcbf2_9ce4_8422_2325,
                ..Counts::default()
            },
            last_request: None,
            sum: 0,
            apart: false,
            originals: Collector::default(),
            tick: 0,
            max_memory: u64::MAX,
        }
    }

    /// A loader with a trace's options: its seconds, its bound of memory, and, if requested, each use as a request of its own, so that
    /// rules see several touches by one request as several.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        Self {
            apart: trace.touches_apart(),
            tick: trace.tick(),
            max_memory: trace.max_memory(),
            ..Self::new()
        }
    }

    /// The same, with this many uses to a second.
    pub(super) fn ticking(self, tick: u32) -> Self {
        Self { tick, ..self }
    }

    /// Adds records; full chunks go to `done`.
    ///
    /// # Errors
    /// [`SimError::TooMuch`]: no room, or more memory than the trace may take.
    pub fn add(
        &mut self,
        trace: &str,
        records: &[Record],
        mut done: impl FnMut(Chunk) -> Result<(), SimError>,
    ) -> Result<(), SimError> {
        let full = |why: &str| SimError::TooMuch {
            trace: trace.to_owned(),
            fault: format!("{why}; take a part of it with --limit"),
        };
        for group in records.chunks(16) {
            self.sum ^= u64::from(self.interner.warm(group.iter().map(|r| r.block)));
            for record in group {
                let mut record = *record;
                if self.apart {
                    record.request = self.last_request.map_or(0, |n| n.wrapping_add(1));
                }
                let Some(block) = self.interner.number(record.block) else {
                    return Err(self.interner.full(trace));
                };
                self.originals.see(block, record.block);
                if self.chunk.blocks.is_empty() {
                    self.begin(record.request)
                        .map_err(|()| full("no memory for more requests"))?;
                }
                self.push(block, &record);
                if self.chunk.blocks.len() == CHUNK {
                    done(self.take())?;
                }
            }
        }
        self.room(trace, 0)
    }

    /// Bytes of the numbers of the blocks.
    fn own(&self) -> u64 {
        self.interner.bytes() + self.originals.bytes()
    }

    /// Is there room for the numbers of the blocks, and for `kept` bytes of records?
    fn room(&self, trace: &str, kept: u64) -> Result<(), SimError> {
        room(trace, kept + self.own(), self.max_memory)
    }

    fn begin(&mut self, request: u32) -> Result<(), ()> {
        self.chunk.blocks.try_reserve_exact(CHUNK).map_err(|_| ())?;
        self.chunk.first_request = request;
        Ok(())
    }

    #[inline]
    fn push(&mut self, block: u32, record: &Record) {
        let chunk = &mut self.chunk;
        let n = chunk.blocks.len();
        if !chunk.requests.is_empty() {
            chunk.requests.push(record.request);
        } else if record.request != chunk.first_request.wrapping_add(n as u32) {
            chunk
                .requests
                .extend((0..n).map(|n| chunk.first_request.wrapping_add(n as u32)));
            chunk.requests.push(record.request);
        }
        if !chunk.kinds.is_empty() {
            chunk.kinds.push(record.kind);
        } else if record.kind != Kind::Read {
            chunk.kinds.resize(n, Kind::Read);
            chunk.kinds.push(record.kind);
        }
        chunk.blocks.push(block);
        let counts = &mut self.counts;
        counts.requests += u64::from(self.last_request != Some(record.request));
        self.last_request = Some(record.request);
        match record.kind {
            Kind::Read | Kind::Write => {
                counts.uses += 1;
                counts.writes += u64::from(record.kind == Kind::Write);
                counts.most_bytes = counts.most_bytes.max(record.bytes);
            }
            Kind::Readahead => counts.readahead += 1,
            Kind::Remove => counts.removed += 1,
        }
        let word = u64::from(block) | (u64::from(record.request) << 32);
        counts.checksum = (counts.checksum ^ word ^ ((record.kind as u64) << 30))
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(23);
    }

    fn take(&mut self) -> Chunk {
        let mut chunk = core::mem::take(&mut self.chunk);
        chunk.bound = self.interner.len();
        chunk.originals = self.originals.so_far();
        chunk.tick = self.tick;
        chunk
    }

    /// The last chunk, if there is something in it, and the counts.
    pub fn finish(mut self) -> (Option<Chunk>, Counts) {
        core::hint::black_box(self.sum);
        let chunk = (!self.chunk.blocks.is_empty()).then(|| self.take());
        self.counts.blocks = self.interner.len();
        (chunk, self.counts)
    }
}

/// Is there room for `kept` bytes of a trace?
///
/// # Errors
/// [`SimError::TooMuch`], with the bound and what to do.
pub fn room(trace: &str, kept: u64, most: u64) -> Result<(), SimError> {
    if kept <= most {
        return Ok(());
    }
    Err(SimError::TooMuch {
        trace: trace.to_owned(),
        fault: format!(
            "what is read of it takes more than the {} MiB that it may take in memory, and it has not ended; raise \
             --max-memory, or take a part with --limit",
            most.div_ceil(1 << 20)
        ),
    })
}

/// A part of a trace that is kept.
#[derive(Debug, Clone)]
struct Held {
    /// The part; without its records if they are in the file.
    chunk: Arc<Chunk>,
    /// Its records.
    records: usize,
    /// Where they are in the file.
    spilled: Option<Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    requests: bool,
    kinds: bool,
}

impl Held {
    fn new(chunk: Chunk) -> Self {
        Self {
            records: chunk.blocks.len(),
            chunk: Arc::new(chunk),
            spilled: None,
        }
    }

    /// Moves the records to the file.
    fn spill(&mut self, to: &Spill) -> Result<(), SimError> {
        let Chunk {
            blocks,
            first_request,
            requests,
            kinds,
            bound,
            originals,
            tick,
        } = &*self.chunk;
        let mut bytes = Vec::with_capacity(self.chunk.bytes() as usize);
        append(&mut bytes, blocks);
        append(&mut bytes, requests);
        bytes.extend(kinds.iter().map(|kind| *kind as u8));
        self.spilled = Some(Place {
            at: to.write(&bytes)?,
            requests: !requests.is_empty(),
            kinds: !kinds.is_empty(),
        });
        self.chunk = Arc::new(Chunk {
            first_request: *first_request,
            bound: *bound,
            originals: originals.clone(),
            tick: *tick,
            ..Chunk::default()
        });
        Ok(())
    }

    /// The part with its records.
    fn chunk(&self, file: Option<&Spill>) -> Result<Arc<Chunk>, SimError> {
        let (Some(place), Some(file)) = (self.spilled, file) else {
            return Ok(Arc::clone(&self.chunk));
        };
        let words = self.records * 4;
        let len =
            words * (1 + usize::from(place.requests)) + self.records * usize::from(place.kinds);
        let bytes = file.read(place.at, len)?;
        let (blocks, rest) = bytes.split_at(words);
        let (requests, kinds) = rest.split_at(words * usize::from(place.requests));
        let kind = |byte: &u8| match byte {
            0 => Kind::Read,
            1 => Kind::Write,
            2 => Kind::Readahead,
            _ => Kind::Remove,
        };
        Ok(Arc::new(Chunk {
            blocks: numbers(blocks),
            requests: numbers(requests),
            kinds: kinds.iter().map(kind).collect(),
            first_request: self.chunk.first_request,
            bound: self.chunk.bound,
            originals: self.chunk.originals.clone(),
            tick: self.chunk.tick,
        }))
    }
}

/// A whole trace, in memory as far as it may be and else in a file.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Its name, as given.
    pub name: String,
    /// Its format; none for one that was generated.
    pub format: Option<Format>,
    /// What is in it.
    pub counts: Counts,
    held: Vec<Held>,
    /// Bytes of records in memory, and how many may be.
    kept: u64,
    max_memory: u64,
    spill: Option<Arc<Spill>>,
}

impl Loaded {
    /// Nothing yet.
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            format: None,
            counts: Counts::default(),
            held: Vec::new(),
            kept: 0,
            max_memory: u64::MAX,
            spill: None,
        }
    }

    /// Reads a trace. `progress` is called now and then with the trace that is being read.
    ///
    /// # Errors
    /// [`SimError`].
    pub fn read(
        path: &Path,
        options: &ReadOptions,
        progress: impl FnMut(&Trace),
    ) -> Result<Self, SimError> {
        Self::from_trace(Trace::open(path, options)?, progress)
    }

    /// Reads what is left of a trace.
    ///
    /// # Errors
    /// [`SimError`].
    pub fn from_trace(
        mut trace: Trace,
        mut progress: impl FnMut(&Trace),
    ) -> Result<Self, SimError> {
        let mut loader = Loader::of(&trace);
        let mut loaded = Self {
            format: trace.format(),
            max_memory: trace.max_memory(),
            spill: trace
                .spill()
                .map(|to| Arc::new(Spill::new(trace.name(), to))),
            ..Self::new(trace.name())
        };
        let mut records = Vec::new();
        loop {
            records.clear();
            let more = trace.fill(&mut records)?;
            let Self {
                name, held, kept, ..
            } = &mut loaded;
            loader.add(name, &records, |chunk| {
                *kept += chunk.bytes();
                held.push(Held::new(chunk));
                Ok(())
            })?;
            loaded.fit(&loader)?;
            if !more {
                break;
            }
            progress(&trace);
        }
        Ok(loaded.end(loader))
    }

    /// Keeps within the bound what was read.
    fn fit(&mut self, loader: &Loader) -> Result<(), SimError> {
        let Some(spill) = &self.spill else {
            return loader.room(&self.name, self.kept + loader.chunk.bytes());
        };
        while self.kept + loader.own() > self.max_memory {
            let in_memory = |held: &&mut Held| held.spilled.is_none();
            let Some(held) = self.held.iter_mut().rev().find(in_memory) else {
                break;
            };
            self.kept -= held.chunk.bytes();
            held.spill(spill)?;
        }
        loader.room(&self.name, self.kept)
    }

    /// Takes records that are made in some other way.
    ///
    /// # Errors
    /// [`SimError::TooMuch`].
    pub fn from_records(name: &str, records: &[Record]) -> Result<Self, SimError> {
        let mut loader = Loader::new();
        let mut loaded = Self::new(name);
        loader.add(name, records, |chunk| {
            loaded.push(chunk);
            Ok(())
        })?;
        Ok(loaded.end(loader))
    }

    /// A trace with the same name and format, of which nothing is here yet.
    pub(super) fn alike(&self) -> Self {
        Self {
            format: self.format,
            ..Self::new(&self.name)
        }
    }

    pub(super) fn push(&mut self, chunk: Chunk) {
        self.kept += chunk.bytes();
        self.held.push(Held::new(chunk));
    }

    /// With the last chunk and the counts.
    pub(super) fn end(mut self, loader: Loader) -> Self {
        let (last, counts) = loader.finish();
        if let Some(chunk) = last {
            self.push(chunk);
        }
        self.counts = counts;
        self
    }

    /// Its parts, from memory or from the file.
    pub fn chunks(
        &self,
    ) -> impl DoubleEndedIterator<Item = Result<Arc<Chunk>, SimError>> + ExactSizeIterator {
        self.held
            .iter()
            .map(|held| held.chunk(self.spill.as_deref()))
    }

    /// Uses that count as a second for rules that age by time; 0 if time stands still.
    pub(super) fn tick(&self) -> u32 {
        self.held.first().map_or(0, |held| held.chunk.tick)
    }

    /// Records of all kinds.
    #[must_use]
    pub fn records(&self) -> usize {
        self.held.iter().map(|held| held.records).sum()
    }

    /// Bytes that are in the file.
    #[must_use]
    pub fn spilled(&self) -> u64 {
        self.spill.as_ref().map_or(0, |spill| spill.bytes())
    }

    /// The file, if `more` bytes beside the trace are more than its memory.
    pub(super) fn overflow(&self, more: u64) -> Option<Arc<Spill>> {
        let fits = self.kept.saturating_add(more) <= self.max_memory;
        self.spill.clone().filter(|_| !fits)
    }
}
