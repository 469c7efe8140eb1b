//! The allocated identifiers as bytes: chunk by chunk, each as runs or as a bitmap, whichever is smaller.
//!
//! Every entry begins with the number of empty chunks before it, then a tag. All numbers are LEB128.
//!
//! | tag | what follows | |
//! |---|---|---|
//! | 0 | n | n chunks in which everything is allocated |
//! | 1 | n, then n times: gap, length - 1 | a chunk of n runs; the gap is one less between two runs, which never touch |
//! | 2 | n, then n bytes | a chunk as a bitmap, lowest bit first; what is missing at its end is free |

use alloc::vec::Vec;

use super::SnapshotError;
use super::error::no_memory;

/// Identifiers of a chunk; 8 KiB as a bitmap.
const CHUNK: u64 = 1 << 16;
const BITMAP_BYTES: usize = (CHUNK / 8) as usize;

const FULL: u8 = 0;
const RUNS: u8 = 1;
const BITMAP: u8 = 2;

/// Writes runs of offsets, which come in ascending order and do not touch. Holds two chunks' worth beside the result.
pub(super) struct Encoder {
    out: Vec<u8>,
    /// Where the next entry begins to count empty chunks.
    next_chunk: u64,
    /// The chunk that is being filled.
    chunk: u64,
    runs: Vec<u8>,
    run_count: u64,
    /// Behind the last run, within the chunk.
    run_end: u64,
    bitmap: Vec<u8>,
    count: u64,
}

impl Encoder {
    pub(super) fn new() -> Result<Self, SnapshotError> {
        let mut bitmap = Vec::new();
        bitmap.try_reserve_exact(BITMAP_BYTES).map_err(no_memory)?;
        bitmap.resize(BITMAP_BYTES, 0);
        Ok(Self {
            out: Vec::new(),
            next_chunk: 0,
            chunk: 0,
            runs: Vec::new(),
            run_count: 0,
            run_end: 0,
            bitmap,
            count: 0,
        })
    }

    /// Adds the offsets `first..=last`.
    pub(super) fn run(&mut self, first: u64, last: u64) -> Result<(), SnapshotError> {
        let length = (last - first).checked_add(1);
        let count = length.and_then(|length| self.count.checked_add(length));
        self.count = count.ok_or(damaged("2^64 identifiers cannot be counted"))?;
        let (mut at, end_chunk) = (first, last / CHUNK);
        while at / CHUNK < end_chunk {
            let chunk = at / CHUNK;
            if at.is_multiple_of(CHUNK) {
                // Whole chunks, and the rest of the run, if any, in the chunk behind them.
                let whole = if last % CHUNK == CHUNK - 1 {
                    end_chunk - chunk + 1
                } else {
                    end_chunk - chunk
                };
                self.full(chunk, whole)?;
                match (chunk + whole).checked_mul(CHUNK) {
                    Some(behind) if behind <= last => at = behind,
                    _ => return Ok(()),
                }
            } else {
                self.within(chunk, at % CHUNK, CHUNK - 1)?;
                at = (chunk + 1) * CHUNK;
            }
        }
        if at % CHUNK == 0 && last % CHUNK == CHUNK - 1 {
            self.full(end_chunk, 1)
        } else {
            self.within(end_chunk, at % CHUNK, last % CHUNK)
        }
    }

    /// How many offsets there are, and their bytes.
    pub(super) fn finish(mut self) -> Result<(u64, Vec<u8>), SnapshotError> {
        self.flush()?;
        Ok((self.count, self.out))
    }

    fn full(&mut self, chunk: u64, count: u64) -> Result<(), SnapshotError> {
        self.flush()?;
        self.entry(chunk, FULL)?;
        push(&mut self.out, count)?;
        self.next_chunk = chunk + count;
        Ok(())
    }

    fn within(&mut self, chunk: u64, first: u64, last: u64) -> Result<(), SnapshotError> {
        if chunk != self.chunk {
            self.flush()?;
            self.chunk = chunk;
        }
        // Once the runs are longer than a bitmap they are not written any more.
        if self.runs.len() <= BITMAP_BYTES {
            let touching = u64::from(self.run_count > 0);
            push(&mut self.runs, first - self.run_end - touching)?;
            push(&mut self.runs, last - first)?;
        }
        self.run_count += 1;
        self.run_end = last + 1;
        set_bits(&mut self.bitmap, first as usize, last as usize);
        Ok(())
    }

    /// Writes the chunk that was being filled.
    fn flush(&mut self) -> Result<(), SnapshotError> {
        if self.run_count == 0 {
            return Ok(());
        }
        let bytes = (self.run_end as usize).div_ceil(8);
        if self.runs.len() <= bytes {
            self.entry(self.chunk, RUNS)?;
            push(&mut self.out, self.run_count)?;
            append(&mut self.out, &self.runs)?;
        } else {
            self.entry(self.chunk, BITMAP)?;
            push(&mut self.out, bytes as u64)?;
            append(&mut self.out, &self.bitmap[..bytes])?;
        }
        self.next_chunk = self.chunk + 1;
        self.bitmap[..bytes].fill(0);
        self.runs.clear();
        (self.run_count, self.run_end) = (0, 0);
        Ok(())
    }

    fn entry(&mut self, chunk: u64, tag: u8) -> Result<(), SnapshotError> {
        push(&mut self.out, chunk - self.next_chunk)?;
        append(&mut self.out, &[tag])
    }
}

fn set_bits(bitmap: &mut [u8], first: usize, last: usize) {
    let (head, tail) = (0xFFu8 << (first % 8), 0xFFu8 >> (7 - last % 8));
    if first / 8 == last / 8 {
        bitmap[first / 8] |= head & tail;
    } else {
        bitmap[first / 8] |= head;
        bitmap[first / 8 + 1..last / 8].fill(0xFF);
        bitmap[last / 8] |= tail;
    }
}

pub(super) fn append(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), SnapshotError> {
    out.try_reserve(bytes.len()).map_err(no_memory)?;
    out.extend_from_slice(bytes);
    Ok(())
}

/// Adds a number in LEB128.
fn push(out: &mut Vec<u8>, mut value: u64) -> Result<(), SnapshotError> {
    let (mut bytes, mut length) = ([0; 10], 1);
    while value > 0x7F {
        bytes[length - 1] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    bytes[length - 1] = value as u8;
    append(out, &bytes[..length])
}

fn damaged(what: &'static str) -> SnapshotError {
    SnapshotError::Damaged { what }
}

/// Reads runs of offsets from bytes that may be anything: each is ascending and ends at or before `last`, or there is
/// an error. Holds nothing, and takes time in proportion to the bytes.
#[derive(Debug, Clone)]
pub(super) struct Decoder<'a> {
    body: &'a [u8],
    last: u64,
    /// The chunk behind the entry that was read last.
    chunk: u64,
    state: State<'a>,
}

#[derive(Debug, Clone)]
enum State<'a> {
    Between,
    Runs { left: u64, from: u64 },
    Bitmap { bytes: &'a [u8], from: usize },
}

impl<'a> Decoder<'a> {
    pub(super) fn new(body: &'a [u8], last: u64) -> Self {
        Self {
            body,
            last,
            chunk: 0,
            state: State::Between,
        }
    }

    /// The next run, which may touch the one before where a chunk ends.
    pub(super) fn run(&mut self) -> Result<Option<(u64, u64)>, SnapshotError> {
        loop {
            match self.state {
                State::Runs { left: 0, .. } => self.state = State::Between,
                State::Runs { left, from } => {
                    let begin = from.checked_add(self.number()?);
                    let length = self.number()?;
                    let end = begin.and_then(|begin| begin.checked_add(length));
                    let (Some(begin), Some(end)) = (begin, end) else {
                        return Err(damaged("a run has an absurd length"));
                    };
                    if end >= CHUNK {
                        return Err(damaged("a run leaves its chunk"));
                    }
                    self.state = State::Runs {
                        left: left - 1,
                        from: end + 2,
                    };
                    return self.within(begin, end).map(Some);
                }
                State::Bitmap { bytes, from } => {
                    let Some(begin) = find(bytes, from, true) else {
                        self.state = State::Between;
                        continue;
                    };
                    let end = find(bytes, begin, false).unwrap_or(bytes.len() * 8);
                    self.state = State::Bitmap { bytes, from: end };
                    return self.within(begin as u64, end as u64 - 1).map(Some);
                }
                State::Between => {
                    if self.body.is_empty() {
                        return Ok(None);
                    }
                    if let Some(run) = self.entry()? {
                        return Ok(Some(run));
                    }
                }
            }
        }
    }

    /// Reads the head of an entry; a run, when it stands for whole chunks.
    fn entry(&mut self) -> Result<Option<(u64, u64)>, SnapshotError> {
        let skip = self.number()?;
        let chunk = self.chunk.checked_add(skip);
        let Some(chunk) = chunk.filter(|&chunk| chunk <= self.last / CHUNK) else {
            return Err(damaged("a chunk lies outside of the range"));
        };
        let tag = self.bytes(1)?[0];
        let count = self.number()?;
        if count == 0 {
            return Err(damaged("an entry is empty"));
        }
        self.chunk = chunk + 1;
        match tag {
            FULL => {
                let first = chunk * CHUNK;
                let last = count
                    .checked_mul(CHUNK)
                    .and_then(|length| first.checked_add(length - 1))
                    .filter(|&last| last <= self.last);
                let Some(last) = last else {
                    return Err(damaged("full chunks lie outside of the range"));
                };
                self.chunk = chunk + count;
                Ok(Some((first, last)))
            }
            RUNS => {
                self.state = State::Runs {
                    left: count,
                    from: 0,
                };
                Ok(None)
            }
            BITMAP => {
                let count = usize::try_from(count).ok().filter(|&n| n <= BITMAP_BYTES);
                let Some(count) = count else {
                    return Err(damaged("a bitmap is longer than its chunk"));
                };
                let bytes = self.bytes(count)?;
                self.state = State::Bitmap { bytes, from: 0 };
                Ok(None)
            }
            _ => Err(damaged("an entry has an unknown tag")),
        }
    }

    /// A run within the chunk that was just entered.
    fn within(&self, begin: u64, end: u64) -> Result<(u64, u64), SnapshotError> {
        // The chunk begins within the range, so nothing overflows.
        let base = (self.chunk - 1) * CHUNK;
        if base + end > self.last {
            return Err(damaged("a run lies outside of the range"));
        }
        Ok((base + begin, base + end))
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], SnapshotError> {
        let (bytes, rest) = self
            .body
            .split_at_checked(count)
            .ok_or(damaged("it ends in the middle of an entry"))?;
        self.body = rest;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u64, SnapshotError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.bytes(1)?[0];
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return Err(damaged("a number is too large"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged("a number is too long"))
    }
}

/// The first bit at or above `from` that is `wanted`.
fn find(bytes: &[u8], from: usize, wanted: bool) -> Option<usize> {
    let flip = if wanted { 0 } else { 0xFF };
    let first = *bytes.get(from / 8)?;
    let first = (first ^ flip) & (0xFFu8 << (from % 8));
    if first != 0 {
        return Some(from / 8 * 8 + first.trailing_zeros() as usize);
    }
    let after = from / 8 + 1;
    let skipped = bytes[after..].iter().position(|&byte| byte ^ flip != 0)?;
    let at = after + skipped;
    Some(at * 8 + (bytes[at] ^ flip).trailing_zeros() as usize)
}
