//! Taking rounds from a CPU layer and giving rounds to it.

use super::{CpuLayer, Kind};
use crate::magazine::FILL_MASK;

impl CpuLayer {
    /// Takes a round from this CPU, where there are restartable sequences; else there is never one.
    #[inline(always)]
    pub(in crate::magazine) fn pop_section(&self) -> Option<usize> {
        // SAFETY: base always points to an array with a slot for every possible CPU.
        let (top, round) = unsafe { self.sections.pop(&self.base) };
        (top & FILL_MASK != 0).then_some(round)
    }

    /// Takes a round from this CPU.
    #[inline(always)]
    pub(in crate::magazine) fn pop(&self) -> Option<usize> {
        match self.pop_section() {
            Some(round) => Some(round),
            None => self.pop_locked(),
        }
    }

    /// Takes a round in locked mode. Out of line, so that it costs the sections' callers only the branch that they have
    /// anyway.
    #[cold]
    #[inline(never)]
    pub(in crate::magazine) fn pop_locked(&self) -> Option<usize> {
        match self.kind {
            Kind::PerCpu => None,
            Kind::Locked => self.hold()?.pop(),
        }
    }

    /// Gives a round to this CPU, where there are restartable sequences; else there is never room.
    #[inline(always)]
    pub(in crate::magazine) fn push_section(&self, round: usize) -> bool {
        // SAFETY: as in `pop_section`.
        unsafe { self.sections.push(&self.base, round) }
    }

    /// Gives a round to this CPU; false when it has no room.
    #[inline(always)]
    pub(in crate::magazine) fn push(&self, round: usize) -> bool {
        self.push_section(round) || self.push_locked(round)
    }

    #[cold]
    #[inline(never)]
    pub(in crate::magazine) fn push_locked(&self, round: usize) -> bool {
        match self.kind {
            Kind::PerCpu => false,
            Kind::Locked => self.hold().is_some_and(|mut slot| slot.push(round)),
        }
    }

    /// Takes up to as many rounds as fit in `out`, from one magazine.
    pub(in crate::magazine) fn pop_many(&self, out: &mut [usize]) -> usize {
        match self.kind {
            _ if out.is_empty() => 0,
            // SAFETY: as in `pop_section`; `out` has room for its length.
            Kind::PerCpu => unsafe {
                self.sections
                    .pop_many(&self.base, out.as_mut_ptr(), out.len())
            },
            Kind::Locked => {
                let Some(mut slot) = self.hold() else {
                    return 0;
                };
                out.iter_mut()
                    .map_while(|o| slot.pop().map(|round| *o = round))
                    .count()
            }
        }
    }

    /// Gives rounds to one magazine and says how many.
    pub(in crate::magazine) fn push_many(&self, rounds: &[usize]) -> usize {
        match self.kind {
            _ if rounds.is_empty() => 0,
            // SAFETY: as in `pop_section`; `rounds` has as many as its length.
            Kind::PerCpu => unsafe {
                self.sections
                    .push_many(&self.base, rounds.as_ptr(), rounds.len())
            },
            Kind::Locked => {
                let Some(mut slot) = self.hold() else {
                    return 0;
                };
                rounds.iter().take_while(|&&round| slot.push(round)).count()
            }
        }
    }
}
