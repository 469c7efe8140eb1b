//! A trace that is kept: dense block numbers, 4 bytes a request in most traces, in memory or, from a bound on, in a file.

use std::path::Path;
use std::sync::Arc;

use super::intern::{GROUP, Interner};
use super::originals::{Collector, Originals};
use super::spill::{Spill, append, numbers};
use super::{Format, Kind, ReadOptions, Record, SimError, Trace};

/// Records of a chunk that is kept: 4 MiB of block numbers, since smaller ones cost more to have.
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
    /// What the cache that was recorded did by itself: blocks that became dirty or clean, or were held, and seconds.
    #[serde(default)]
    pub states: u64,
    /// Requests.
    pub requests: u64,
    /// Different blocks.
    pub blocks: u32,
    /// Most bytes of a use; 0 where the trace has no sizes.
    #[serde(default)]
    pub most_bytes: u32,
    /// A polynomial of the dense numbers, requests and kinds, modulo 2^64: equal traces have equal ones.
    pub checksum: u64,
}

impl Counts {
    /// Adds records to the checksum. Four at a time are one step of it, so that their products do not wait for each other.
    #[inline]
    fn add(&mut self, words: &[u64]) {
        const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
        const SQUARE: u64 = BASE.wrapping_mul(BASE);
        let step = |sum: u64, factor: u64, word: u64| sum.wrapping_mul(factor).wrapping_add(word);
        let (fours, rest) = words.as_chunks();
        let mut sum = self.checksum;
        for &[a, b, c, d] in fours {
            let words = step(step(a, BASE, b), SQUARE, step(c, BASE, d));
            sum = step(sum, SQUARE.wrapping_mul(SQUARE), words);
        }
        self.checksum = rest.iter().fold(sum, |sum, &word| step(sum, BASE, word));
    }

    /// Counts a trace to its end and keeps only the blocks' numbers.
    ///
    /// # Errors
    /// [`SimError`].
    pub fn of(mut trace: Trace, mut progress: impl FnMut(&Trace)) -> Result<Self, SimError> {
        let name = trace.name().to_owned();
        let mut loader = Loader::of(&trace);
        let mut more = true;
        while more {
            more = trace.step()?;
            loader.add(&name, trace.records(), |_| Ok(()))?;
            progress(&trace);
        }
        Ok(loader.finish().1)
    }
}

/// A record in the checksum.
#[inline]
fn word_of(block: u32, request: u32, kind: Kind) -> u64 {
    // States have bits of their own: 32 and above would be those of another request.
    let kind = match kind.is_state() {
        true => (kind as u64).wrapping_mul(0xd6e8_feb8_6659_fd93),
        false => (kind as u64) << 30,
    };
    (u64::from(block) | u64::from(request) << 32) ^ kind
}

/// There is no memory for the records of a chunk.
struct NoRoom;

/// Makes chunks from records.
#[derive(Debug)]
pub struct Loader {
    interner: Interner,
    chunk: Chunk,
    counts: Counts,
    last_request: Option<u32>,
    /// Each use counts as a request of its own.
    apart: bool,
    originals: Collector,
    tick: u32,
    max_memory: u64,
    /// Records of a chunk.
    most: usize,
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
            apart: false,
            originals: Collector::default(),
            tick: 0,
            max_memory: u64::MAX,
            most: CHUNK,
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

    /// The same, with chunks of this many records.
    pub(super) fn in_parts(self, records: usize) -> Self {
        Self {
            most: records,
            ..self
        }
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
        let full = |NoRoom| SimError::TooMuch {
            trace: trace.to_owned(),
            fault: "no memory for more requests; take a part of it with --limit".to_owned(),
        };
        let (groups, rest) = records.as_chunks();
        for group in groups {
            let known = self.interner.len();
            let blocks = self
                .interner
                .numbers(group)
                .ok_or_else(|| self.interner.full(trace))?;
            if self.interner.len() > known {
                for (&block, record) in blocks.iter().zip(group) {
                    self.originals.see(block, record.block);
                }
            }
            if !self.push_reads(&blocks, group).map_err(full)? {
                for (&block, record) in blocks.iter().zip(group) {
                    self.push(block, record).map_err(full)?;
                    self.take_full().map_or(Ok(()), &mut done)?;
                }
            }
            self.take_full().map_or(Ok(()), &mut done)?;
        }
        for record in rest {
            let block = self
                .interner
                .number(record.block)
                .ok_or_else(|| self.interner.full(trace))?;
            self.originals.see(block, record.block);
            self.push(block, record).map_err(full)?;
            self.take_full().map_or(Ok(()), &mut done)?;
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

    /// Makes room for a chunk's records if it has none yet.
    fn begin(&mut self, record: &Record) -> Result<(), NoRoom> {
        if self.chunk.blocks.is_empty() {
            self.chunk
                .blocks
                .try_reserve_exact(self.most)
                .map_err(|_| NoRoom)?;
            self.chunk.first_request = self.request_of(record);
        }
        Ok(())
    }

    /// The number of a record's request that comes next.
    fn request_of(&self, record: &Record) -> u32 {
        match self.apart {
            true => self.last_request.map_or(0, |n| n.wrapping_add(1)),
            false => record.request,
        }
    }

    /// Adds records of which each only reads and is a request of its own, the next by number: most traces have no others. Returns
    /// whether they are such and fit in the chunk; else nothing is added.
    #[inline]
    fn push_reads(
        &mut self,
        blocks: &[u32; GROUP],
        records: &[Record; GROUP],
    ) -> Result<bool, NoRoom> {
        self.begin(&records[0])?;
        let chunk = &mut self.chunk;
        let n = chunk.blocks.len();
        let from = chunk.first_request.wrapping_add(n as u32);
        let next = |n: usize| from.wrapping_add(n as u32);
        let mut most_bytes = self.counts.most_bytes;
        // The bits of what is no read, or not the next request.
        let mut odd = 0;
        for (n, record) in records.iter().enumerate() {
            let apart = if self.apart {
                0
            } else {
                record.request ^ next(n)
            };
            odd |= record.kind as u32 | apart;
            most_bytes = most_bytes.max(record.bytes);
        }
        let fits = n + GROUP <= self.most && chunk.requests.is_empty() && chunk.kinds.is_empty();
        if !fits || odd != Kind::Read as u32 {
            return Ok(false);
        }
        chunk.blocks.extend_from_slice(blocks);
        let counts = &mut self.counts;
        counts.uses += GROUP as u64;
        counts.requests += GROUP as u64 - u64::from(self.last_request == Some(from));
        counts.most_bytes = most_bytes;
        counts.add(&core::array::from_fn::<_, GROUP, _>(|n| {
            word_of(blocks[n], next(n), Kind::Read)
        }));
        self.last_request = Some(next(GROUP - 1));
        Ok(true)
    }

    /// Adds any record.
    fn push(&mut self, block: u32, record: &Record) -> Result<(), NoRoom> {
        self.begin(record)?;
        // What is no request belongs to the last one.
        let request = match self.last_request {
            Some(last) if record.kind.is_state() => last,
            _ => self.request_of(record),
        };
        let chunk = &mut self.chunk;
        let n = chunk.blocks.len();
        if !chunk.requests.is_empty() {
            chunk.requests.push(request);
        } else if request != chunk.first_request.wrapping_add(n as u32) {
            chunk
                .requests
                .extend((0..n).map(|n| chunk.first_request.wrapping_add(n as u32)));
            chunk.requests.push(request);
        }
        if !chunk.kinds.is_empty() {
            chunk.kinds.push(record.kind);
        } else if record.kind != Kind::Read {
            chunk.kinds.resize(n, Kind::Read);
            chunk.kinds.push(record.kind);
        }
        chunk.blocks.push(block);
        let counts = &mut self.counts;
        counts.requests += u64::from(self.last_request != Some(request));
        self.last_request = Some(request);
        match record.kind {
            Kind::Read | Kind::Write => {
                counts.uses += 1;
                counts.writes += u64::from(record.kind == Kind::Write);
                counts.most_bytes = counts.most_bytes.max(record.bytes);
            }
            Kind::Readahead => counts.readahead += 1,
            Kind::Remove => counts.removed += 1,
            _ => counts.states += 1,
        }
        counts.add(&[word_of(block, request, record.kind)]);
        Ok(())
    }

    fn take_full(&mut self) -> Option<Chunk> {
        (self.chunk.blocks.len() == self.most).then(|| self.take())
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
        let kind = |byte: &u8| Kind::ALL[usize::from(*byte)];
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
        loop {
            let more = trace.step()?;
            let Self {
                name, held, kept, ..
            } = &mut loaded;
            loader.add(name, trace.records(), |chunk| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// By how much the request's number is larger than the one before, and what is done.
    type Step = (u32, Kind);

    /// Mostly reads, each a request of its own; now and then something else.
    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let by = prop_oneof![300 => Just(1_u32), 1 => Just(0), 1 => Just(7)];
        let kind = prop_oneof![
            300 => Just(Kind::Read),
            1 => Just(Kind::Write),
            1 => Just(Kind::Readahead),
            1 => Just(Kind::Remove),
            1 => Just(Kind::Dirty),
            1 => Just(Kind::Clean),
            1 => Just(Kind::Held),
            1 => Just(Kind::Tick)
        ];
        vec((by, kind), 1..2000)
    }

    /// The same records with as many reads before them that the last of those and the first of these are in one chunk or not.
    fn records(plain: usize, steps: &[Step]) -> Vec<Record> {
        let mut request = u32::MAX - 1_000; // the numbers wrap
        let reads = core::iter::repeat_n((1, Kind::Read), plain);
        let record = |(n, (by, kind)): (usize, Step)| {
            request = request.wrapping_add(by);
            Record {
                block: (n * n % 997) as u64,
                request,
                bytes: n as u32 % 4096,
                kind,
                ..Record::default()
            }
        };
        let all = reads.chain(steps.iter().copied());
        all.enumerate().map(record).collect()
    }

    /// Adds the records in pieces of these lengths, and then the rest. Returns what the chunks say of each, and the counts.
    fn load(
        mut loader: Loader,
        records: &[Record],
        lengths: &[usize],
    ) -> (Vec<(u32, u32, Kind)>, Counts) {
        let mut all = Vec::new();
        let mut see = |chunk: Chunk| {
            assert!(chunk.blocks.len() <= CHUNK);
            chunk.for_each(|block, request, kind| all.push((block, request, kind)));
            Ok(())
        };
        let mut rest = records;
        for &length in lengths {
            let (piece, behind) = rest.split_at(length.min(rest.len()));
            loader.add("pieces", piece, &mut see).unwrap();
            rest = behind;
        }
        loader.add("pieces", rest, &mut see).unwrap();
        let (last, counts) = loader.finish();
        last.map_or(Ok(()), see).unwrap();
        (all, counts)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn chunks_have_each_record_however_they_come(
            apart in any::<bool>(),
            plain in prop_oneof![3 => 0..100_usize, 1 => CHUNK - 50..CHUNK + 50],
            steps in steps(),
            lengths in vec(0..100_usize, 0..100),
            most in 1..200_usize,
        ) {
            let records = records(plain, &steps);
            let loader = || Loader { apart, ..Loader::new() };
            let (whole, counts) = load(loader(), &records, &[]);
            let mut numbers = Interner::new();
            let mut last = None;
            let expected = |(_, r): (u32, &Record)| {
                let next = last.map_or(0, |last: u32| last.wrapping_add(1));
                let request = match last {
                    Some(last) if r.kind.is_state() => last,
                    _ => if apart { next } else { r.request },
                };
                last = Some(request);
                (numbers.number(r.block).unwrap(), request, r.kind)
            };
            let expected: Vec<_> = (0..).zip(&records).map(expected).collect();
            prop_assert!(whole == expected);
            prop_assert!(load(loader(), &records, &lengths) == (whole.clone(), counts), "in pieces");
            let parts = load(loader().in_parts(most), &records, &lengths);
            prop_assert!(parts == (whole, counts), "in parts of {most}");
            let of = |kind| records.iter().filter(|r| r.kind == kind).count() as u64;
            prop_assert_eq!(
                [counts.uses, counts.writes, counts.readahead, counts.removed, counts.states],
                [
                    of(Kind::Read) + of(Kind::Write),
                    of(Kind::Write),
                    of(Kind::Readahead),
                    of(Kind::Remove),
                    records.iter().filter(|r| r.kind.is_state()).count() as u64,
                ]
            );
            let mut requests: Vec<u32> = expected.iter().map(|&(_, request, _)| request).collect();
            requests.dedup();
            prop_assert_eq!(counts.requests, requests.len() as u64);
            let is_use = |r: &&Record| r.kind.is_use();
            let most = records.iter().filter(is_use).map(|r| r.bytes).max();
            prop_assert_eq!(counts.most_bytes, most.unwrap_or(0));
            let at = records.len() / 2;
            let kind = if records[at].kind == Kind::Read { Kind::Write } else { Kind::Read };
            let changed = [Record { kind, ..records[at] }, Record { block: records[0].block, ..records[at] }];
            for record in changed.into_iter().filter(|record| *record != records[at]) {
                let mut other = records.clone();
                other[at] = record;
                prop_assert_ne!(load(loader(), &other, &[]).1.checksum, counts.checksum);
            }
        }
    }
}
