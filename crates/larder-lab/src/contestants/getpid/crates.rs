//! Other crates with the process ids of 2002, each with its own data structure.

use anyhow::{Context, ensure};

use super::{GetPid, Layout, PID_MAX, Tasks};
use crate::contestants::ids::{IdSource, Rng, Start};

/// Ids that are handed out: 1 to 32767, and the place of an id is one less.
const PLACES: u32 = PID_MAX - 1;

/// A crate, and what it called each id when it handed it out: a number with a generation is not the place alone.
#[derive(Debug)]
pub struct Crate<S> {
    source: S,
    called: Vec<u64>,
}

impl<S: IdSource> Crate<S> {
    /// A space of which nothing is known before [`start`](GetPid::start).
    ///
    /// # Errors
    /// No memory.
    pub fn new() -> anyhow::Result<Self> {
        let empty = Start::random(u64::from(PLACES), 0, &mut Rng::new(1))?;
        Ok(Self {
            source: S::start(&empty)?,
            called: vec![0; PLACES as usize],
        })
    }

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let id = self.source.alloc()?;
        let place = id as u32;
        *self.called.get_mut(place as usize)? = id;
        Some(place + 1)
    }

    #[inline]
    fn back(&mut self, pid: u32) -> bool {
        let called = self.called.get(pid.wrapping_sub(1) as usize);
        called.is_some_and(|id| self.source.free(*id))
    }
}

impl<S: IdSource> GetPid for Crate<S> {
    #[inline]
    fn get<L: Layout>(&mut self, _: &Tasks<L>) -> Option<u32> {
        self.next()
    }

    #[inline]
    fn freed(&mut self, pid: u32) {
        // What it refuses it will not hand out, and the harness runs out of ids.
        let _ = self.back(pid);
    }

    /// Exactly the ids of `tasks` are taken: all were, and the others were given back in ascending order.
    fn start<L: Layout>(&mut self, tasks: &Tasks<L>) -> anyhow::Result<()> {
        for _ in 0..PLACES {
            self.next().context("it said 'full' while ids were free")?;
        }
        for pid in (1..PID_MAX).filter(|pid| !tasks.has(*pid)) {
            ensure!(self.back(pid), "it refused {pid}, which was taken");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::getpid::Packed;
    use crate::contestants::ids::shared::ShardedSlab;
    use crate::contestants::ids::{Blaze, Hibit, Pool, RoaringFree, SlabIds, SlotMapIds};

    fn churned<S: IdSource>() {
        let mut tasks = Tasks::<Packed>::new(PID_MAX as usize);
        for pid in (1..PID_MAX).filter(|pid| pid % 3 != 0) {
            assert!(tasks.add(pid));
        }
        let mut peer = Crate::<S>::new().expect("made");
        peer.start(&tasks).expect("started");
        for pid in (1..3000).filter(|pid| pid % 3 == 1) {
            assert!(tasks.remove(pid));
            peer.freed(pid);
            let new = peer.get(&tasks).expect("one is free");
            assert!(tasks.add(new), "{new} is in use");
        }
        // Exactly those that no task has are left.
        while tasks.len() < PLACES as usize {
            let new = peer.get(&tasks).expect("some are free");
            assert!(tasks.add(new), "{new} is in use");
        }
        assert!(peer.get(&tasks).is_none_or(|pid| !tasks.add(pid)));
    }

    #[test]
    fn each_hands_out_what_no_task_has_until_all_are_taken() {
        churned::<RoaringFree<true>>();
        churned::<Blaze<true>>();
        churned::<Hibit>();
        churned::<Pool>();
        churned::<SlabIds>();
        churned::<SlotMapIds>();
        churned::<ShardedSlab>();
    }
}
