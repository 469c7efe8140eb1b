//! Stands in where no restartable sections are written: there is never a round and never room.

use super::sync::AtomicUsize;
pub(super) use crate::os::membarrier::restart_sequences;
use crate::os::rseq::Registration;

pub(super) const NOT_NOW: usize = 1;
pub(super) const DISABLED: usize = 2;
pub(super) const BEYOND: usize = 3;

#[derive(Debug, Clone, Copy)]
pub(super) struct Sections;

#[allow(clippy::unused_self, clippy::missing_safety_doc)]
impl Sections {
    pub(super) fn new(_: Registration) -> Self {
        unreachable!("the mode is per-CPU only where sections exist")
    }
    pub(super) fn idle() -> Self {
        Self
    }
    #[inline(always)]
    pub(super) unsafe fn pop(self, _: &AtomicUsize) -> (usize, usize) {
        (0, 0)
    }
    #[inline(always)]
    pub(super) unsafe fn push(self, _: &AtomicUsize, _: usize) -> bool {
        false
    }
    pub(super) unsafe fn pop_many(self, _: &AtomicUsize, _: *mut usize, _: usize) -> usize {
        unreachable!("no CPU layer of this machine is per CPU")
    }
    pub(super) unsafe fn push_many(self, _: &AtomicUsize, _: *const usize, _: usize) -> usize {
        unreachable!("no CPU layer of this machine is per CPU")
    }
    pub(super) unsafe fn replace_empty(
        self,
        _: &AtomicUsize,
        _: usize,
        _: usize,
        _: usize,
    ) -> usize {
        unreachable!("no CPU layer of this machine is per CPU")
    }
    pub(super) unsafe fn replace_full(
        self,
        _: &AtomicUsize,
        _: usize,
        _: usize,
        _: usize,
    ) -> usize {
        unreachable!("no CPU layer of this machine is per CPU")
    }
    pub(super) unsafe fn set_if_none(
        self,
        _: &AtomicUsize,
        _: usize,
        _: usize,
        _: usize,
        _: usize,
    ) -> usize {
        unreachable!("no CPU layer of this machine is per CPU")
    }
    pub(super) unsafe fn set_capacity(self, _: &AtomicUsize, _: usize, _: usize) -> bool {
        unreachable!("no CPU layer of this machine is per CPU")
    }
}
