//! The miniatures of a cache, made once its uses can tell the settings apart.

use super::super::PolicyError;
use super::miniature::Miniatures;

/// Miniatures that are made late. In as many sampled uses as half the frames of one, none evicts, and the guard cannot see the losses
/// at which LRU is to rule: so nothing follows from these uses. They are noted, and shown when the miniatures are made. A cache
/// that is dropped sooner, such as that of a query in SQLite, does not pay for them.
#[derive(Debug)]
pub(super) struct LateMiniatures {
    made: Option<Box<Miniatures>>,
    /// The uses until then: the sampled block, and whether the cache had it.
    noted: Vec<(u32, Option<bool>)>,
    frames: usize,
    capacity: usize,
}

impl LateMiniatures {
    /// With so many frames each, for a cache of this capacity. Allocates nothing.
    pub(super) fn new(frames: usize, capacity: usize) -> Self {
        Self {
            made: None,
            noted: Vec::new(),
            frames,
            capacity,
        }
    }

    /// [`Miniatures::access`].
    #[inline]
    pub(super) fn access(&mut self, tag: u32, own: Option<bool>) -> Option<usize> {
        match &mut self.made {
            Some(made) => made.access(tag, own),
            None => self.note(tag, own),
        }
    }

    #[cold]
    fn note(&mut self, tag: u32, own: Option<bool>) -> Option<usize> {
        if self.noted.try_reserve(1).is_err() {
            return None;
        }
        self.noted.push((tag, own));
        if self.noted.len() > self.frames / 2 {
            // Without memory they are made later.
            self.made = self.shown().ok().map(Box::new);
            self.noted = Vec::new();
        }
        None
    }

    /// Miniatures that have seen the uses so far.
    fn shown(&self) -> Result<Miniatures, PolicyError> {
        let mut made = Miniatures::new(self.frames, self.capacity)?;
        for &(tag, own) in &self.noted {
            made.access(tag, own);
        }
        Ok(made)
    }

    /// The expert that rules, and the misses of each; nothing if there is no memory to find them.
    pub(super) fn explain(&self) -> Vec<(&'static str, f64)> {
        match &self.made {
            Some(made) => made.explain(),
            None => self.shown().map_or(Vec::new(), |made| made.explain()),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let noted = self.noted.capacity() * size_of::<(u32, Option<bool>)>();
        self.made.as_ref().map_or(0, |made| made.bytes()) + noted
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.made.as_ref().map_or(Ok(()), |made| made.check())
    }
}
