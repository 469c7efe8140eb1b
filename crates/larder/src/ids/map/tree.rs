//! Any number of chunks, in an ordered map.

use super::chunk::Chunk;
use super::ordered::Ordered;
use super::wide::Table;
use crate::ids::IdError;

/// The chunks that are not all free, by number; chunks in a row in which every offset is taken are one entry. So the
/// first half of 2^64 is one entry.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    spans: Ordered<Span>,
}

/// What lies from the key to `last`: one chunk, or full ones.
#[derive(Debug)]
struct Span {
    last: u64,
    chunk: Chunk,
}

impl Span {
    fn is_full(&self) -> bool {
        self.chunk.is_all(false)
    }
}

impl Tree {
    /// The span of the chunk, and where it begins.
    fn span(&self, c: u64) -> Option<(u64, &Span)> {
        self.spans.floor(c).filter(|(_, span)| c <= span.last)
    }

    /// The full span of the chunk: where it begins and ends. Spans of full chunks never touch.
    fn full(&self, c: Option<u64>) -> Option<(u64, u64)> {
        let (first, span) = self.span(c?)?;
        span.is_full().then_some((first, span.last))
    }

    /// Ends a span elsewhere.
    fn end(&mut self, first: u64, last: u64) {
        if let Some(span) = self.spans.get_mut(first) {
            span.last = last;
        }
    }

    /// Puts a chunk in the place of the chunks `first..=last`, which are of one full span, and in no other case than that
    /// of one chunk anything but free.
    fn cut(&mut self, first: u64, last: u64, chunk: Chunk) -> Result<(), IdError> {
        let Some((begin, end)) = self.full(Some(first)) else {
            return Ok(());
        };
        // What may fail comes before the span is cut, so that there is nothing to mend.
        if last < end {
            self.add(last + 1, end, Chunk::FULL)?;
        }
        let free = chunk.is_all(true);
        if begin == first && free {
            self.spans.remove(begin);
        } else if begin == first {
            if let Some(span) = self.spans.get_mut(begin) {
                *span = Span { last, chunk };
            }
        } else {
            if !free && let Err(error) = self.add(first, last, chunk) {
                if last < end {
                    self.spans.remove(last + 1);
                }
                return Err(error);
            }
            self.end(begin, first - 1);
        }
        Ok(())
    }

    fn add(&mut self, first: u64, last: u64, chunk: Chunk) -> Result<(), IdError> {
        self.spans.insert(first, Span { last, chunk })
    }

    /// Adds full chunks where none are, and joins them with those before and behind.
    fn add_full(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        let before = self.full(first.checked_sub(1));
        let behind = self.full(last.checked_add(1));
        let end = behind.map_or(last, |(_, end)| end);
        match before {
            Some((begin, _)) => self.end(begin, end),
            None => self.add(first, end, Chunk::FULL)?,
        }
        if let Some((begin, _)) = behind {
            self.spans.remove(begin);
        }
        Ok(())
    }

    /// Joins a chunk that has become full with those before and behind.
    fn join(&mut self, c: u64) {
        if let Some((begin, end)) = self.full(c.checked_add(1)) {
            self.spans.remove(begin);
            self.end(c, end);
        }
        if let Some((begin, _)) = self.full(c.checked_sub(1))
            && let Some(span) = self.spans.remove(c)
        {
            self.end(begin, span.last);
        }
    }
}

impl Table for Tree {
    fn get(&self, c: u64) -> &Chunk {
        self.span(c).map_or(&Chunk::FREE, |(_, span)| &span.chunk)
    }

    fn change<T>(
        &mut self,
        c: u64,
        change: impl FnOnce(&mut Chunk) -> Result<T, IdError>,
    ) -> Result<T, IdError> {
        let there = self.span(c).map(|(_, span)| span.is_full());
        let mut chunk = match there {
            Some(false) => {
                let Some(span) = self.spans.get_mut(c) else {
                    return Err(IdError::OutOfMemory);
                };
                let done = change(&mut span.chunk)?;
                if span.chunk.is_all(true) {
                    self.spans.remove(c);
                } else if span.chunk.is_all(false) {
                    self.join(c);
                }
                return Ok(done);
            }
            Some(true) => Chunk::FULL,
            None => Chunk::FREE,
        };
        let done = change(&mut chunk)?;
        match there.is_some() {
            true if !chunk.is_all(false) => self.cut(c, c, chunk)?,
            false if chunk.is_all(false) => self.add_full(c, c)?,
            false if !chunk.is_all(true) => self.add(c, c, chunk)?,
            _ => {}
        }
        Ok(done)
    }

    fn change_all(&mut self, first: u64, last: u64, free: bool) -> Result<(), IdError> {
        if free {
            // Full chunks in a row are one span.
            self.cut(first, last, Chunk::FREE)
        } else {
            self.add_full(first, last)
        }
    }

    fn next_open(&self, c: u64) -> Option<u64> {
        match self.span(c) {
            Some((_, span)) if span.is_full() => span.last.checked_add(1),
            _ => Some(c),
        }
    }

    fn next_used(&self, c: u64) -> Option<u64> {
        if self.span(c).is_some() {
            return Some(c);
        }
        self.spans.ceil(c)
    }

    fn bytes(&self) -> usize {
        let chunks = self.spans.values().map(|span| span.chunk.bytes());
        self.spans.bytes() + chunks.sum::<usize>()
    }
}
