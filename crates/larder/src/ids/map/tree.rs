//! Any number of chunks, in an ordered map.

use alloc::collections::BTreeMap;

use super::bits::CHUNK;
use super::chunk::Chunk;
use super::wide::Table;
use crate::ids::IdError;

/// The chunks that are not all free, by number; chunks in a row in which every offset is taken are one entry. So the
/// first half of 2^64 is one entry.
///
/// The standard library cannot say that there is no memory for a node of the map: that alone ends the program.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    spans: BTreeMap<u64, Span>,
}

/// What lies from the key to `last`: one chunk, or full ones.
#[derive(Debug)]
struct Span {
    last: u64,
    chunk: Chunk,
}

impl Tree {
    /// The span of the chunk, and where it begins.
    fn span(&self, c: u64) -> Option<(u64, &Span)> {
        let (&first, span) = self.spans.range(..=c).next_back()?;
        (c <= span.last).then_some((first, span))
    }

    /// Cuts the chunks `first..=last` out of a span of full ones that contains all of them.
    fn cut(&mut self, first: u64, last: u64) {
        let Some((begin, span)) = self.span(first) else {
            return;
        };
        let end = span.last;
        self.spans.remove(&begin);
        if begin < first {
            self.add(begin, first - 1, Chunk::Full);
        }
        if last < end {
            self.add(last + 1, end, Chunk::Full);
        }
    }

    fn add(&mut self, first: u64, last: u64, chunk: Chunk) {
        self.spans.insert(first, Span { last, chunk });
    }

    /// Adds full chunks where none are, and joins them with those before and behind.
    fn add_full(&mut self, first: u64, last: u64) {
        let (mut from, mut to) = (first, last);
        if let Some((begin, span)) = first.checked_sub(1).and_then(|c| self.span(c))
            && matches!(span.chunk, Chunk::Full)
        {
            self.spans.remove(&begin);
            from = begin;
        }
        if let Some((begin, span)) = last.checked_add(1).and_then(|c| self.span(c))
            && matches!(span.chunk, Chunk::Full)
        {
            to = span.last;
            self.spans.remove(&begin);
        }
        self.add(from, to, Chunk::Full);
    }
}

impl Table for Tree {
    fn get(&self, c: u64) -> &Chunk {
        self.span(c).map_or(&Chunk::Free, |(_, span)| &span.chunk)
    }

    fn change<T>(
        &mut self,
        c: u64,
        change: impl FnOnce(&mut Chunk) -> Result<T, IdError>,
    ) -> Result<T, IdError> {
        match self.spans.range_mut(..=c).next_back() {
            Some((_, span)) if c <= span.last && !matches!(span.chunk, Chunk::Full) => {
                let done = change(&mut span.chunk)?;
                match span.chunk {
                    Chunk::Free => {
                        self.spans.remove(&c);
                    }
                    Chunk::Full => {
                        self.spans.remove(&c);
                        self.add_full(c, c);
                    }
                    _ => {}
                }
                Ok(done)
            }
            Some((_, span)) if c <= span.last => {
                let mut chunk = Chunk::Full;
                let done = change(&mut chunk)?;
                if !matches!(chunk, Chunk::Full) {
                    self.cut(c, c);
                    if !matches!(chunk, Chunk::Free) {
                        self.add(c, c, chunk);
                    }
                }
                Ok(done)
            }
            _ => {
                let mut chunk = Chunk::Free;
                let done = change(&mut chunk)?;
                match chunk {
                    Chunk::Free => {}
                    Chunk::Full => self.add_full(c, c),
                    chunk => self.add(c, c, chunk),
                }
                Ok(done)
            }
        }
    }

    fn change_all(&mut self, first: u64, last: u64, free: bool) -> Result<(), IdError> {
        if free {
            // Full chunks in a row are one span.
            self.cut(first, last);
        } else {
            self.add_full(first, last);
        }
        Ok(())
    }

    fn next_open(&self, c: u64) -> Option<u64> {
        match self.span(c) {
            // Spans of full chunks never touch.
            Some((_, span)) if matches!(span.chunk, Chunk::Full) => span.last.checked_add(1),
            _ => Some(c),
        }
    }

    fn next_used(&self, c: u64) -> Option<u64> {
        if self.span(c).is_some() {
            return Some(c);
        }
        self.spans.range(c..).next().map(|(&first, _)| first)
    }

    fn select(&self, rank: u64) -> Option<(u64, u64)> {
        let mut left = rank;
        let mut c = 0;
        for (&first, span) in &self.spans {
            let between = first - c;
            if left / CHUNK < between {
                break;
            }
            left -= between * CHUNK;
            let free = span.chunk.free();
            if left < free {
                return Some((first, left));
            }
            left -= free;
            c = span.last + 1;
        }
        Some((c + left / CHUNK, left % CHUNK))
    }

    fn bytes(&self) -> usize {
        // A node of the standard library has 11 places, 8 of which are in use on average.
        let node = (size_of::<u64>() + size_of::<Span>()) * 11 / 8;
        let chunks = self.spans.values().map(|span| span.chunk.bytes());
        self.spans.len() * node + chunks.sum::<usize>()
    }
}
