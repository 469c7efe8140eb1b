//! A growing array whose elements never move, in memory straight from the system.

use std::sync::Arc;

use crate::os::{MetaSlice, OsError, System, ZeroIsValid};

/// Elements of the first chunk; every later one doubles.
const FIRST: usize = 64;
const CHUNKS: usize = 27;

/// The array. Elements are zero at first. Indices are 32 bits.
#[derive(Debug)]
pub(super) struct Chunks<T> {
    system: Arc<dyn System>,
    /// Element i is number i + FIRST, and chunk c has the numbers from FIRST * 2^c on.
    chunks: [Option<MetaSlice<T>>; CHUNKS],
    room: usize,
}

fn place(index: usize) -> (usize, usize) {
    let number = index + FIRST;
    let log = number.ilog2();
    ((log - FIRST.ilog2()) as usize, number - (1 << log))
}

impl<T: ZeroIsValid> Chunks<T> {
    pub(super) fn new(system: Arc<dyn System>) -> Self {
        Self {
            system,
            chunks: [const { None }; CHUNKS],
            room: 0,
        }
    }

    /// Makes sure that element `index` is there.
    ///
    /// # Errors
    /// The system's refusal.
    pub(super) fn reach(&mut self, index: usize) -> Result<(), OsError> {
        while index >= self.room {
            let refused = OsError::new("debug records", self.room, rustix::io::Errno::NOMEM);
            let (chunk, _) = place(self.room);
            let place = self.chunks.get_mut(chunk).ok_or(refused)?;
            *place = Some(MetaSlice::new(self.system.clone(), FIRST << chunk)?);
            self.room += FIRST << chunk;
        }
        Ok(())
    }

    /// Element `index`, which was reached before.
    pub(super) fn get(&self, index: usize) -> &T {
        let (chunk, at) = place(index);
        match &self.chunks[chunk] {
            Some(chunk) => &chunk[at],
            None => unreachable!("element {index} was never reached"),
        }
    }

    /// As [`get`](Self::get).
    pub(super) fn get_mut(&mut self, index: usize) -> &mut T {
        let (chunk, at) = place(index);
        match &mut self.chunks[chunk] {
            Some(chunk) => &mut chunk[at],
            None => unreachable!("element {index} was never reached"),
        }
    }

    /// Shows where the chunks lie.
    pub(super) fn own(&self, f: &mut dyn FnMut((usize, usize))) {
        for chunk in self.chunks.iter().flatten() {
            let from = chunk.as_ptr() as usize;
            f((from, from + size_of_val::<[T]>(chunk)));
        }
    }

    pub(super) fn system(&self) -> &Arc<dyn System> {
        &self.system
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;
    use crate::os::testing::system;

    #[test]
    fn elements_stay_and_are_distinct() {
        let mut chunks = Chunks::<u64>::new(system());
        for i in 0..1000 {
            chunks.reach(i).unwrap();
            *chunks.get_mut(i) = i as u64 + 1;
        }
        assert!((0..1000).all(|i| *chunks.get(i) == i as u64 + 1));
    }
}
