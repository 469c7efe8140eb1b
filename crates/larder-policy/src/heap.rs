//! A priority queue of frames whose keys change: a binary heap that knows where each frame is.

use super::{FrameState, Frames, PolicyError};
use larder_base::list::NONE;
use larder_base::table::{grow, table};

/// The least key is first. Keys of a rule's frames are all different, so that the order is the same however the heap was made.
#[derive(Debug)]
pub(super) struct Heap<K> {
    /// The first `len` are the heap.
    entries: Vec<(K, u32)>,
    /// By frame.
    places: Vec<u32>,
    len: usize,
}

impl<K: Copy + PartialOrd + Default> Heap<K> {
    pub(super) fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            entries: table(frames, (K::default(), NONE))?,
            places: table(frames, NONE)?,
            len: 0,
        })
    }

    pub(super) fn grow(&mut self, frames: usize) -> Result<(), PolicyError> {
        grow(&mut self.entries, frames, (K::default(), NONE))?;
        Ok(grow(&mut self.places, frames, NONE)?)
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(K, u32)>() + self.places.capacity() * size_of::<u32>()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The least.
    pub(super) fn first(&self) -> Option<(K, u32)> {
        (self.len > 0).then(|| self.entries[0])
    }

    /// The least that is not pinned. The first is looked at first; all are searched when it is pinned.
    #[inline]
    pub(super) fn first_unpinned<F: Frames>(&self, frames: &F) -> Option<(K, u32)> {
        let first = self.first()?;
        if frames.state(first.1) != FrameState::Pinned {
            return Some(first);
        }
        let unpinned = |entry: &&(K, u32)| frames.state(entry.1) != FrameState::Pinned;
        let entries = self.entries[..self.len].iter().filter(unpinned);
        entries
            .copied()
            .reduce(|a, b| if b.0 < a.0 { b } else { a })
    }

    /// The key of a frame that is in.
    #[inline]
    pub(super) fn key(&self, frame: u32) -> K {
        self.entries[self.places[frame as usize] as usize].0
    }

    #[inline]
    fn put(&mut self, place: usize, entry: (K, u32)) {
        self.entries[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }

    fn up(&mut self, mut place: usize, entry: (K, u32)) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.entries[parent].0 <= entry.0 {
                break;
            }
            self.put(place, self.entries[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn down(&mut self, mut place: usize, entry: (K, u32)) {
        loop {
            let mut child = 2 * place + 1;
            if child >= self.len {
                break;
            }
            if child + 1 < self.len && self.entries[child + 1].0 < self.entries[child].0 {
                child += 1;
            }
            if entry.0 <= self.entries[child].0 {
                break;
            }
            self.put(place, self.entries[child]);
            place = child;
        }
        self.put(place, entry);
    }

    /// Puts a frame in, or changes its key.
    #[inline]
    pub(super) fn set(&mut self, frame: u32, key: K) {
        match self.places[frame as usize] {
            NONE => {
                self.len += 1;
                self.up(self.len - 1, (key, frame));
            }
            place if key < self.entries[place as usize].0 => self.up(place as usize, (key, frame)),
            place => self.down(place as usize, (key, frame)),
        }
    }

    pub(super) fn remove(&mut self, frame: u32) {
        let place = self.places[frame as usize] as usize;
        self.places[frame as usize] = NONE;
        self.len -= 1;
        if place < self.len {
            let last = self.entries[self.len];
            if place > 0 && last.0 < self.entries[(place - 1) / 2].0 {
                self.up(place, last);
            } else {
                self.down(place, last);
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for place in 0..self.len {
            let (key, frame) = self.entries[place];
            if self.places[frame as usize] as usize != place {
                return Err(format!("heap: frame {frame} is not at {place}"));
            }
            if place > 0 && key < self.entries[(place - 1) / 2].0 {
                return Err(format!("heap: frame {frame} is less than its parent"));
            }
        }
        let inside = self.places.iter().filter(|&&place| place != NONE).count();
        if inside != self.len {
            return Err(format!("heap: {inside} frames, not {}", self.len));
        }
        Ok(())
    }
}
