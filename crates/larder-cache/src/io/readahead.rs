//! Readahead: which readers go from front to end, and how far ahead is worth reading.

use crate::key::Key;

/// Blocks that are read ahead at first.
const FIRST: usize = 4;

/// A reader's place in a file that it reads block after block.
#[derive(Debug, Clone, Copy)]
struct Stream {
    /// The block behind those that were asked for.
    next: Key,
    /// So many from there on were to be read ahead. There may have been room for fewer.
    window: usize,
}

impl Stream {
    /// A reader that misses this block may be the stream's: all that came ahead of it was there.
    fn is_at(&self, key: Key) -> bool {
        key.0.wrapping_sub(self.next.0) <= self.window as u64
    }
}

/// The latest readers of a handle, so that several files, or several places of one, may be read by turns.
#[derive(Debug)]
pub(crate) struct Streams {
    streams: [Stream; 4],
    /// The one that is replaced next.
    turn: usize,
}

impl Streams {
    pub(crate) const fn new() -> Self {
        Self {
            streams: [Stream {
                next: Key::NONE,
                window: 0,
            }; 4],
            turn: 0,
        }
    }

    /// A block was asked for, with others up to `len` in all, and was not there. Returns how many behind them are worth reading
    /// ahead, at most `most`: none at first, 4 when the block before was asked for or read ahead, and twice as many each time.
    pub(crate) fn missed(&mut self, key: Key, len: u64, most: usize) -> usize {
        if most == 0 || len == 0 {
            return 0;
        }
        let end = Key(key.0 + len);
        let mut streams = self.streams.iter_mut();
        let Some(stream) = streams.find(|stream| stream.next == end || stream.is_at(key)) else {
            self.turn = (self.turn + 1) % self.streams.len();
            self.streams[self.turn] = Stream {
                next: end,
                window: 0,
            };
            return 0;
        };
        // With the same end it is the rest of what was asked for the last time, when it did not all come.
        if stream.next != end {
            *stream = Stream {
                next: end,
                window: stream.window.saturating_mul(2).max(FIRST).min(most),
            };
        }
        stream.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_goes_on_where_fewer_blocks_came_than_were_asked_for() {
        let mut streams = Streams::new();
        let mut missed = |key, len| streams.missed(Key(key), len, 32);
        assert_eq!([missed(0, 1), missed(1, 1)], [0, 4]);
        // Two of the four came, then all, then none.
        assert_eq!([missed(4, 1), missed(13, 1), missed(14, 1)], [8, 16, 32]);
        // Of many that are asked for not all come at once: that is no other reader, and not one that reads more.
        assert_eq!([missed(15, 900), missed(200, 715)], [32, 32]);
        assert_eq!([missed(915, 1), missed(949, 1)], [32, 0]);
    }

    #[test]
    fn a_reader_may_be_read_ahead_of_without_end() {
        let mut streams = Streams::new();
        let mut window = 0;
        for index in 0..100 {
            window = streams.missed(Key::new(1, index), 1, usize::MAX);
        }
        assert_eq!(window, usize::MAX);
        assert_eq!(streams.missed(Key::new(1, 100), 0, usize::MAX), 0);
    }
}
