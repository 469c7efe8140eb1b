//! Readahead: which readers go from front to end, and how far ahead is worth reading.

use crate::key::Key;

/// Blocks that are read ahead at first.
const FIRST: usize = 4;

/// A reader's place in a file that it reads block after block.
#[derive(Debug, Clone, Copy)]
struct Stream {
    next: Key,
    window: usize,
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
        if most == 0 {
            return 0;
        }
        let found = self.streams.iter_mut().find(|stream| stream.next == key);
        let (stream, window) = match found {
            Some(stream) => {
                let window = (stream.window * 2).max(FIRST).min(most);
                (stream, window)
            }
            None => {
                self.turn = (self.turn + 1) % self.streams.len();
                (&mut self.streams[self.turn], 0)
            }
        };
        *stream = Stream {
            next: Key(key.0 + len + window as u64),
            window,
        };
        window
    }
}
