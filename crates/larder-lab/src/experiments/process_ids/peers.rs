//! Crates of others under the workload of 2002: each keeps the process ids as it keeps its own.

use anyhow::{Context, ensure};

use crate::contestants::getpid::{GetPid, Layout, PID_MAX, Tasks};
use crate::contestants::ids::shared::{LocalIds, ShardedSlab, SharedIds};
use crate::contestants::ids::{
    Blaze, Hibit, IdSource, Pool, Rng, RoaringFree, SlabIds, SlotMapIds, Start,
};
use crate::measure::Contestant;

use super::timed::{Begin, Make, timed};

/// Ids that are handed out: 1 to 32767, and the place of an id is one less.
const PLACES: u32 = PID_MAX - 1;

/// The next one after the last, and not the lowest.
const CYCLIC: bool = true;
/// hibitset by its own iterator.
const LOWEST: u8 = 0;

/// The contestants.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    vec![
        timed::<MakePeer<RoaringFree<CYCLIC>>>(
            "crate-roaring",
            "the crate roaring: a set of free ids, the next one after the last",
        ),
        timed::<MakePeer<Blaze<CYCLIC>>>(
            "crate-range-set-blaze",
            "the crate range-set-blaze: a set of free ids, the next one after the last",
        ),
        timed::<MakePeer<Hibit<LOWEST>>>(
            "crate-hibitset",
            "the crate hibitset: a set of free ids, the lowest by its own iterator",
        ),
        timed::<MakePeer<Pool>>(
            "crate-id-pool",
            "the crate id-pool: a vector of free ranges, the lowest first",
        ),
        timed::<MakePeer<SlabIds>>("crate-slab", "the crate slab: the last freed first"),
        timed::<MakePeer<SlotMapIds>>(
            "crate-slotmap",
            "the crate slotmap: the last freed first; the task keeps the key",
        ),
        timed::<MakePeer<ShardedSlab>>(
            "crate-sharded-slab",
            "the crate sharded-slab, one thread: the last freed first; the task keeps the key",
        ),
    ]
}

/// What hands out numbers whose lower half is a place.
trait Source: Sized {
    /// All free.
    fn empty() -> anyhow::Result<Self>;
    fn take(&mut self) -> Option<u64>;
    fn give(&mut self, id: u64) -> bool;
}

impl<S: IdSource> Source for S {
    fn empty() -> anyhow::Result<Self> {
        Self::start(&Start::random(u64::from(PLACES), 0, &mut Rng::new(1))?)
    }

    #[inline]
    fn take(&mut self) -> Option<u64> {
        self.alloc()
    }

    #[inline]
    fn give(&mut self, id: u64) -> bool {
        self.free(id)
    }
}

impl Source for ShardedSlab {
    fn empty() -> anyhow::Result<Self> {
        Self::new(u64::from(PLACES))
    }

    #[inline]
    fn take(&mut self) -> Option<u64> {
        self.local(0, 1).alloc()
    }

    #[inline]
    fn give(&mut self, id: u64) -> bool {
        self.local(0, 1).free(id)
    }
}

/// A crate, and what it called each id when it handed it out: a number with a generation is not the place alone.
struct Peer<S> {
    source: S,
    called: Vec<u64>,
}

impl<S: Source> Peer<S> {
    /// Exactly the ids of `tasks` are taken: all were, and the others were given back in ascending order.
    fn over<L: Layout>(tasks: &Tasks<L>) -> anyhow::Result<Self> {
        let mut peer = Self {
            source: S::empty()?,
            called: vec![0; PLACES as usize],
        };
        for _ in 0..PLACES {
            peer.next().context("it said 'full' while ids were free")?;
        }
        for pid in (1..PID_MAX).filter(|pid| !tasks.has(*pid)) {
            ensure!(peer.back(pid), "it refused {pid}, which was taken");
        }
        Ok(peer)
    }

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let id = self.source.take()?;
        let place = id as u32;
        *self.called.get_mut(place as usize)? = id;
        Some(place + 1)
    }

    #[inline]
    fn back(&mut self, pid: u32) -> bool {
        let called = self.called.get(pid.wrapping_sub(1) as usize);
        called.is_some_and(|id| self.source.give(*id))
    }
}

impl<S: Source> GetPid for Peer<S> {
    #[inline]
    fn get<L: Layout>(&mut self, _: &Tasks<L>) -> Option<u32> {
        self.next()
    }

    #[inline]
    fn freed(&mut self, pid: u32) {
        // What it refuses it will not hand out, and the harness runs out of ids.
        let _ = self.back(pid);
    }
}

struct MakePeer<S>(core::marker::PhantomData<S>);

impl<S: Source> Make for MakePeer<S> {
    type Pids = Peer<S>;

    fn make<L: Layout>(tasks: &Tasks<L>, _: Begin) -> anyhow::Result<Peer<S>> {
        Peer::over(tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::getpid::Packed;

    fn churned<S: Source>() {
        let mut tasks = Tasks::<Packed>::new(PID_MAX as usize);
        for pid in (1..PID_MAX).filter(|pid| pid % 3 != 0) {
            assert!(tasks.add(pid));
        }
        let mut peer = Peer::<S>::over(&tasks).expect("made");
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
        churned::<RoaringFree<CYCLIC>>();
        churned::<Blaze<CYCLIC>>();
        churned::<Hibit<LOWEST>>();
        churned::<Pool>();
        churned::<SlabIds>();
        churned::<SlotMapIds>();
        churned::<ShardedSlab>();
    }
}
