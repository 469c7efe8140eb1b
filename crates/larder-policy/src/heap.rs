//! A priority queue of frames whose keys change: a binary heap that knows where each frame is.

use super::{FrameState, Frames, PolicyError};
use larder_base::list::NONE;
use larder_base::table::{grow, table};

/// The least key is first. Keys of a rule's frames are all different, so that the order is the same however the heap was made.
#[derive(Debug)]
pub(super) struct Heap<K> {
    /// The first `len` are the heap, the last `parked` those that wait outside.
    entries: Vec<(K, u32)>,
    /// By frame.
    places: Vec<u32>,
    len: usize,
    parked: usize,
}

impl<K: Copy + PartialOrd + Default> Heap<K> {
    pub(super) fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            entries: table(frames, (K::default(), NONE))?,
            places: table(frames, NONE)?,
            len: 0,
            parked: 0,
        })
    }

    pub(super) fn grow(&mut self, frames: usize) -> Result<(), PolicyError> {
        let before = self.entries.len();
        grow(&mut self.entries, frames, (K::default(), NONE))?;
        grow(&mut self.places, frames, NONE)?;
        // The parked ones are at the end.
        let by = self.entries.len() - before;
        for place in (before - self.parked..before).rev() {
            self.put(place + by, self.entries[place]);
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(K, u32)>() + self.places.capacity() * size_of::<u32>()
    }

    pub(super) fn len(&self) -> usize {
        self.len + self.parked
    }

    /// Takes a frame out of the order. Its key stays.
    pub(super) fn park(&mut self, frame: u32) {
        let key = self.key(frame);
        self.remove(frame);
        self.parked += 1;
        self.put(self.entries.len() - self.parked, (key, frame));
    }

    /// Puts a parked frame back.
    pub(super) fn unpark(&mut self, frame: u32) {
        let place = self.places[frame as usize] as usize;
        let entry = self.entries[place];
        let last = self.entries.len() - self.parked;
        self.put(place, self.entries[last]);
        self.parked -= 1;
        self.len += 1;
        self.up(self.len - 1, entry);
    }

    /// The least.
    pub(super) fn first(&self) -> Option<(K, u32)> {
        (self.len > 0).then(|| self.entries[0])
    }

    /// The least that is not pinned. Beyond the first, only pinned ones and their children are looked at.
    #[inline]
    pub(super) fn first_unpinned<F: Frames>(&self, frames: &F) -> Option<(K, u32)> {
        let first = self.first()?;
        if frames.state(first.1) != FrameState::Pinned {
            return Some(first);
        }
        let best = self.unpinned_below(1, None, frames);
        self.unpinned_below(2, best, frames)
    }

    /// The least that is not pinned of `best` and of those at a place and below it.
    fn unpinned_below<F: Frames>(
        &self,
        place: usize,
        best: Option<(K, u32)>,
        frames: &F,
    ) -> Option<(K, u32)> {
        if place >= self.len || best.is_some_and(|best| best.0 <= self.entries[place].0) {
            return best;
        }
        if frames.state(self.entries[place].1) != FrameState::Pinned {
            return Some(self.entries[place]);
        }
        let best = self.unpinned_below(2 * place + 1, best, frames);
        self.unpinned_below(2 * place + 2, best, frames)
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
        for place in self.entries.len() - self.parked..self.entries.len() {
            let frame = self.entries[place].1;
            if self.places[frame as usize] as usize != place {
                return Err(format!("heap: parked frame {frame} is not at {place}"));
            }
        }
        let inside = self.places.iter().filter(|&&place| place != NONE).count();
        if inside != self.len() {
            return Err(format!("heap: {inside} frames, not {}", self.len()));
        }
        Ok(())
    }
}
