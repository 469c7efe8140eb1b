//! Stands in where no restartable sections are written. It cannot be made, so nothing of it ever runs.

use core::convert::Infallible;

use crate::os::rseq::Registration;

pub(super) const NOT_NOW: usize = 1;
pub(super) const PARKED: usize = 2;
pub(super) const BEYOND: usize = 3;

#[derive(Debug, Clone, Copy)]
pub(super) struct Sections(Infallible);

#[allow(clippy::unused_self, clippy::missing_safety_doc)]
impl Sections {
    pub(super) fn new(_: Registration) -> Self {
        unreachable!("the mode is per-CPU only where sections exist")
    }
    pub(super) unsafe fn pop(self, _: *const usize) -> (usize, usize) {
        match self.0 {}
    }
    pub(super) unsafe fn push(self, _: *const usize, _: usize) -> usize {
        match self.0 {}
    }
    pub(super) unsafe fn pop_many(self, _: *const usize, _: *mut usize, _: usize) -> usize {
        match self.0 {}
    }
    pub(super) unsafe fn push_many(self, _: *const usize, _: *const usize, _: usize) -> usize {
        match self.0 {}
    }
    pub(super) unsafe fn replace_empty(
        self,
        _: *const usize,
        _: usize,
        _: usize,
        _: usize,
    ) -> usize {
        match self.0 {}
    }
    pub(super) unsafe fn replace_full(
        self,
        _: *const usize,
        _: usize,
        _: usize,
        _: usize,
    ) -> usize {
        match self.0 {}
    }
    pub(super) unsafe fn set_if_none(
        self,
        _: *const usize,
        _: usize,
        _: usize,
        _: usize,
        _: usize,
    ) -> usize {
        match self.0 {}
    }
    pub(super) unsafe fn set_capacity(self, _: *const usize, _: usize, _: usize) -> bool {
        match self.0 {}
    }
}
